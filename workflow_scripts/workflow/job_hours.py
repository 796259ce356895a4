"""Estimate the hours of the jobs of a call: of cores, or of GPUs.

`plan`, its budget, the lines that a call prints before it starts and those that it ends with are
sums of these.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.result_folders import RESULTS
from workflow_scripts.common.wording import count_nouns
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.workflow.gpu_hours import GpuHours, HoursRange
from workflow_scripts.workflow.job_specs import CatalogueSpecs
from workflow_scripts.workflow.jobs import JobInputs
from workflow_scripts.workflow.result_patterns import locate_record
from workflow_scripts.workflow.snakemake_job import SnakemakeJob
from workflow_scripts.workflow.time_limit import (
    Machine,
    estimate_seconds,
    find_newest_step,
    is_of_device,
)
from workflow_scripts.workflow.wildcards import WildcardValues, read_run_name, read_variant_key

# The stages whose jobs use a GPU, if there is one.
OF_VARIANTS = ("train", "search", "evaluate", "intervene")
# The stages whose jobs take time. Downloads are not counted, and all others take seconds.
TIMED_STAGES = (*OF_VARIANTS, "analyse", "prepare", "candidates")
CPU = "cpu"
CUDA = "cuda"


@dataclass
class WorkHours:
    """The sum of the times of jobs. unknown: the number of jobs whose time is not known.

    on_cores: where the hours are of GPUs, the times of the jobs that use none.
    """

    hours: HoursRange = field(default_factory=HoursRange)
    unknown: int = 0
    on_cores: "WorkHours | None" = None

    def add(self, hours: HoursRange | None) -> None:
        """Add the time of a job; None if it is not known."""
        if hours is None:
            self.unknown += 1
        else:
            self.hours += hours

    def has_more_than(self, hours: float) -> bool:
        """Whether it takes longer than this, on GPUs or on cores, or an unknown time."""
        if self.on_cores and self.on_cores.has_more_than(hours):
            return True
        return self.hours.upper > hours or self.unknown > 0

    def format_time(self, device: str, gpu: str = "") -> str:
        """Format the time, such as `14 core-hours and 3 jobs of unknown time`.

        gpu: whose hours a range is of. Where no job uses a GPU, it is the time on cores.
        """
        if self.on_cores and not self.hours.upper and not self.unknown:
            return self.on_cores.format_time(CPU)
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
        self.job_inputs = JobInputs(config, CatalogueSpecs(catalogue, config))
        self.on_cores = None
        if device != CPU:
            self.on_cores = JobHours(catalogue, config, CPU, self.gpu_hours)
        self.hours: dict[tuple[str, str], HoursRange | None] = {}  # where no state is saved

    def sum_jobs(self, jobs: Iterable[SnakemakeJob]) -> WorkHours:
        """Return the sum of the hours of jobs."""
        counted = list(jobs)
        work = WorkHours()
        for job in counted:
            work.add(self.estimate(job))
        if self.on_cores:
            without_gpu = [job for job in counted if job.stage not in OF_VARIANTS]
            work.on_cores = self.on_cores.sum_jobs(without_gpu)
        return work

    def estimate(self, job: SnakemakeJob) -> HoursRange | None:
        """Estimate the hours of a job; None if they are unknown.

        They are 0 if the job takes seconds, and those of a GPU if it uses none.
        """
        stages = TIMED_STAGES if self.device == CPU else OF_VARIANTS
        if job.stage not in stages:
            return HoursRange()
        key = (job.rule, job.name.rpartition("/seed-")[0] or job.name)
        if key not in self.hours:
            self.hours[key] = self._estimate(job)
        hours = self.hours[key]
        return None if hours is None else hours * self._find_open_share(job)

    def _estimate(self, job: SnakemakeJob) -> HoursRange | None:
        """Estimate the hours of a job of which nothing is done yet.

        On a GPU, at the scale of the papers' own models, they are those of GpuHours. Else they are
        by step times, or those that the job took the last time.
        """
        if self.device == CUDA:
            run = read_variant_key(job.wildcards).make_run(seed=0)
            hours = self.gpu_hours.estimate_job(job.rule, run)
            if hours is not None:
                return hours
        seconds = self._estimate_seconds(job)
        return None if seconds is None else HoursRange(seconds / 3600, seconds / 3600)

    def _find_open_share(self, job: SnakemakeJob) -> float:
        """Return the share of the updates of a training that its saved state lacks.

        1 for a job of `plan`, which supposes that nothing is there and names no outputs.
        """
        if job.rule != "train" or not job.outputs:
            return 1.0
        run = read_run_name(job.wildcards)
        any_state = RESULTS.scale(job.wildcards["scale"]).training_state(run, "*")
        if not any_state.parent.exists():  # most runs have none, and their fingerprints take time
            return 1.0
        states = self.job_inputs.locate_training_state(WildcardValues(job.wildcards))
        saved = find_newest_step(Path(states))
        if not saved:
            return 1.0
        try:
            steps = self.gpu_hours.count_steps(run)
        except UserError:  # epochs, and the data have been deleted
            return 1.0
        return max(steps - saved, 0) / steps

    def _estimate_seconds(self, job: SnakemakeJob) -> float | None:
        """Estimate the seconds by step times, else by the last time; None without either.

        Of a job on no variant the last time counts first.
        """
        if job.stage not in OF_VARIANTS:
            return self._find_last(job) or self._estimate_alone(job)
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
        if job.stage in OF_VARIANTS and not is_of_device(record, self.device):
            return None
        return record.get("cpu_seconds" if record.get("device") == CPU else "seconds")
