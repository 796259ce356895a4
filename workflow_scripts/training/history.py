"""Read and write training.csv: one line per step and logged value."""

import math
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_csv, write_csv

COLUMNS = ("step", "name", "value")


def write_history(path: Path, history: list[tuple[int, str, float]]) -> None:
    """Write training.csv (step, name, value). Values read back exactly."""
    write_csv(path, COLUMNS, (dict(zip(COLUMNS, row, strict=True)) for row in history))


def read_history(path: Path) -> list[tuple[int, str, float]]:
    """Read a file of `write_history`. Raises UserError if it is another file."""
    rows = read_csv(path, COLUMNS)
    try:
        found = [(int(row["step"]), row["name"], float(row["value"])) for row in rows]
        if odd := [value for _, _, value in found if not math.isfinite(value)]:
            raise ValueError(f"a value is {odd[0]}")
        return found
    except ValueError as error:
        raise UserError(
            f"{path}: {error}; delete {path.parent} and run ./reproduce again"
        ) from error
