"""Measured times of a training step, by machine: catalogue/step_times.csv."""

import csv
import statistics
from pathlib import Path

from workflow_scripts.catalogue import Run, load_catalogue, resolve_run
from workflow_scripts.data.sources import load_repositories

STEP_TIMES = Path("catalogue/step_times.csv")


def read_step_times() -> list[dict[str, str]]:
    """Rows of catalogue/step_times.csv; none if nothing was recorded yet."""
    if not STEP_TIMES.exists():
        return []
    with open(STEP_TIMES, newline="") as stream:
        return list(csv.DictReader(stream))


def seconds_per_step(times: list[dict[str, str]], run: Run, scale: str, device: str) -> float | None:
    """Recorded time of a step of this run, else of its method, at the scale on this kind of device; None if unknown."""
    same = [row for row in times if row["scale"] == scale and (row["device"] == "cpu") == (device == "cpu")]
    for names in (("task", "method", "variant"), ("method", "variant"), ("method",)):
        found = [float(row["seconds_per_step"]) for row in same if all(row[n] == getattr(run, n) for n in names)]
        if found:
            return statistics.median(found)
    return None


def checkpoint_bytes(times: list[dict[str, str]], run: Run, scale: str) -> int | None:
    """Size of a checkpoint like this run's: as recorded, or of the hub's model that it starts from, in float32; None if
    neither is known."""
    rows = [row for row in times if (row["scale"], row["method"]) == (scale, run.method)]
    if rows:
        return max(int(row["checkpoint_bytes"]) for row in rows)
    init = resolve_run(load_catalogue(), run, scale)["init"]
    parameters = load_repositories()[init["hub"]].parameters if init and "hub" in init else None
    return parameters and 4 * parameters
