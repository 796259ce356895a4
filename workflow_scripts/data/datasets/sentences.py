"""What data sets of one sentence or two with a class or a number share: options, rows of text files, tables."""

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeVar

from pydantic import Field

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import Strict
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.sources.archives import read_lines

Row = TypeVar("Row")


class Sentence(NamedTuple):
    """One example. `item` is a stable key, `second` None where there is one sentence, `label` the number of a class or
    a score, `subset` "" where it is in none."""

    item: str
    first: str
    second: str | None
    label: float
    subset: str = ""


class SentenceOptions(Strict):
    """Options of every such set.

    from: `upstream` reads upstream's files; `stand_in` makes small ones of the same form first.
    limit: at most so many examples of a split, drawn at random, or below 1 such a share of it. A larger limit holds all
        that a smaller one does.
    seed: of every draw.
    """

    origin: Literal["upstream", "stand_in"] = Field("upstream", alias="from")
    limit: dict[str, Annotated[int, Field(gt=0)] | Annotated[float, Field(gt=0, lt=1)]] = {}
    seed: int = 0


@contextmanager
def upstream_or_made(
    origin: Literal["upstream", "stand_in"], sources: dict[str, Path], make: Callable[[Path], dict[str, Path]]
) -> Iterator[dict[str, Path]]:
    """The files to read, by the names of the sources: upstream's, or those that `make` writes into a folder, which is
    gone afterwards."""
    if origin == "upstream":
        yield sources
        return
    with tempfile.TemporaryDirectory() as folder:
        yield make(Path(folder))


def shuffled(rows: Sequence[Row], seed: int, purpose: str) -> list[Row]:
    """The rows in an order of their own for each seed and purpose."""
    return random.Random(f"{seed}/{purpose}").sample(rows, len(rows))


def taken_out(rows: Sequence[Row], count: int, seed: int, purpose: str) -> tuple[list[Row], list[Row]]:
    """(the others, `count` rows drawn at random), both in the order of `rows`."""
    drawn = set(shuffled(range(len(rows)), seed, purpose)[:count])
    return (
        [row for position, row in enumerate(rows) if position not in drawn],
        [row for position, row in enumerate(rows) if position in drawn],
    )


def table(
    splits: dict[str, list[Sentence]],
    labels: list[str] | None,
    options: SentenceOptions,
    notes: list[str],
    protocol: str = "paper",
) -> TableDataset:
    """The limited splits as columns. `labels` names the classes; None where labels are scores. `protocol` is that of
    upstream's files before the limits.

    Raises UserError for a limit on a split that does not exist.
    """
    protocol = "stand_in" if options.origin == "stand_in" else protocol
    for split, limit in options.limit.items():
        if split not in splits:
            raise UserError(f"options.limit: no split {split} to limit here; known: {', '.join(splits)}")
        rows = splits[split]
        count = limit if isinstance(limit, int) else round(limit * len(rows))
        if count >= len(rows):
            continue
        if isinstance(limit, int) and protocol == "paper":  # a share is what a study of sample sizes asks for
            protocol = "reduced"
        notes = [*notes, f"{split}: {count} of {len(rows)} examples, drawn with seed {options.seed}"]
        splits = splits | {split: taken_out(rows, count, options.seed, f"limit/{split}")[1]}
    tables = {
        split: {name: [getattr(row, name) for row in rows] for name in Sentence._fields}
        for split, rows in splits.items()
    }
    return TableDataset(tables, notes, protocol, described={"labels": labels})


def named_source(sources: dict[str, Path], names: Sequence[str], where: str) -> Path:
    """The first of these sources that the task names. Raises UserError when it names none."""
    found = next((sources[name] for name in names if name in sources), None)
    if found is None:
        raise UserError(f"{where}: from: upstream needs the source {' or '.join(names)}; name it in the task's sources")
    return found


def tsv_rows(path: Path, name: str, columns: Sequence[str] | None = None) -> Iterator[tuple[int, dict[str, str]]]:
    """(line number, column -> text) of a tab-separated file without quoting: `name` in an archive, or `path` itself.

    The first line names the columns unless `columns` does. Fields beyond the last column are left out. Raises UserError
    naming the line that has too few.
    """
    for number, line in read_lines(path, name):
        fields = line.split("\t")
        if columns is None:
            columns = fields
            continue
        if len(fields) < len(columns):
            raise UserError(
                f"{path}: {name}:{number}: {len(fields)} fields, {len(columns)} are needed; fetch the file again"
            )
        yield number, dict(zip(columns, fields, strict=False))


def number(text: str, low: float, high: float, where: str) -> float:
    """A number from `low` to `high`. Raises UserError naming `where`."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise UserError(f"{where}: the label is {text!r}, not a number from {low:g} to {high:g}; fetch the file again")
    return value


def class_number(text: str, labels: Sequence[str], where: str) -> float:
    """The position of a class among `labels`. Raises UserError naming `where`."""
    if text not in labels:
        raise UserError(f"{where}: the label is {text!r}, none of {', '.join(labels)}; fetch the file again")
    return float(labels.index(text))
