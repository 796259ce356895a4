"""Say, before a call starts, what it would do again and why, and how long its jobs take.

That is one line for jobs whose results are there and one for jobs that run for the first time. A
third line names models whose licence must have been accepted.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.schema import Config
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.workflow.job_hours import CPU, TIMED_STAGES, JobHours, WorkHours
from workflow_scripts.workflow.rerun_reasons import find_rerun_reasons
from workflow_scripts.workflow.snakemake_job import (
    SnakemakeJob,
    drop_subject,
    format_job_count,
)

# Less work than this is done again without a word.
STALE_HOURS = 1 / 6
# First runs that take less get no line: the demo's.
FIRST_HOURS = 1
SHOWN_REASONS = 2


@dataclass(frozen=True)
class Work:
    """Jobs and the sum of their times."""

    jobs: list[SnakemakeJob]
    hours: WorkHours

    @property
    def first_stage(self) -> str:
        """The first stage of TIMED_STAGES that there is a job of, else that of the first job."""
        stages = {job.stage for job in self.jobs}
        return next((stage for stage in TIMED_STAGES if stage in stages), self.jobs[0].stage)

    def describe_jobs(self) -> str:
        """Count the jobs: those of the first stage, and all others."""
        counts = Counter(job.stage for job in self.jobs)
        text = format_job_count(self.first_stage, counts[self.first_stage])
        others = counts.total() - counts[self.first_stage]
        if others:
            text += f" and {others} other {'job' if others == 1 else 'jobs'}"
        return text

    def describe_time(self, device: str, gpu: str) -> str:
        """Say how long the jobs take on a device. gpu: whose hours a range is of."""
        time = self.hours.format_time(device, gpu)
        return f"about {time}" if self.hours.hours.upper else time

    def describe_time_on_cores(self) -> str:
        """Say how long the jobs that use no GPU take next to the others; empty if that is little.

        Without others it is said as the time of all.
        """
        on_cores = self.hours.on_cores
        uses_gpu = self.hours.hours.upper > 0 or self.hours.unknown > 0
        if on_cores is None or not uses_gpu or not on_cores.has_more_than(STALE_HOURS):
            return ""
        return f" and on cores {on_cores.format_time(CPU)}"


@dataclass(frozen=True)
class CallWork:
    """What a call starts. jobs: all of it. device: cpu, or of another kind."""

    catalogue: Catalogue
    config: Config
    device: str
    jobs: list[SnakemakeJob]

    @cached_property
    def job_hours(self) -> JobHours:
        """Estimates of the hours of its jobs."""
        return JobHours(self.catalogue, self.config, self.device)

    def select_work(self, *, is_stale: bool) -> Work:
        """Return the jobs whose results are there, or the others, with their time.

        Those without a result of their own are left out.
        """
        jobs = []
        for job in self.jobs:
            if job.outputs and any(map(_is_there, job.outputs)) == is_stale:
                jobs.append(job)
        return Work(jobs, self.job_hours.sum_jobs(jobs))

    def has_long_stale_work(self) -> bool:
        """Whether what is done again takes more than STALE_HOURS, or an unknown time."""
        return self.select_work(is_stale=True).hours.has_more_than(STALE_HOURS)

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
        if not trains and not work.hours.has_more_than(STALE_HOURS):
            return None
        time = work.describe_time(self.device, self.job_hours.gpu_hours.gpu)
        time += work.describe_time_on_cores()
        return (
            f"{work.describe_jobs()} again because {self.describe_reasons(work)}: {time}; "
            "`why` lists them; --touch keeps them"
        )

    def describe_first(self) -> str | None:
        """Return the line about what is done for the first time; None if that is little."""
        work = self.select_work(is_stale=False)
        if work.hours.hours.upper <= FIRST_HOURS:
            return None
        time = work.describe_time(self.device, self.job_hours.gpu_hours.gpu)
        return f"{work.describe_jobs()} for the first time: {time}; `plan` says more"

    def describe_reasons(self, work: Work) -> str:
        """Return the reasons of most jobs of the first stage."""
        stage = work.first_stage
        reasons = Reasons(self)
        counts = Counter(reasons.find(job) for job in work.jobs if job.stage == stage)
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
            self.own_reasons[key] = drop_subject("; ".join(reasons), job)
        return self.own_reasons[key]


def _is_there(file: str) -> bool:
    return Path(file).exists()
