"""Estimate training hours, checkpoint sizes and GPU memory.

The measured step times are in catalogue/step_times.csv.
"""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_csv, read_json
from workflow_scripts.common.result_folders import RESULTS
from workflow_scripts.common.run_names import Run, VariantKey
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import resolve_run, resolve_training
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.tasks.run_spec import HubModel, RunSpec
from workflow_scripts.training.settings import TextTraining, Training

STEP_TIMES = Path("catalogue/step_times.csv")
STEP_TIME_COLUMNS = (
    "scale",
    "task",
    "method",
    "variant",
    "device",
    "precision",
    "processes",
    "seconds_per_step",
    "epoch_steps",
    "checkpoint_bytes",
    "gpu_bytes",
    "cpu",
)


@dataclass(frozen=True)
class StepTime:
    """Seconds of an update in each of `processes` trainings that shared a device, or a core.

    extended: the method that was measured, if the run's own extends it and was not.
    """

    seconds: float
    processes: int = 1
    extended: str | None = None


class HoursEstimate(NamedTuple):
    """Training hours of some runs.

    unknown: the number of runs whose step time or number of steps is unknown; `total` leaves them
    out.
    """

    total: float
    unknown: int


@dataclass(frozen=True)
class MeasuredTrainings:
    """A row of catalogue/step_times.csv: finished trainings of a variant on a kind of device.

    seconds: of an update. processes: trainings that shared the device. epoch_steps: the updates of
    a pass through the data, where the settings count passes. gpu_bytes: the most memory of a GPU.
    """

    scale: str
    variant: VariantKey
    device: str
    precision: str
    seconds: float
    processes: int
    epoch_steps: int | None
    checkpoint_bytes: int
    gpu_bytes: int | None


def read_step_times(catalogue: Catalogue, gpu_speed: float = 1.0) -> "StepTimes":
    """Read catalogue/step_times.csv.

    Its seconds on a GPU are those of an H100, and are divided by `gpu_speed`, the speed of another
    GPU in relation to it.
    """
    rows = read_csv(STEP_TIMES, STEP_TIME_COLUMNS)
    parsed = [_parse_row(row, gpu_speed) for row in rows]
    return StepTimes(catalogue, parsed)


def _parse_row(row: dict[str, str], gpu_speed: float) -> MeasuredTrainings:
    """Parse a row of the file. Raises UserError for what is no number."""
    speed = 1.0 if row["device"] == "cpu" else gpu_speed
    try:
        return MeasuredTrainings(
            scale=row["scale"],
            variant=VariantKey(row["task"], row["method"], row["variant"]),
            device=row["device"],
            precision=row["precision"],
            seconds=float(row["seconds_per_step"]) / speed,
            processes=int(row["processes"] or 1),
            epoch_steps=int(row["epoch_steps"]) if row["epoch_steps"] else None,
            checkpoint_bytes=int(row["checkpoint_bytes"]),
            gpu_bytes=int(row["gpu_bytes"]) if row["gpu_bytes"] else None,
        )
    except ValueError as error:
        names = "/".join(row[name] for name in ("scale", "task", "method", "variant"))
        raise UserError(f"{STEP_TIMES}: {names}: {error}; correct it") from error


@dataclass(frozen=True)
class StepTimes:
    """What finished trainings took, and what similar trainings of a catalogue will take."""

    catalogue: Catalogue
    rows: list[MeasuredTrainings]

    def find(self, run: Run, scale: str, device: str, precision: str = "auto") -> StepTime | None:
        """Return the recorded step time of this run, else of similar runs; None if unknown.

        Where its method has no such time, that of the nearest method that it extends counts. Of
        each group of rows those in the run's precision count, if there are any.
        """
        is_cpu = device == "cpu"
        same = []
        for row in self.rows:
            if row.scale == scale and (row.device == "cpu") == is_cpu:
                same.append(row)
        alike = [row for row in same if self.is_alike(row, run)]
        own = [row for row in same if row.variant == run.variant_key]
        of_name = [row for row in alike if row.variant.variant == run.variant]
        rows = own or of_name or alike
        extended = None
        if not rows:
            for extended in self.catalogue.methods[run.method].extended:
                rows = [row for row in same if self.is_alike(row, run, extended)]
                if rows:
                    break
        if not rows:
            return None
        wanted = resolve_run(self.catalogue, run, scale, precision).precision
        rows = [row for row in rows if row.precision == wanted] or rows
        seconds = statistics.median(row.seconds for row in rows)
        processes = statistics.median(row.processes for row in rows)
        return StepTime(seconds, round(processes), extended)

    def estimate_steps(self, training: Training, run: Run, scale: str) -> int | None:
        """Return the steps of a run with these settings of its training; None if unknown.

        A search trains for its epochs, and the runs after it as long as the best of them. Where the
        training counts epochs, their steps are what a finished run of the same method on the task
        had, else what the prepared data give, which is rather too many: no tokenizer has filtered
        their examples yet.
        """
        if training.epochs is None:
            return self._estimate_search_steps(training, run, scale) or training.max_steps
        epoch_steps = []
        for row in self.rows:
            is_same = (row.scale, *row.variant[:2]) == (scale, run.task, run.method)
            if is_same and row.epoch_steps:
                epoch_steps.append(row.epoch_steps)
        if epoch_steps:
            return training.epochs * round(statistics.median(epoch_steps))
        examples = count_prepared_examples(run.task, scale)
        if examples is None:
            return None
        if not isinstance(training, TextTraining) or training.batch_sentences is None:
            return None
        return training.epochs * math.ceil(examples / training.batch_sentences)

    def _estimate_search_steps(self, training: Training, run: Run, scale: str) -> int | None:
        """Return the steps of a training in a search that counts epochs; None without one.

        The examples are those of the papers' own data, which `sizes` has, else of the prepared
        data; None if neither is known. The batch, which the search chooses, is that of the
        settings.
        """
        search = resolve_training(self.catalogue, run, scale).search
        if not search or not search.epochs:
            return None
        if not isinstance(training, TextTraining) or training.batch_sentences is None:
            return None
        examples = None
        sizes = self.catalogue.tasks[run.task].sizes
        if sizes and self.catalogue.scales[scale].protocol == "paper":
            examples = sizes.examples
        if examples is None:
            examples = count_prepared_examples(run.task, scale)
        if examples is None:
            return None
        return math.ceil(search.epochs * examples / training.batch_sentences)

    def estimate_checkpoint_bytes(self, run: Run, scale: str) -> int | None:
        """Return the size of a run's checkpoint; None if unknown.

        It is as recorded, else that of its hub model in float32.
        """
        rows = [row for row in self.rows if row.scale == scale and self.is_alike(row, run)]
        if rows:
            return max(row.checkpoint_bytes for row in rows)
        origin = resolve_run(self.catalogue, run, scale).origin
        if not isinstance(origin, HubModel):
            return None
        parameters = load_repositories()[origin.hub].parameters
        if parameters is None:
            return None
        return 4 * parameters

    def find_gpu_bytes(self, run: Run, scale: str) -> int | None:
        """Return the largest GPU memory of similar trainings; None if none was measured."""
        measured = []
        for row in self.rows:
            if row.scale == scale and row.gpu_bytes and self.is_alike(row, run):
                measured.append(row.gpu_bytes)
        return max(measured, default=None)

    def is_alike(self, row: MeasuredTrainings, run: Run, method: str | None = None) -> bool:
        """Whether a row is of a method on similar data, with the run's sizes of model and batches.

        method: by default the run's. Data of one preparing module have similar vocabularies and
        lengths. At `full` the sizes differ between tasks.
        """
        tasks = self.catalogue.tasks
        recorded = row.variant
        if recorded.method != (method or run.method) or recorded.task not in tasks:
            return False
        if recorded.variant not in self.catalogue.methods[recorded.method].variants:
            return False
        if tasks[recorded.task].prepare != tasks[run.task].prepare:
            return False
        spec = resolve_training(self.catalogue, run, row.scale)
        recorded_run = recorded.make_run(seed=0)
        recorded_spec = resolve_training(self.catalogue, recorded_run, row.scale)
        return select_sizes(spec) == select_sizes(recorded_spec)


def count_prepared_examples(task: str, scale: str) -> int | None:
    """Return the number of training examples in prepared data; None before they are there."""
    data = RESULTS.scale(scale).data(task).manifest
    if not data.exists():
        return None
    return read_json(data)["splits"]["train"]["rows"]


def estimate_hours(
    catalogue: Catalogue,
    runs: list[Run],
    scale: str,
    precision: str,
    device: str,
    gpu_speed: float = 1.0,
) -> HoursEstimate:
    """Estimate the training hours on one CPU thread, or on one device of another kind.

    Trainings may share the latter. gpu_speed: of a GPU, in relation to an H100.
    """
    times = read_step_times(catalogue, gpu_speed)
    total = 0.0
    unknown = 0
    for run in runs:
        if run.weights:
            continue
        step_time = times.find(run, scale, device, precision)
        training = resolve_training(catalogue, run, scale, precision).training
        steps = times.estimate_steps(training, run, scale)
        if step_time is None or steps is None:
            unknown += 1
            continue
        threads = training.torch_threads if device == "cpu" else 1
        total += threads * steps * step_time.seconds / step_time.processes / 3600
    return HoursEstimate(total, unknown)


def format_extended(catalogue: Catalogue, config: Config, runs: Iterable[Run], device: str) -> str:
    """Name the methods that are estimated by one that they extend; empty if none is."""
    times = read_step_times(catalogue, config.gpu_speed)
    extended = {}
    for run in runs:
        step_time = None
        if not run.weights:
            step_time = times.find(run, config.scale, device, config.precision)
        if step_time and step_time.extended:
            extended[run.method] = step_time.extended
    if not extended:
        return ""
    names = ", ".join(f"{method} as {other}" for method, other in extended.items())
    return f" (by what they extend: {names})"


def format_hours(hours: float) -> str:
    """Format hours with two significant digits."""
    if hours < 10:
        return f"{hours:.2g}"
    return f"{float(f'{hours:.2g}'):,.0f}"


def select_sizes(spec: RunSpec) -> dict[str, int]:
    """Return what determines the time of a step.

    These are the model's sizes without codebooks, and the tokens of a batch.
    """
    sizes = {}
    for key, value in spec.model.settings.model_dump().items():
        if type(value) is int and not key.endswith("_codes"):
            sizes[key] = value
    return sizes | {"batch_tokens": spec.training.batch_tokens}
