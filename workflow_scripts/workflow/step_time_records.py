"""Record the step times of finished trainings in catalogue/step_times.csv.

`step_times` estimates hours, checkpoint sizes and GPU memory from them.
"""

import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_csv, read_mapping, write_csv
from workflow_scripts.common.result_folders import ResultsFolder, RunFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.common.wording import count_nouns
from workflow_scripts.config.catalogue import Catalogue, check_run
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.tasks.run_spec import read_run_spec
from workflow_scripts.workflow.step_times import STEP_TIME_COLUMNS, STEP_TIMES, select_sizes

NAMES = ("scale", "task", "method", "variant", "device", "precision")
# What is read of a record.json.
MEASURED = ("device", "precision", "seconds_per_step", "peak_gpu_memory_bytes", "cpu")


@dataclass(frozen=True)
class MeasuredRun:
    """What a finished training measured; 0 for a number that is unknown, or that it has none of."""

    scale: str
    task: str
    method: str
    variant: str
    device: str
    precision: str
    processes: int
    seconds_per_step: float
    epoch_steps: int
    checkpoint_bytes: int
    gpu_bytes: int
    cpu: str

    @property
    def names(self) -> tuple[str, ...]:
        """What tells its row of step_times.csv from the others."""
        return tuple(getattr(self, name) for name in NAMES)


def record_step_times(catalogue: Catalogue, results: Path, gpu_speed: float) -> None:
    """Collect median step times from every run.json under `results` in catalogue/step_times.csv.

    Runs of a name that the catalogue no longer has, and those without weights, are skipped.

    gpu_speed: of the GPU that they were measured on, in relation to the H100 whose seconds the
    file has.
    """
    measured: dict[tuple[str, ...], list[MeasuredRun]] = defaultdict(list)
    skipped = 0
    for scale in ResultsFolder(results).list_scales():
        for folder in scale.list_trained_runs():
            if not has_known_name(catalogue, folder) or not folder.weights.exists():
                skipped += 1
                continue
            run = read_measured_run(catalogue, folder)
            measured[run.names].append(run)
    if skipped:
        print(f"{count_nouns(skipped, 'run')} skipped: not in the catalogue, or without weights")
    if not measured:
        raise UserError(f"no finished run under {results}; train some first with ./reproduce")
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in read_csv(STEP_TIMES):
        rows[tuple(row[name] for name in NAMES)] = dict(row)
    for names, runs in measured.items():
        rows[names] = summarise_measured_runs(runs, gpu_speed)
    write_csv(STEP_TIMES, STEP_TIME_COLUMNS, [rows[names] for names in sorted(rows)])
    print(f"{len(measured)} step times written to {STEP_TIMES}")


def has_known_name(catalogue: Catalogue, folder: RunFolder) -> bool:
    """Whether the catalogue has the scale and the variant of a run."""
    if folder.scale.path.name not in catalogue.scales:
        return False
    try:
        check_run(catalogue, Run.parse(folder.name))
    except UserError:
        return False
    return True


def read_measured_run(catalogue: Catalogue, folder: RunFolder) -> MeasuredRun:
    """Read the manifest and the record of a training.

    Raises UserError if the catalogue now gives the run another size.
    """
    file = folder.manifest
    run = read_mapping(file, "spec", "scale")
    record = read_mapping(folder.record, *MEASURED)
    scale = run["scale"]
    spec = read_run_spec(run["spec"], file, "spec")
    spec_now = resolve_training(catalogue, spec.variant_key.make_run(seed=0), scale)
    if select_sizes(spec) != select_sizes(spec_now):
        raise UserError(
            f"{file}: its model or batches are not of the size of the scale {scale}; delete it"
        )
    epoch_steps = 0
    if spec.training.epochs:
        epoch_steps = run["steps"] // spec.training.epochs
    return MeasuredRun(
        scale=scale,
        task=spec.task,
        method=spec.method,
        variant=spec.variant,
        device=record["device"],
        precision=record["precision"],
        processes=record.get("gpu_processes") or 0,  # records of earlier versions have none
        seconds_per_step=record["seconds_per_step"],
        epoch_steps=epoch_steps,
        checkpoint_bytes=folder.weights.stat().st_size,
        gpu_bytes=record["peak_gpu_memory_bytes"] or 0,
        cpu=record["cpu"],
    )


def summarise_measured_runs(runs: list[MeasuredRun], gpu_speed: float) -> dict[str, Any]:
    """Return the row of step_times.csv of runs that differ in the seed alone.

    Its time is of those that shared the device with as many others as most of them did.
    """
    last = runs[-1]
    processes = find_usual_processes(runs)
    alike = [run for run in runs if run.processes == processes]
    seconds = statistics.median(run.seconds_per_step for run in alike)
    if last.device != "cpu":
        seconds *= gpu_speed
    row: dict[str, Any] = dict(zip(NAMES, last.names, strict=True))
    row["processes"] = processes or ""
    row["seconds_per_step"] = f"{seconds:.4g}"
    row["epoch_steps"] = last.epoch_steps or ""
    row["checkpoint_bytes"] = max(run.checkpoint_bytes for run in runs)
    row["gpu_bytes"] = max(run.gpu_bytes for run in runs) or ""
    row["cpu"] = last.cpu
    return row


def find_usual_processes(runs: list[MeasuredRun]) -> int:
    """Return how many trainings shared the device in most of the runs, of equals the fewest.

    0 if that is known of no run.
    """
    counts = Counter(run.processes for run in runs if run.processes)
    return min(counts, key=lambda processes: (-counts[processes], processes), default=0)
