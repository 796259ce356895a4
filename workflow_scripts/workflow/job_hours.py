"""Estimate the hours of the jobs of a call: of cores, or of GPUs.

`plan`, its budget, the lines that a call prints before it starts and those that it ends with are
sums of these.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.wording import count_nouns
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.workflow.gpu_hours import GpuHours, HoursRange
from workflow_scripts.workflow.result_patterns import locate_record
from workflow_scripts.workflow.snakemake_job import SnakemakeJob
from workflow_scripts.workflow.time_limit import Machine, count_saved_steps, estimate_seconds
from workflow_scripts.workflow.wildcards import read_variant_key

OF_VARIANTS = ("train", "search", "evaluate", "intervene")
# The stages whose jobs take time. Downloads are not counted, and all others take seconds.
TIMED_STAGES = (*OF_VARIANTS, "analyse", "prepare", "candidates")
CPU = "cpu"
CUDA = "cuda"


@dataclass
class WorkHours:
    """The sum of the times of jobs. unknown: the number of jobs whose time is not known."""

    hours: HoursRange = field(default_factory=HoursRange)
    unknown: int = 0

    def add(self, hours: HoursRange | None) -> None:
        """Add the time of a job; None if it is not known."""
        if hours is None:
            self.unknown += 1
        else:
            self.hours += hours

    def has_more_than(self, hours: float) -> bool:
        """Whether it takes longer than this, or an unknown time."""
        return self.hours.upper > hours or self.unknown > 0

    def format_time(self, device: str, gpu: str = "") -> str:
        """Format the time, such as `14 core-hours and 3 jobs of unknown time`.

        gpu: whose hours a range is of.
        """
        text = self.hours.format_time("core" if device == CPU else "GPU")
        if gpu and self.hours.lower != self.hours.upper:
            text += f" of {gpu}"
        if not self.unknown:
            return text
        unknown = f"{self.unknown} {'job' if self.unknown == 1 else 'jobs'} of unknown time"
        return f"{text} and {unknown}" if self.hours.upper else unknown

    def format_cell(self) -> str:
        """Format the hours for a column of them, such as `13 + 24 jobs unknown`."""
        parts = []
        if self.hours.upper or not self.unknown:
            parts.append(self.hours.format())
        if self.unknown:
            jobs = count_nouns(self.unknown, "job")
            parts.append(f"{jobs} unknown")
        return " + ".join(parts)


class JobHours:
    """Estimates the hours of jobs on a kind of device, once for all seeds of a variant.

    Jobs may share a GPU. gpu_hours: estimates for times on a GPU that were not measured.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        config: Config,
        device: str,
        gpu_hours: GpuHours | None = None,
    ) -> None:
        self.catalogue = catalogue
        self.config = config
        self.device = device
        self.gpu_hours = gpu_hours or GpuHours(catalogue, config)
        self.hours: dict[tuple[str, str], HoursRange | None] = {}

    def sum_jobs(self, jobs: Iterable[SnakemakeJob]) -> WorkHours:
        """Return the sum of the hours of jobs."""
        work = WorkHours()
        for job in jobs:
            work.add(self.estimate(job))
        return work

    def estimate(self, job: SnakemakeJob) -> HoursRange | None:
        """Estimate the hours of a job; 0 if it takes seconds, None if they are unknown."""
        if job.stage not in TIMED_STAGES:
            return HoursRange()
        key = (job.rule, job.name.rpartition("/seed-")[0] or job.name)
        if key not in self.hours:
            self.hours[key] = self._estimate(job)
        return self.hours[key]

    def _estimate(self, job: SnakemakeJob) -> HoursRange | None:
        """Estimate the hours of a job.

        On a GPU, at the scale of the papers' own models, they are those of GpuHours. Else they are
        by step times, or those that the job took the last time.
        """
        if self.device == CUDA and job.stage in OF_VARIANTS:
            run = read_variant_key(job.wildcards).make_run(seed=0)
            hours = self.gpu_hours.estimate_job(job.rule, run)
            if hours is not None:
                return hours * self._find_open_share(job)
        seconds = self._estimate_seconds(job)
        return None if seconds is None else HoursRange(seconds / 3600, seconds / 3600)

    def _find_open_share(self, job: SnakemakeJob) -> float:
        """Return the share of the updates of a training that no saved state has."""
        saved = count_saved_steps(job)
        if job.rule != "train" or not saved:
            return 1.0
        steps = self.gpu_hours.count_steps(read_variant_key(job.wildcards).make_run(seed=0))
        return max(steps - saved, 0) / steps

    def _estimate_seconds(self, job: SnakemakeJob) -> float | None:
        """Estimate the seconds by step times, else by the last time; None without either."""
        if job.stage not in OF_VARIANTS:
            last = self._find_last(job)
            if last:
                return last
            seconds = self._estimate_alone(job)
            return 0.0 if seconds and self.device != CPU else seconds  # it uses no GPU
        seconds = self._estimate_alone(job)
        if seconds is None:
            return self._find_last(job)
        if "@" in job.wildcards["variant"]:
            return seconds
        run = read_variant_key(job.wildcards).make_run(seed=0)
        scale, precision = job.wildcards["scale"], self.config.precision
        if self.device == CPU:
            return seconds * resolve_training(self.catalogue, run, scale, precision).torch_threads
        step_time = self.gpu_hours.times.find(run, scale, self.device, precision)
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
        is_on_cpu = record.get("device") == CPU
        if job.stage in OF_VARIANTS and is_on_cpu != (self.device == CPU):
            return None
        return record.get("cpu_seconds" if is_on_cpu else "seconds")
