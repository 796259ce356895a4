"""Score tables: one long CSV format for all measurements."""

import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MissingFileError, verify_checksum
from workflow_scripts.evaluation.protocol import PROTOCOLS

SCORE_COLUMNS = (
    "task", "method", "variant", "seed", "split", "subset", "metric", "value", "unit", "n", "protocol",
    "intervention", "layer", "pooling", "rate", "intervention_seed", "item_set", "readout",
)  # fmt: skip
NUMBERS = {
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


def write_scores(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows as scores.csv. Columns that do not apply to a row may be missing or None.

    Raises ValueError for an unknown column, a missing or infinite value, an unknown protocol, or a repeated score.
    """
    texts = []
    for row in rows:
        if unknown := sorted(row.keys() - set(SCORE_COLUMNS)):
            raise ValueError(f"no column {unknown[0]} in a score table")
        texts.append(
            {name: "" if row.get(name) is None else str(row[name]) for name in SCORE_COLUMNS}
        )
    _check(texts)
    with open(path, "w", newline="") as stream:
        writer = csv.DictWriter(stream, SCORE_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(texts)


def read_scores(path: Path) -> list[dict[str, Any]]:
    """Read scores.csv, with numeric columns as numbers and empty cells as None. Raises UserError with file and line."""
    verify_checksum(path)
    try:
        with open(path, newline="") as stream:
            reader = csv.DictReader(stream, restval="", strict=True)
            if tuple(reader.fieldnames or ()) != SCORE_COLUMNS:
                raise ValueError(f"the columns are not {', '.join(SCORE_COLUMNS)}")
            texts = list(reader)
        _check(texts)
    except FileNotFoundError as error:
        raise MissingFileError(path) from error
    except (ValueError, csv.Error) as error:
        raise UserError(f"{path}: {error}; delete it and run ./reproduce again") from error
    return [
        {name: NUMBERS.get(name, str)(text) if text else None for name, text in row.items()}
        for row in texts
    ]


def _check(rows: list[dict[str, str]]) -> None:
    """Raise ValueError with the line number of the first row that is not a valid score."""
    seen: dict[tuple[str, ...], int] = {}
    for line, row in enumerate(rows, start=2):
        if row.keys() != set(SCORE_COLUMNS):
            raise ValueError(f"line {line} has more columns than the header")
        for name in REQUIRED_COLUMNS:
            if not row[name]:
                raise ValueError(f"line {line} has no {name}")
        for name, kind in NUMBERS.items():
            try:
                number = kind(row[name] or 0)
            except ValueError:
                expected = "whole number" if kind is int else "number"
                raise ValueError(
                    f"line {line}: {name} is {row[name]!r}, not a {expected}"
                ) from None
            if not math.isfinite(number):
                raise ValueError(f"line {line}: {name} is {row[name]}")
        if row["protocol"] not in PROTOCOLS:
            raise ValueError(
                f"line {line}: protocol {row['protocol']!r} is none of {', '.join(PROTOCOLS)}"
            )
        key = tuple(row[name] for name in SCORE_COLUMNS if name not in VALUE_COLUMNS)
        if key in seen:
            raise ValueError(f"lines {seen[key]} and {line} give the same score twice")
        seen[key] = line


def find_subset_rows(
    subsets: np.ndarray, groups: dict[str, list[str]] | None = None
) -> dict[str, np.ndarray]:
    """Return the row positions of "all", of each named subset and of each group of subsets, unless empty.

    `subsets` is [N] of str; `groups` maps a group's name to its subsets.
    """
    chosen = {"all": np.ones(len(subsets), bool)}
    chosen |= {name: subsets == name for name in sorted(set(subsets.tolist()) - {""})}
    chosen |= {
        group: np.isin(subsets, members) for group, members in sorted((groups or {}).items())
    }
    return {name: np.flatnonzero(rows) for name, rows in chosen.items() if rows.any()}


def make_scores(
    where: Mapping[str, Any], values: Mapping[str, tuple[float | None, str, int]]
) -> list[dict[str, Any]]:
    """Make rows of scores.csv with the columns `where` from metric -> (value, unit, n); a value of None makes none.

    n is how many values were averaged. The default subset is "all".
    """
    return [
        {"subset": "all", **where, "metric": metric, "value": float(value), "unit": unit, "n": n}
        for metric, (value, unit, n) in values.items()
        if value is not None
    ]


def score_shares(
    metric: str, right: np.ndarray, subsets: np.ndarray, groups: dict[str, list[str]]
) -> list[dict[str, Any]]:
    """Return score rows with the share of `right` [N] bool, in percent, over all rows, each subset and each group."""
    found = find_subset_rows(subsets, groups).items()
    shares = {name: (100 * right[rows].mean(), "percent", len(rows)) for name, rows in found}
    return [
        row
        for name, share in shares.items()
        for row in make_scores({"subset": name}, {metric: share})
    ]
