"""Measured times of a training step, by machine: catalogue/step_times.csv."""

import csv
import statistics
from pathlib import Path
from typing import Any

from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.run_specs import resolve_run
from workflow_scripts.config.runs import Run
from workflow_scripts.data.sources.declared import load_repositories

STEP_TIMES = Path("catalogue/step_times.csv")


def read_step_times() -> list[dict[str, str]]:
    """Read catalogue/step_times.csv; no rows if it does not exist."""
    if not STEP_TIMES.exists():
        return []
    with open(STEP_TIMES, newline="") as stream:
        return list(csv.DictReader(stream))


def seconds_per_step(times: list[dict[str, str]], run: Run, scale: str, device: str) -> float | None:
    """Return the recorded seconds per step of this run, else of similar runs; None if unknown."""
    same = [row for row in times if row["scale"] == scale and (row["device"] == "cpu") == (device == "cpu")]
    alike = [row for row in same if is_alike(row, run)]
    for rows, names in ((same, ("task", "method", "variant")), (alike, ("variant",)), (alike, ())):
        found = [
            float(row["seconds_per_step"]) for row in rows if all(row[name] == getattr(run, name) for name in names)
        ]
        if found:
            return statistics.median(found)
    return None


def checkpoint_bytes(times: list[dict[str, str]], run: Run, scale: str) -> int | None:
    """Return the size of the run's checkpoint: as recorded, else of its hub model in float32; None if unknown."""
    rows = [row for row in times if row["scale"] == scale and is_alike(row, run)]
    if rows:
        return max(int(row["checkpoint_bytes"]) for row in rows)
    init = resolve_run(load_catalogue(), run, scale)["init"]
    parameters = load_repositories()[init["hub"]].parameters if init and "hub" in init else None
    return parameters and 4 * parameters


def gpu_bytes(times: list[dict[str, str]], run: Run, scale: str) -> int | None:
    """Return the largest GPU memory of similar trainings; None if none was measured."""
    rows = [row for row in times if row["scale"] == scale and row["gpu_bytes"] and is_alike(row, run)]
    return max((int(row["gpu_bytes"]) for row in rows), default=None)


def is_alike(row: dict[str, str], run: Run) -> bool:
    """Whether a row is of the run's method on similar data, with a model and batches of the same size.

    Data of one preparing module have similar vocabularies and lengths. At `full` the sizes differ between tasks.
    """
    catalogue, recorded = load_catalogue(), Run(row["task"], row["method"], row["variant"], seed=0)
    if recorded.method != run.method or recorded.task not in catalogue.tasks:
        return False
    if recorded.variant not in catalogue.methods[recorded.method].variants:
        return False
    if catalogue.tasks[recorded.task].prepare != catalogue.tasks[run.task].prepare:
        return False
    ours, theirs = (resolve_run(catalogue, either, row["scale"]) for either in (run, recorded))
    return sizes(ours) == sizes(theirs)


def sizes(spec: dict[str, Any]) -> dict[str, int]:
    """Return what determines the time of a step: the model's sizes without codebooks, and the tokens of a batch."""
    model = {key: n for key, n in spec["model"].items() if type(n) is int and not key.endswith("_codes")}
    return model | {"batch_tokens": spec["training"]["batch_tokens"]}
