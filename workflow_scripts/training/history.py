"""Read and write training.csv: one line per step and logged value."""

import csv
import math
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_csv


def write_history(path: Path, history: list[tuple[int, str, float]]) -> None:
    """Write training.csv (step, name, value). Values read back exactly."""
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("step", "name", "value"))
        writer.writerows((step, name, repr(value)) for step, name, value in history)


def read_history(path: Path) -> list[tuple[int, str, float]]:
    """Read a file of `write_history`. Raises UserError if it is another file."""
    rows = read_csv(path, ("step", "name", "value"))
    try:
        found = [(int(row["step"]), row["name"], float(row["value"])) for row in rows]
        if odd := [value for _, _, value in found if not math.isfinite(value)]:
            raise ValueError(f"a value is {odd[0]}")
        return found
    except ValueError as error:
        raise UserError(f"{path}: {error}; delete {path.parent} and run ./reproduce again") from error
