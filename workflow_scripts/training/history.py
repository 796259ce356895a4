"""training.csv: what was logged in a training, a line for each step and value."""

import csv
from pathlib import Path


def write_history(path: Path, history: list[tuple[int, str, float]]) -> None:
    """Write `training.csv`: step, name, value, with values that read back exactly."""
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("step", "name", "value"))
        writer.writerows((step, name, repr(value)) for step, name, value in history)


def read_history(path: Path) -> list[tuple[int, str, float]]:
    """Read what `write_history` wrote."""
    with open(path, newline="") as stream:
        return [(int(row["step"]), row["name"], float(row["value"])) for row in csv.DictReader(stream)]
