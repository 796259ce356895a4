"""Read published.csv, the numbers that a paper prints."""

import csv
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.errors import UserError

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


def read_published(path: Path) -> dict[Key, Published]:
    """Read published.csv. Raises UserError with file and line for a wrong header, line, number or repeated cell."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; restore it from the repository") from error
    found: dict[Key, Published] = {}
    reader = csv.DictReader(lines)
    if tuple(reader.fieldnames or ()) != PUBLISHED_COLUMNS:
        raise UserError(f"{path}:1: the columns must be {','.join(PUBLISHED_COLUMNS)}")
    for row in reader:
        if None in row or None in row.values():
            raise UserError(f"{path}:{reader.line_num}: not {len(PUBLISHED_COLUMNS)} columns; quote texts with commas")
        key = (row["display"], row["row"], row["column"], row["metric"])
        try:
            value, std = (float(row[name]) if row[name] else None for name in ("value", "std"))
            n_seeds = int(row["n_seeds"]) if row["n_seeds"] else None
        except ValueError as error:
            where = f"{path}:{reader.line_num}"
            raise UserError(f"{where}: {error}; value, std and n_seeds are numbers or empty") from error
        if key in found:
            raise UserError(f"{path}:{reader.line_num}: the cell {'/'.join(key)} is listed twice; remove one line")
        found[key] = Published(row["printed"], value, std, n_seeds, row["unit"], row["source"], row["note"])
    return found
