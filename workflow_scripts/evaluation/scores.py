"""Scores, and their table: one long CSV format for all measurements."""

import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MissingFileError, parse_decimal
from workflow_scripts.common.result_folders import verify_checksum
from workflow_scripts.common.run_names import VariantKey
from workflow_scripts.evaluation.protocol import PROTOCOLS

SCORE_COLUMNS = (
    "task", "method", "variant", "seed", "split", "subset",
    "metric", "value", "unit", "n", "protocol",
    "intervention", "layer", "pooling", "rate", "intervention_seed", "item_set", "readout",
)  # fmt: skip
NOT_FINITE = ("nan", "inf", "-inf")  # as Python writes these numbers
NUMBERS: dict[str, type[int] | type[float]] = {
    "seed": int,
    "value": float,
    "n": int,
    "layer": int,
    "rate": float,
    "intervention_seed": int,
}
REQUIRED_COLUMNS = ("task", "metric", "value", "unit", "n", "protocol")
# The other columns are the key of a score: no two rows have the same key.
VALUE_COLUMNS = ("value", "unit", "n", "protocol")


class ScoreKey(NamedTuple):
    """What tells the scores of a run apart, those of draws of an intervention averaged."""

    split: str | None
    subset: str | None
    metric: str
    readout: str | None
    intervention: str | None = None
    layer: int | None = None
    pooling: str | None = None
    rate: float | None = None
    item_set: str | None = None

    def __str__(self) -> str:
        """Format as `exact_match of test/all/vocabulary/cap/1/max/own_correct`."""
        places = [str(value) for value in self._replace(metric="") if value not in (None, "")]
        return f"{self.metric} of {'/'.join(places)}"


class Score(NamedTuple):
    """A row of scores.csv. A column that does not apply is None.

    n: how many values were averaged. task, method, variant, seed and protocol: not set by what
    measures outputs; the command that writes the scores of a run sets them.
    """

    metric: str
    value: float
    unit: str
    n: int
    subset: str | None = "all"
    split: str | None = None
    readout: str | None = None
    task: str = ""
    method: str | None = None
    variant: str | None = None
    seed: int | None = None
    protocol: str = ""
    intervention: str | None = None
    layer: int | None = None
    pooling: str | None = None
    rate: float | None = None
    intervention_seed: int | None = None
    item_set: str | None = None

    @property
    def key(self) -> ScoreKey:
        """What tells the score apart from others of its run."""
        return ScoreKey(*(getattr(self, name) for name in ScoreKey._fields))

    @property
    def variant_key(self) -> VariantKey:
        """The variant that has the score; parts are None in a score of an analysis as a whole."""
        return VariantKey(self.task, self.method, self.variant)  # type: ignore[arg-type]

    def has(self, columns: Mapping[str, Any]) -> bool:
        """Whether the score has these values of columns."""
        return all(getattr(self, name) == value for name, value in columns.items())


class UndefinedScore(NamedTuple):
    """A metric that has no value for a run, and why. n: the number of its examples."""

    metric: str
    reason: str
    unit: str
    n: int
    subset: str = "all"
    split: str | None = None
    readout: str | None = None


def write_scores(path: Path, scores: Iterable[Score]) -> None:
    """Write scores.csv.

    Raises ValueError for a missing or infinite value, an unknown protocol, or a repeated score.
    """
    texts = []
    for score in scores:
        texts.append({name: _format_cell(getattr(score, name)) for name in SCORE_COLUMNS})
    _check_rows(texts)
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, SCORE_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(texts)


def _format_cell(value: Any) -> str:
    """Format a value of a row; empty for None."""
    if value is None:
        return ""
    return str(value)


def read_scores(path: Path) -> list[Score]:
    """Read scores.csv. Raises UserError with file and line."""
    verify_checksum(path)
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream, restval="", strict=True)
            if tuple(reader.fieldnames or ()) != SCORE_COLUMNS:
                raise ValueError(f"the columns are not {', '.join(SCORE_COLUMNS)}")
            texts = list(reader)
        _check_rows(texts)
    except FileNotFoundError as error:
        raise MissingFileError(path) from error
    except (ValueError, csv.Error) as error:
        raise UserError(f"{path}: {error}; delete it and run ./reproduce again") from error
    return [_parse_row(row) for row in texts]


def _parse_row(row: dict[str, str]) -> Score:
    """Return the score of a row that `_check_rows` has accepted; empty cells become None."""
    values: dict[str, Any] = {}
    for name, text in row.items():
        if name in NUMBERS:
            values[name] = parse_decimal(text, NUMBERS[name])
        else:
            values[name] = text or None
    return Score(**values)


def _check_rows(rows: list[dict[str, str]]) -> None:
    """Raise ValueError for the first row that is not a valid score, with its line number.

    Scores have neither blank lines nor line breaks in a cell, so rows are lines.
    """
    line_of: dict[tuple[str, ...], int] = {}
    for line, row in enumerate(rows, start=2):
        if row.keys() != set(SCORE_COLUMNS):
            raise ValueError(f"line {line} has more columns than the header")
        for name in REQUIRED_COLUMNS:
            if not row[name]:
                raise ValueError(f"line {line} has no {name}")
        for name in NUMBERS:
            _check_number(name, row[name], line)
        if row["protocol"] not in PROTOCOLS:
            raise ValueError(
                f"line {line}: protocol {row['protocol']!r} is none of {', '.join(PROTOCOLS)}"
            )
        key = tuple(row[name] for name in SCORE_COLUMNS if name not in VALUE_COLUMNS)
        if key in line_of:
            raise ValueError(f"lines {line_of[key]} and {line} give the same score twice")
        line_of[key] = line


def _check_number(name: str, text: str, line: int) -> None:
    """Raise ValueError unless a text is empty or a finite number of its column's type."""
    if text in NOT_FINITE:
        raise ValueError(f"line {line}: {name} is {text}")
    try:
        number = parse_decimal(text, NUMBERS[name])
    except ValueError:
        expected = "number"
        if NUMBERS[name] is int:
            expected = "whole number"
        raise ValueError(f"line {line}: {name} is {text!r}, not a {expected}") from None
    if number is not None and not math.isfinite(number):  # such as 1e999
        raise ValueError(f"line {line}: {name} is {text}")


def find_subset_rows(
    subsets: np.ndarray, groups: dict[str, list[str]] | None = None
) -> dict[str, np.ndarray]:
    """Return the row positions of "all", of each named subset and of each group of subsets.

    `subsets` [N] of str has the subset of each row, "" for none; `groups` maps group names to their
    subsets. Those without a row are left out.
    """
    is_member = {"all": np.ones(len(subsets), bool)}
    names = sorted(set(subsets.tolist()) - {""})
    for name in names:
        is_member[name] = subsets == name
    for group, members in sorted((groups or {}).items()):
        is_member[group] = np.isin(subsets, members)
    return {name: np.flatnonzero(rows) for name, rows in is_member.items() if rows.any()}


def make_scores(
    columns: Mapping[str, Any], values: Mapping[str, tuple[float | None, str, int]]
) -> list[Score]:
    """Make scores with further `columns` from metric -> (value, unit, n).

    n is how many values were averaged. A value of None makes no score. Raises ValueError for an
    unknown column.
    """
    unknown = sorted(columns.keys() - set(Score._fields))
    if unknown:
        raise ValueError(f"no column {unknown[0]} in a score table")
    scores = []
    for metric, (value, unit, n) in values.items():
        if value is not None:
            scores.append(Score(metric, float(value), unit, n, **columns))
    return scores


def score_shares(
    metric: str, right: np.ndarray, subsets: np.ndarray, groups: dict[str, list[str]]
) -> list[Score]:
    """Return scores with the share of `right` [N] bool, in percent.

    They are over all rows, each subset and each group.
    """
    scores = []
    for name, rows in find_subset_rows(subsets, groups).items():
        percent = 100 * right[rows].mean()
        scores += make_scores({"subset": name}, {metric: (percent, "percent", len(rows))})
    return scores
