"""Say, before a call starts, what it would do again and why, and how long its jobs take.

That is one line for jobs whose results are there and one for jobs that run for the first time. A
third line names models whose licence must have been accepted.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.workflow.gpu_hours import GpuHours, HoursRange
from workflow_scripts.workflow.rerun_reasons import find_rerun_reasons
from workflow_scripts.workflow.result_patterns import locate_record
from workflow_scripts.workflow.snakemake_job import SnakemakeJob
from workflow_scripts.workflow.step_times import read_step_times
from workflow_scripts.workflow.time_limit import Machine, estimate_seconds
from workflow_scripts.workflow.wildcards import read_variant_key

# The jobs that take time, in the order in which a line counts them: (one, several).
NOUNS = {
    "train": ("training", "trainings"),
    "search": ("search", "searches"),
    "evaluate": ("evaluation", "evaluations"),
    "intervene": ("intervention", "interventions"),
    "analyse": ("analysis", "analyses"),
    "prepare": ("data set", "data sets"),
    "candidates": ("list of candidates", "lists of candidates"),
}
OF_VARIANTS = ("train", "search", "evaluate", "intervene")
# Less work than this is done again without a word.
STALE_HOURS = 1 / 6
# First runs that take less get no line: the demo's.
FIRST_HOURS = 1
SHOWN_REASONS = 2


@dataclass
class Work:
    """Jobs and the sum of their times, in hours of one core, or of a GPU.

    unknown: the number of jobs whose time is not known.
    """

    jobs: list[SnakemakeJob] = field(default_factory=list)
    hours: HoursRange = field(default_factory=HoursRange)
    unknown: int = 0

    def has_more_than(self, hours: float) -> bool:
        """Whether it takes longer than this, or an unknown time."""
        return self.hours.upper > hours or self.unknown > 0

    def describe_jobs(self) -> str:
        """Count the jobs: those of the first kind of NOUNS that there is, and all others."""
        counts = Counter(job.stage for job in self.jobs)
        first = next(stage for stage in NOUNS if counts[stage])
        text = f"{counts[first]} {NOUNS[first][counts[first] != 1]}"
        others = counts.total() - counts[first]
        if others:
            text += f" and {others} other {'job' if others == 1 else 'jobs'}"
        return text

    def describe_time(self, device: str, gpu: str) -> str:
        """Say how long the jobs take on a device. gpu: whose hours a range is of."""
        unit = "core-hours" if device == "cpu" else "GPU-hours"
        if self.hours.lower != self.hours.upper:
            unit += f" of {gpu}"
        about = f"about {self.hours.format()} {unit}"
        if not self.unknown:
            return about
        unknown = f"{self.unknown} {'job' if self.unknown == 1 else 'jobs'} of unknown time"
        if not self.hours.upper:
            return unknown
        return f"{about} and {unknown}"


@dataclass(frozen=True)
class CallWork:
    """What a call starts. jobs: all of it. device: cpu, or of another kind."""

    catalogue: Catalogue
    config: Config
    device: str
    jobs: list[SnakemakeJob]

    @cached_property
    def gpu_hours(self) -> GpuHours:
        """Estimates of GPU-hours, for times that were not measured."""
        return GpuHours(self.catalogue, self.config)

    def select_work(self, *, is_stale: bool) -> Work:
        """Return the jobs whose results are there, or the others, with their time."""
        work = Work()
        hours_of_variants: dict[tuple[str, str], HoursRange | None] = {}  # seeds take the same
        for job in self.jobs:
            if job.stage not in NOUNS or any(map(_is_there, job.outputs)) != is_stale:
                continue
            work.jobs.append(job)
            key = (job.rule, job.name.rpartition("/seed-")[0] or job.name)
            if key not in hours_of_variants:
                hours_of_variants[key] = self._estimate(job)
            hours = hours_of_variants[key]
            if hours is None:
                work.unknown += 1
            else:
                work.hours += hours
        return work

    def _estimate(self, job: SnakemakeJob) -> HoursRange | None:
        """Estimate the hours of a job on one core, or on a GPU that it may share with others.

        Where no step time is known, they are those that the job took the last time, else on a GPU
        a range by counted FLOPs. None if that is unknown, too.
        """
        seconds = self._estimate_seconds(job)
        if seconds is not None:
            return HoursRange(seconds / 3600, seconds / 3600)
        if self.device != "cuda" or job.stage not in OF_VARIANTS:
            return None
        run = read_variant_key(job.wildcards).make_run(seed=0)
        return self.gpu_hours.estimate_job(job.rule, run)

    def _estimate_seconds(self, job: SnakemakeJob) -> float | None:
        """Estimate the seconds by step times, else by the last time; None without either."""
        if job.stage not in OF_VARIANTS:
            return self._find_last(job) or self._estimate_alone(job)
        seconds = self._estimate_alone(job)
        if seconds is None:
            return self._find_last(job)
        if "@" in job.wildcards["variant"]:
            return seconds
        run = read_variant_key(job.wildcards).make_run(seed=0)
        scale, precision = job.wildcards["scale"], self.config.precision
        if self.device == "cpu":
            return seconds * resolve_training(self.catalogue, run, scale, precision).torch_threads
        step_time = read_step_times(self.catalogue).find(run, scale, self.device, precision)
        return seconds / step_time.processes if step_time else seconds

    def _estimate_alone(self, job: SnakemakeJob) -> float | None:
        machine = Machine(self.device, slots=1, slowdown=1.0)
        return estimate_seconds(self.catalogue, self.config, machine, job)

    def _find_last(self, job: SnakemakeJob) -> float | None:
        """Return the time in the record of a job's result; None if it was on another device."""
        try:
            record = read_json(locate_record(job.stage, job.wildcards))
        except UserError:
            return None
        is_on_cpu = record.get("device") == "cpu"
        if job.stage in OF_VARIANTS and is_on_cpu != (self.device == "cpu"):
            return None
        return record.get("cpu_seconds" if is_on_cpu else "seconds")

    def has_long_stale_work(self) -> bool:
        """Whether what is done again takes more than STALE_HOURS, or an unknown time."""
        return self.select_work(is_stale=True).has_more_than(STALE_HOURS)

    def describe(self) -> list[str]:
        """Return the lines that a call prints: on long work, and on gated models."""
        lines = (self.describe_first(), self.describe_stale(), self.describe_gated())
        return [line for line in lines if line]

    def describe_gated(self) -> str | None:
        """Return the line about models whose licence must have been accepted; None without one.

        They are among those that the call downloads.
        """
        repositories = load_repositories()
        models = [job.wildcards["model"] for job in self.jobs if job.rule == "fetch_model"]
        gated = sorted(model for model in models if repositories[model].gated)
        if not gated:
            return None
        from huggingface_hub import get_token  # not at the start: few calls need it

        advice = "accept their licences, and set HF_TOKEN: without it their runs are `not run`"
        if get_token():
            advice = "the token's owner must have accepted their licences"
        return f"gated models: {', '.join(gated)}; {advice}"

    def describe_stale(self) -> str | None:
        """Return the line about what is done again; None if that is little and no training."""
        work = self.select_work(is_stale=True)
        trains = any(job.stage in ("train", "search") for job in work.jobs)
        if not trains and not work.has_more_than(STALE_HOURS):
            return None
        return (
            f"{work.describe_jobs()} again because {self.describe_reasons(work.jobs)}: "
            f"{work.describe_time(self.device, self.gpu_hours.gpu)}; `why` lists them; "
            "--touch keeps them"
        )

    def describe_first(self) -> str | None:
        """Return the line about what is done for the first time; None if that is little."""
        work = self.select_work(is_stale=False)
        if work.hours.upper <= FIRST_HOURS:
            return None
        time = work.describe_time(self.device, self.gpu_hours.gpu)
        return f"{work.describe_jobs()} for the first time: {time} with scoring; `plan` says more"

    def describe_reasons(self, stale: Iterable[SnakemakeJob]) -> str:
        """Return the reasons of most jobs of the first kind of NOUNS that there is."""
        jobs = list(stale)
        stage = next(stage for stage in NOUNS if any(job.stage == stage for job in jobs))
        reasons = Reasons(self)
        counts = Counter(reasons.find(job) for job in jobs if job.stage == stage)
        texts = [reason for reason, _ in counts.most_common(SHOWN_REASONS)]
        if len(counts) > 1:
            texts = [f"{reason} ({counts[reason]})" for reason in texts]
        more = len(counts) - len(texts)
        if more:
            texts.append(f"{more} other {'reason' if more == 1 else 'reasons'}")
        return " and ".join(texts)


class Reasons:
    """Finds why jobs of a call are done again, once for all seeds of a variant."""

    def __init__(self, work: CallWork) -> None:
        self.work = work
        self.makers = {file: job for job in work.jobs for file in job.outputs}
        self.own_reasons: dict[str, str] = {}

    def find(self, job: SnakemakeJob) -> str:
        """Return the job's own reason, or that of the first job before it that has one."""
        reason = self._find_own(job)
        if reason:
            return reason
        makers = [self.makers[file] for file in job.inputs if file in self.makers]
        if not makers:
            return job.reason
        return self.find(makers[0])

    def _find_own(self, job: SnakemakeJob) -> str:
        key = f"{job.rule} {job.name.rpartition('/seed-')[0] or job.name} {job.reason}"
        if key not in self.own_reasons:
            work = self.work
            reasons = find_rerun_reasons(work.catalogue, work.config, job, set(self.makers))
            self.own_reasons[key] = "; ".join(reasons)
        return self.own_reasons[key]


def _is_there(file: str) -> bool:
    return Path(file).exists()
