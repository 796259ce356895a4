"""Estimate the GPU-hours of runs: from step times where they were measured, else from FLOPs.

An estimate from FLOPs is a range: the lower end is at a high utilisation of the GPU, the upper end
at a low one that was measured. A budget counts the upper end.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import digest, read_csv, write_csv
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.tasks.run_spec import HubModel, RunSpec
from workflow_scripts.training.settings import TextTraining
from workflow_scripts.training.update_count import BatchSizes, UpdateCount
from workflow_scripts.workflow.step_times import (
    StepTime,
    format_hours,
    read_step_times,
)
from workflow_scripts.workflow.time_limit import SCORING_SHARES, TRAINING_SHARE

# Written by `plan --count`. What it lacks is counted when it is needed, in a second or two each.
UPDATE_COUNTS = Path("catalogue/update_counts.csv")
COUNTED = ("flops", "operations", "parameters", "memory")
GPU = "NVIDIA H100"
# FLOP/s of an NVIDIA H100 (SXM) without sparsity, by precision: fp32 without tensor cores.
PEAK_FLOPS = {"fp32": 67e12, "tf32": 494.7e12, "bf16": 989.4e12}
# The utilisation at the lower end of a range. Products of large matrices reach it.
HIGH_UTILISATION = 0.5
# At the upper end: the lowest decile of what the rows of step_times.csv have had at `full`, where
# small models wait for the CPU. tests/workflow/test_gpu_hours.py computes it from the rows. None of
# them is in bf16: its figure is that of all rows.
LOW_UTILISATION = {"fp32": 0.099, "tf32": 0.038, "bf16": 0.037}
# Of an operation that the CPU starts, at the upper end: an update without CUDA graphs takes at
# least that for each. It is from the same rows: that of the Transformer on COGS was without graphs.
OPERATION_SECONDS = 3.6e-5
# Of each job at the lower and at the upper end: Python starts, and model and data are read.
JOB_SECONDS = (8, 60)
WORD_PIECES = 30_522  # in the vocabulary of bert-base-uncased
# On disk, per parameter: while a state is written two older ones are there, each with weights and
# two moments in fp32, and the best weights of both.
STATE_BYTES_PER_PARAMETER = 3 * 12 + 2 * 4


CountUpdate = Callable[[RunSpec, BatchSizes], UpdateCount]


@dataclass(frozen=True)
class HoursRange:
    """GPU-hours from `lower` to `upper`; both are equal where all step times were measured."""

    lower: float = 0.0
    upper: float = 0.0

    def __add__(self, other: "HoursRange") -> "HoursRange":
        """Return the range of the sum."""
        return HoursRange(self.lower + other.lower, self.upper + other.upper)

    def __mul__(self, factor: float) -> "HoursRange":
        """Return the range of `factor` times as much."""
        return HoursRange(factor * self.lower, factor * self.upper)

    def format(self) -> str:
        """Format the range, such as `12` or `250-1,200`, with two significant digits."""
        lower = format_hours(self.lower)
        upper = format_hours(self.upper)
        if lower == upper:
            return upper
        return f"{lower}-{upper}"

    def format_time(self, unit: str) -> str:
        """Format the range with its unit, such as `14 core-hours`; less than an hour in minutes."""
        if self.upper >= 1:
            text = self.format()
            return f"{text} {unit}-{'hour' if text == '1' else 'hours'}"
        ends = dict.fromkeys(max(round(60 * hours), 1) for hours in (self.lower, self.upper))
        text = "-".join(map(str, ends))
        return f"{text} {unit}-{'minute' if text == '1' else 'minutes'}"


START_OF_JOB = HoursRange(JOB_SECONDS[0] / 3600, JOB_SECONDS[1] / 3600)


def sum_hours(ranges: Iterable[HoursRange]) -> HoursRange:
    """Return the range of a sum."""
    return sum(ranges, start=HoursRange())


@dataclass(frozen=True)
class RunMemory:
    """GPU memory of a training in bytes, and whether it was measured."""

    gpu_bytes: int
    is_measured: bool


class GpuHours:
    """Estimates for the runs of a configuration. Each model and batch is counted once.

    count_update: of `training.update_flops`, which needs torch; called for what
    catalogue/update_counts.csv lacks. Without it, only what is there can be estimated.
    """

    def __init__(
        self, catalogue: Catalogue, config: Config, count_update: CountUpdate | None = None
    ) -> None:
        self.catalogue = catalogue
        self.config = config
        self.count_update = count_update
        self.times = read_step_times(catalogue, config.gpu_speed)
        self.counts = read_counts()
        self.hours: dict[Run, HoursRange] = {}  # of updates, of runs with seed 0

    @property
    def is_estimated(self) -> bool:
        """Whether the scale is that of the papers' own models, to which sizes and FLOPs belong."""
        return self.catalogue.scales[self.config.scale].protocol == "paper"

    @property
    def gpu(self) -> str:
        """The GPU whose hours these are."""
        if self.config.gpu_speed == 1:
            return f"an {GPU}"
        return f"a GPU with {self.config.gpu_speed:g} of the speed of an {GPU}"

    def estimate_search(self, run: Run) -> HoursRange:
        """Estimate the hours of a search: each pair of settings is trained."""
        search = self.resolve(run).search
        assert search, f"{run} has no search"
        updates = self.estimate_updates(run) * (TRAINING_SHARE * search.count_pairs())
        return updates + START_OF_JOB

    def estimate_job(self, rule: str, run: Run) -> HoursRange | None:
        """Estimate the hours of one job on a run, or of the search that starts as the run would.

        Scoring is a share of the training's updates, also where no training is run. None if they
        are not known: at a scale of smaller models, or for a model or task that
        catalogue/update_counts.csv or the catalogue has no counts or sizes of. Where updates are
        counted, raises UserError for a task without sizes.
        """
        if not self.is_estimated:
            return None
        try:
            if not self.can_count(run):
                return None
            if rule == "search":
                return self.estimate_search(run)
            share = TRAINING_SHARE if rule == "train" else SCORING_SHARES[rule]
            return self.estimate_updates(run) * share + START_OF_JOB
        except UserError:  # a task without `sizes`
            if self.count_update:
                raise
            return None

    def can_count(self, run: Run) -> bool:
        """Whether the hours of an update of a training are known, or can be counted."""
        if self.count_update or self.is_measured(run):
            return True
        return self.make_key(run) in self.counts

    def estimate_updates(self, run: Run) -> HoursRange:
        """Estimate the hours of the updates of a training; the same for all seeds."""
        first = run.training._replace(seed=0)
        if first not in self.hours:
            self.hours[first] = self.estimate_update(first) * (self.count_steps(first) / 3600)
        return self.hours[first]

    def estimate_update(self, run: Run) -> HoursRange:
        """Estimate the seconds of an update of a training."""
        measured = self.find_measured_time(run)
        if measured:
            seconds = measured.seconds / measured.processes
            return HoursRange(seconds, seconds)
        counted = self.count(run)
        precision = self.resolve(run).training.precision
        peak = PEAK_FLOPS[precision]
        lower = counted.flops / (HIGH_UTILISATION * peak)
        upper = counted.flops / (LOW_UTILISATION[precision] * peak)
        on_h100 = HoursRange(lower, max(upper, OPERATION_SECONDS * counted.operations))
        return on_h100 * (1 / self.config.gpu_speed)

    def count(self, run: Run) -> UpdateCount:
        """Count an update of a training."""
        key = self.make_key(run)
        if key not in self.counts:
            assert self.count_update, "called for what is counted"
            spec = self.resolve(run)
            self.counts[key] = self.count_update(spec, find_batch_sizes(self.catalogue, spec))
        return self.counts[key]

    def make_key(self, run: Run) -> str:
        """Return the key of a training's update in catalogue/update_counts.csv."""
        spec = self.resolve(run)
        return make_count_key(spec, find_batch_sizes(self.catalogue, spec))

    def count_steps(self, run: Run) -> int:
        """Return the updates of a training: by `sizes` of the task, else as StepTimes has them.

        So the hours of the papers' own models do not depend on what is prepared here. Raises
        UserError if neither tells them.
        """
        spec = self.resolve(run)
        sizes = self.catalogue.tasks[run.task].sizes
        if spec.training.epochs and sizes and sizes.examples:
            batch = find_batch_sizes(self.catalogue, spec)
            return math.ceil(spec.training.epochs * sizes.examples / batch.sentences)
        steps = self.times.estimate_steps(spec.training, run, self.config.scale)
        if steps is None:
            raise UserError(
                f"task {run.task}: its updates cannot be counted before its data are prepared; "
                "add `sizes: {examples: ...}` to it in catalogue/tasks"
            )
        return steps

    def find_memory(self, run: Run) -> RunMemory:
        """Return the GPU memory of a training: as it was measured, else as it is counted."""
        measured = self.times.find_gpu_bytes(run, self.config.scale)
        if measured:
            return RunMemory(measured, is_measured=True)
        parts = self.resolve(run).training.accumulate
        return RunMemory(self.count(run).count_memory_in_parts(parts), is_measured=False)

    def is_measured(self, run: Run) -> bool:
        """Whether the step time of a training, or of one like it, was measured on a GPU."""
        return self.find_measured_time(run.training) is not None

    def find_measured_time(self, training: Run) -> StepTime | None:
        """Return the step time of a training, or of one like it of its method, on a GPU."""
        scale, precision = self.config.scale, self.config.precision
        step_time = self.times.find(training, scale, "cuda", precision)
        if step_time and step_time.extended:
            return None
        return step_time

    def resolve(self, run: Run) -> RunSpec:
        """Return the spec of a training, in the precision of the configuration."""
        return resolve_training(self.catalogue, run, self.config.scale, self.config.precision)


def make_count_key(spec: RunSpec, sizes: BatchSizes) -> str:
    """Return a digest of all on which the count of an update depends, but the code."""
    recomputes = getattr(spec.training, "gradient_checkpointing", False)
    terms = list_terms(spec)
    return digest([spec.kind, spec.model.to_json(), terms, recomputes, asdict(sizes)])


def read_counts() -> dict[str, UpdateCount]:
    """Read the counted updates of catalogue/update_counts.csv, by `make_count_key`."""
    counts = {}
    for row in read_csv(UPDATE_COUNTS):
        numbers = [int(row[name]) for name in COUNTED]
        counts[row["key"]] = UpdateCount(*numbers, how=row["how"])
    return counts


def write_counts(estimates: "GpuHours", runs: Iterable[Run]) -> None:
    """Count the updates of the trainings of `runs`, and write them to catalogue/update_counts.csv.

    The file keeps its rows with other keys, and the names of those that are counted again.
    """
    assert estimates.count_update
    rows: dict[str, dict[str, Any]] = {row["key"]: dict(row) for row in read_csv(UPDATE_COUNTS)}
    counted: set[str] = set()
    for run in runs:
        spec = estimates.resolve(run)
        sizes = find_batch_sizes(estimates.catalogue, spec)
        key = make_count_key(spec, sizes)
        if key in counted:
            continue
        counted.add(key)
        names = {"task": run.task, "method": run.method, "variant": run.training.variant}
        row = rows.get(key, names | {"key": key})
        rows[key] = row | asdict(estimates.count_update(spec, sizes))
    ordered = sorted(rows.values(), key=lambda row: (row["task"], row["method"], row["variant"]))
    write_csv(UPDATE_COUNTS, ("task", "method", "variant", *COUNTED, "how", "key"), ordered)
    print(f"{len(counted)} counts written to {UPDATE_COUNTS}")


def list_terms(spec: RunSpec) -> list[str]:
    """Return the objective's name and its settings that are not 0: they tell which terms it has."""
    if spec.objective is None:
        return []
    settings = spec.objective.settings.model_dump()
    return [spec.objective.name, *(name for name, value in settings.items() if value)]


def find_batch_sizes(catalogue: Catalogue, spec: RunSpec) -> BatchSizes:
    """Return the sizes of a typical batch of a training: `sizes` of its task.

    Raises UserError for a task that needs them and has none.
    """
    sizes = catalogue.tasks[spec.task].sizes
    tokens = tuple(sizes.tokens) if sizes else ()
    if not tokens:
        longest = spec.problem.model_dump().get("longest")
        if longest is None:
            raise UserError(
                f"task {spec.task}: its GPU-hours cannot be counted without its sizes; "
                "add `sizes: {tokens: [...], vocabulary: [...]}` to it in catalogue/tasks"
            )
        tokens = (longest,)
    sentences = spec.training.batch_tokens // max(tokens)
    if isinstance(spec.training, TextTraining) and spec.training.batch_sentences:
        sentences = min(sentences, spec.training.batch_sentences)
    vocabulary = list(sizes.vocabulary) if sizes else []
    if isinstance(spec.origin, HubModel):
        hub_vocabulary = load_repositories()[spec.origin.hub].vocabulary
        assert hub_vocabulary, f"sources.yaml has no vocabulary of {spec.origin.hub}"
        vocabulary[:1] = [hub_vocabulary]
    return BatchSizes(sentences, tokens, tuple(vocabulary or [WORD_PIECES]))
