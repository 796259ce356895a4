"""Read published.csv, the numbers that a paper prints."""

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from workflow_scripts.common.errors import Problems, UserError

Key = tuple[str, str, str, str]  # display, row, column, metric
PUBLISHED_COLUMNS = (
    "display", "row", "column", "metric", "printed", "value", "unit", "std", "n_seeds", "source", "note",
)  # fmt: skip


@dataclass(frozen=True)
class Published:
    """A published number. `printed` is the verbatim text; `value` is None if the paper prints a bound or words."""

    printed: str
    value: float | None
    std: float | None
    n_seeds: int | None
    unit: str
    source: str
    note: str
    where: str = field(default="", compare=False)  # file:line


def read_published(path: Path) -> dict[Key, Published]:
    """Read published.csv. Raises UserError with file and line of every wrong header, line, number or repeated cell."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
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
    return parse_published((f"{path}:{reader.line_num}", row) for row in reader)


def parse_published(rows: Iterable[tuple[str, dict[str, str]]]) -> dict[Key, Published]:
    """Parse (place, row) of a published.csv. Raises UserError with every wrong row, number or repeated cell."""
    found: dict[Key, Published] = {}
    problems = Problems()
    for where, row in rows:
        if None in row or None in row.values():
            problems.add(f"{where}: not {len(PUBLISHED_COLUMNS)} columns; quote texts with commas")
            continue
        key = (row["display"], row["row"], row["column"], row["metric"])
        try:
            value, std = (float(row[name]) if row[name] else None for name in ("value", "std"))
            n_seeds = int(row["n_seeds"]) if row["n_seeds"] else None
        except ValueError as error:
            problems.add(f"{where}: {error}; value, std and n_seeds are numbers or empty")
            continue
        if (
            not all(math.isfinite(number or 0) for number in (value, std))
            or (std or 0) < 0
            or (n_seeds or 1) < 1
        ):
            problems.add(
                f"{where}: value, std and n_seeds must be finite, std not negative and n_seeds at least 1"
            )
        if key in found:
            problems.add(f"{where}: the cell {'/'.join(key)} is listed twice; remove one line")
        found[key] = Published(
            row["printed"], value, std, n_seeds, row["unit"], row["source"], row["note"], where
        )
    problems.check_empty()
    return found
