"""Shared parts of data sets with one or two sentences and a class or score.

They are options, rows of text files, and tables.
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeVar

from pydantic import Field, PositiveInt

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.prepared import TableDataset, collect_columns
from workflow_scripts.data.sources.archives import read_lines
from workflow_scripts.data.sources.task_sources import DataOptions

Row = TypeVar("Row")


class Sentence(NamedTuple):
    """One example with a stable key.

    `second` is None for a single sentence; `label` is a class number or a score.
    """

    item: str
    first: str
    second: str | None
    label: float
    subset: str = ""


class SentenceOptions(DataOptions):
    """Options of every data set of this kind.

    limit: split -> maximum number of examples, or their share if below 1, sampled at random. The
        sample of a larger limit contains that of a smaller one.
    """

    limit: dict[str, PositiveInt | Annotated[float, Field(gt=0, lt=1)]] = {}
    seed: int = 0

    @property
    def has_pairs(self) -> bool | None:
        """Whether the items are pairs of sentences; None if the data set does not say."""
        return None


class UpstreamOptions(SentenceOptions):
    """The same options for data sets without stand-in data."""

    origin: Literal["upstream"] = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        "upstream", alias="from"
    )


def shuffle_rows(rows: Sequence[Row], seed: int, purpose: str) -> list[Row]:
    """Return the rows in random order.

    Each combination of `seed` and `purpose` has its own order.
    """
    return random.Random(f"{seed}/{purpose}").sample(rows, len(rows))


def split_off(
    rows: Sequence[Row], count: int, seed: int, purpose: str
) -> tuple[list[Row], list[Row]]:
    """Sample `count` rows. Returns (other rows, sampled rows), both in the order of `rows`.

    Without as many rows, all are sampled.
    """
    sampled_positions = set(shuffle_rows(range(len(rows)), seed, purpose)[:count])
    others = []
    sampled = []
    for position, row in enumerate(rows):
        if position in sampled_positions:
            sampled.append(row)
        else:
            others.append(row)
    return others, sampled


def build_limited_table(
    splits: dict[str, list[Sentence]],
    labels: list[str] | None,
    options: SentenceOptions,
    notes: list[str],
    protocol: str = "paper",
) -> TableDataset:
    """Build a data set from splits, after applying the limits.

    Raises UserError for a limit on an unknown split.

    `labels` are the class names, None for scores. `protocol` is the one of upstream's files without
    limits; that of the data set is `reduced` if a number limits a split of the protocol `paper`.
    """
    limited = dict(splits)
    all_notes = list(notes)
    final_protocol = protocol
    for split, limit in options.limit.items():
        if split not in splits:
            raise UserError(
                f"options.limit: no split {split} to limit here; known: {', '.join(splits)}"
            )
        rows = splits[split]
        is_share = isinstance(limit, float)
        count = round(limit * len(rows)) if is_share else limit
        if count >= len(rows):
            continue
        # A share makes nothing reduced: it is used to study sample sizes.
        if protocol == "paper" and not is_share:
            final_protocol = "reduced"
        all_notes.append(
            f"{split}: {count} of {len(rows)} examples, drawn with seed {options.seed}"
        )
        _others, limited[split] = split_off(rows, count, options.seed, f"limit/{split}")
    tables = collect_columns(limited, Sentence._fields)
    return TableDataset(tables, all_notes, final_protocol, described={"labels": labels})


def read_tsv(
    path: Path,
    name: str,
    needed: Sequence[str],
    columns: Sequence[str] = (),
    skip_broken: bool = False,
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, column -> text) of a tab-separated file without quotes.

    The file is `name` in an archive, or `path`. The first line is the header unless `columns` is
    given. Fields after the last column are ignored. Raises UserError for a missing column or a line
    with too few fields; `skip_broken` skips lines with another number of fields.
    """
    header = columns
    for number, line in read_lines(path, name):
        fields = line.split("\t")
        if not header:
            header = fields
            for column in needed:
                if column not in header:
                    raise UserError(f"{path}: {name}: no column '{column}'; fetch it again")
            continue
        if skip_broken and len(fields) != len(header):
            continue
        if len(fields) < len(header):
            raise UserError(
                f"{path}: {name}:{number}: {len(fields)} fields, {len(header)} needed; "
                "fetch it again"
            )
        yield number, dict(zip(header, fields, strict=False))


def parse_number(text: str, low: float, high: float, place: str) -> float:
    """Parse a number from `low` to `high`. Raises UserError with `place`."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise UserError(
            f"{place}: the label is {text!r}, not a number from {low:g} to {high:g}; "
            "fetch the file again"
        )
    return value


def parse_class(text: str, labels: Sequence[str], place: str) -> float:
    """Return the position of a class in `labels`. Raises UserError with `place`."""
    if text not in labels:
        raise UserError(
            f"{place}: the label is {text!r}, none of {', '.join(labels)}; fetch the file again"
        )
    return float(labels.index(text))
