"""Read and write training.csv: one line per step and logged value."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_csv, write_csv

COLUMNS = ("step", "name", "value")


class LoggedValue(NamedTuple):
    """A value that is logged at a step of a training."""

    step: int
    name: str
    value: float


def write_history(path: Path, history: Iterable[LoggedValue]) -> None:
    """Write training.csv. Values read back exactly."""
    write_csv(path, COLUMNS, (dict(zip(COLUMNS, row, strict=True)) for row in history))


def read_history(path: Path) -> list[LoggedValue]:
    """Read a file of `write_history`. Raises UserError if it is another file."""
    rows = read_csv(path, COLUMNS)
    history = []
    try:
        for row in rows:
            logged = LoggedValue(int(row["step"]), row["name"], float(row["value"]))
            if not math.isfinite(logged.value):
                raise ValueError(f"a value is {logged.value}")
            history.append(logged)
    except ValueError as error:
        raise UserError(
            f"{path}: {error}; delete {path.parent} and run ./reproduce again"
        ) from error
    return history
