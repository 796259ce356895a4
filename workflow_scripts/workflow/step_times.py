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
    """Rows of catalogue/step_times.csv; none if nothing was recorded yet."""
    if not STEP_TIMES.exists():
        return []
    with open(STEP_TIMES, newline="") as stream:
        return list(csv.DictReader(stream))


def seconds_per_step(times: list[dict[str, str]], run: Run, scale: str, device: str) -> float | None:
    """Recorded seconds of a step of this run, else of runs like it, at the scale on this kind of device, if any."""
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
    """Size of a checkpoint like this run's: as recorded, or of the hub's model that it starts from, in float32; None if
    neither is known."""
    rows = [row for row in times if row["scale"] == scale and is_alike(row, run)]
    if rows:
        return max(int(row["checkpoint_bytes"]) for row in rows)
    init = resolve_run(load_catalogue(), run, scale)["init"]
    parameters = load_repositories()[init["hub"]].parameters if init and "hub" in init else None
    return parameters and 4 * parameters


def gpu_bytes(times: list[dict[str, str]], run: Run, scale: str) -> int | None:
    """The most memory of a GPU that trainings like this run have used; None where none was measured on one."""
    rows = [row for row in times if row["scale"] == scale and row["gpu_bytes"] and is_alike(row, run)]
    return max((int(row["gpu_bytes"]) for row in rows), default=None)


def is_alike(row: dict[str, str], run: Run) -> bool:
    """Whether a row is of the run's method on data of one kind (so that vocabularies and lengths are about the same),
    with a model and batches of the same size: at `paper` these differ from task to task."""
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
    """What the time of a step hangs on most: the sizes of the model, but for its codebooks', and a batch's tokens."""
    model = {key: n for key, n in spec["model"].items() if type(n) is int and not key.endswith("_codes")}
    return model | {"batch_tokens": spec["training"]["batch_tokens"]}
