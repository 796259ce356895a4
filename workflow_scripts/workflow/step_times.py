"""Estimate training hours, checkpoint sizes and GPU memory from catalogue/step_times.csv, the measured step times."""

import math
import statistics
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.files import read_csv, read_json
from workflow_scripts.config.catalogue import Catalogue, Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.paths import RESULTS, data_folder
from workflow_scripts.config.specs import resolve_run, resolve_training
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.tasks.run_spec import HubModel, RunSpec
from workflow_scripts.tasks.settings import TextTraining, Training

STEP_TIMES = Path("catalogue/step_times.csv")


@dataclass(frozen=True)
class StepTime:
    """Seconds of an update in each of `processes` trainings that shared a device, or a core."""

    seconds: float
    processes: int = 1


def estimate_hours(
    catalogue: Catalogue, runs: list[Run], scale: str, precision: str, device: str
) -> tuple[float, int]:
    """Estimate the training hours on one CPU thread, or on one device of another kind, which trainings may share.

    The second value is the number of runs whose step time or number of steps is unknown; the estimate leaves them out.
    """
    times, total, unknown = read_csv(STEP_TIMES), 0.0, 0
    for run in (run for run in runs if not run.weights):
        step_time = find_step_time(times, run, scale, device, precision)
        training = resolve_training(catalogue, run, scale, precision).training
        steps = estimate_steps(times, training, run, scale)
        if step_time is None or steps is None:
            unknown += 1
            continue
        threads = training.torch_threads if device == "cpu" else 1
        total += threads * steps * step_time.seconds / step_time.processes / 3600
    return total, unknown


def estimate_steps(
    times: list[dict[str, str]], training: Training, run: Run, scale: str
) -> int | None:
    """Return the steps of a run with these settings of its training; None if they are unknown.

    Those of an epoch are what a finished run of the same method on the task had, else what the prepared data give,
    which is rather too many: no tokenizer has filtered their examples yet.
    """
    if training.epochs is None:
        return training.max_steps
    names = {"scale": scale, "task": run.task, "method": run.method}
    same = [row for row in times if all(row[name] == value for name, value in names.items())]
    recorded = [int(row["epoch_steps"]) for row in same if row.get("epoch_steps")]
    if recorded:
        return training.epochs * round(statistics.median(recorded))
    data = RESULTS / scale / data_folder(run.task) / "dataset.json"
    if (
        not data.exists()
        or not isinstance(training, TextTraining)
        or training.batch_sentences is None
    ):
        return None
    return training.epochs * math.ceil(
        read_json(data)["splits"]["train"]["rows"] / training.batch_sentences
    )


def format_hours(total: float, unknown: int) -> str:
    """Format the return value of `hours`, such as `12 + 3 runs without a recorded step time`."""
    if not unknown:
        return _format_rounded(total)
    known = f"{_format_rounded(total)} + " if total else ""
    return f"{known}{unknown} run{'s' * (unknown > 1)} without a recorded step time"


def _format_rounded(number: float) -> str:
    """Format a number with two significant digits."""
    return f"{float(f'{number:.2g}'):,.0f}" if number >= 10 else f"{number:.2g}"


def find_step_time(
    times: list[dict[str, str]], run: Run, scale: str, device: str, precision: str = "auto"
) -> StepTime | None:
    """Return the recorded step time of this run, else of similar runs; None if unknown.

    Of each group of rows those in the run's precision count, if there are any.
    """
    same = [
        row
        for row in times
        if row["scale"] == scale and (row["device"] == "cpu") == (device == "cpu")
    ]
    alike = [row for row in same if is_alike(row, run)]
    for rows, names in ((same, ("task", "method", "variant")), (alike, ("variant",)), (alike, ())):
        found = [row for row in rows if all(row[name] == getattr(run, name) for name in names)]
        if not found:
            continue
        wanted = resolve_run(load_catalogue(), run, scale, precision).precision
        in_precision = [row for row in found if row["precision"] == wanted] or found
        return StepTime(
            statistics.median(float(row["seconds_per_step"]) for row in in_precision),
            round(statistics.median(int(row["processes"] or 1) for row in in_precision)),
        )
    return None


def estimate_checkpoint_bytes(times: list[dict[str, str]], run: Run, scale: str) -> int | None:
    """Return the size of the run's checkpoint: as recorded, else of its hub model in float32; None if unknown."""
    rows = [row for row in times if row["scale"] == scale and is_alike(row, run)]
    if rows:
        return max(int(row["checkpoint_bytes"]) for row in rows)
    origin = resolve_run(load_catalogue(), run, scale).origin
    if not isinstance(origin, HubModel):
        return None
    parameters = load_repositories()[origin.hub].parameters
    return parameters and 4 * parameters


def find_gpu_bytes(times: list[dict[str, str]], run: Run, scale: str) -> int | None:
    """Return the largest GPU memory of similar trainings; None if none was measured."""
    rows = [
        row for row in times if row["scale"] == scale and row["gpu_bytes"] and is_alike(row, run)
    ]
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
    ours, theirs = (resolve_training(catalogue, either, row["scale"]) for either in (run, recorded))
    return select_sizes(ours) == select_sizes(theirs)


def select_sizes(spec: RunSpec) -> dict[str, int]:
    """Return what determines the time of a step: the model's sizes without codebooks, and the tokens of a batch."""
    settings = spec.model.settings.model_dump()
    sizes = {
        key: value
        for key, value in settings.items()
        if type(value) is int and not key.endswith("_codes")
    }
    return sizes | {"batch_tokens": spec.training.batch_tokens}
