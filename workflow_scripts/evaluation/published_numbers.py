"""Read published.csv, the numbers that a paper prints."""

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.common.errors import ErrorList, UserError
from workflow_scripts.common.files import parse_decimal

PUBLISHED_COLUMNS = (
    "display", "row", "column", "metric",
    "printed", "value", "unit", "std", "n_seeds", "source", "note",
)  # fmt: skip


class Key(NamedTuple):
    """The cell that a number is printed in, and its metric."""

    display: str
    row: str
    column: str
    metric: str


@dataclass(frozen=True)
class Published:
    """A published number.

    printed: the verbatim text. value: None if the paper prints a bound or words.
    """

    printed: str
    value: float | None
    std: float | None
    n_seeds: int | None
    unit: str
    source: str
    note: str
    where: str = field(default="", compare=False)  # file:line


def read_published(path: Path) -> dict[Key, Published]:
    """Read published.csv.

    Raises UserError with file and line of every wrong header, line, number or repeated cell.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines(keepends=True)
        list(csv.reader(lines))
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; restore it from the repository") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text; convert it") from error
    except csv.Error as error:
        raise UserError(f"{path}: not valid CSV ({error}); correct it") from error
    reader = csv.DictReader(lines)
    if tuple(reader.fieldnames or ()) != PUBLISHED_COLUMNS:
        raise UserError(f"{path}:1: the columns must be {','.join(PUBLISHED_COLUMNS)}")
    rows = ((f"{path}:{reader.line_num}", row) for row in reader)
    return parse_published(rows)


def parse_published(rows: Iterable[tuple[str, dict[str, str]]]) -> dict[Key, Published]:
    """Parse (place, row) of a published.csv.

    Raises UserError with every wrong row, number or repeated cell.
    """
    numbers: dict[Key, Published] = {}
    problems = ErrorList()
    for place, row in rows:
        if None in row or None in row.values():
            problems.add(f"{place}: not {len(PUBLISHED_COLUMNS)} columns; quote texts with commas")
            continue
        key = Key(row["display"], row["row"], row["column"], row["metric"])
        try:
            value = parse_decimal(row["value"], float)
            std = parse_decimal(row["std"], float)
            n_seeds = parse_decimal(row["n_seeds"], int)
        except ValueError as error:
            problems.add(f"{place}: {error}; value, std and n_seeds are numbers or empty")
            continue
        if not _is_possible(value, std, n_seeds):
            problems.add(
                f"{place}: value, std and n_seeds must be finite, std not negative "
                "and n_seeds at least 1"
            )
        if key in numbers:
            problems.add(f"{place}: the cell {'/'.join(key)} is listed twice; remove one line")
        numbers[key] = Published(
            printed=row["printed"],
            value=value,
            std=std,
            n_seeds=n_seeds,
            unit=row["unit"],
            source=row["source"],
            note=row["note"],
            where=place,
        )
    problems.check_empty()
    return numbers


def _is_possible(value: float | None, std: float | None, n_seeds: int | None) -> bool:
    """Return whether numbers of a cell are finite, and std and n_seeds not too small."""
    if value is not None and not math.isfinite(value):
        return False
    if std is not None and not 0 <= std < math.inf:
        return False
    return n_seeds is None or n_seeds >= 1
