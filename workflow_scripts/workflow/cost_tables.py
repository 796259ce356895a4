"""Print what papers, tables, claims and models cost on GPUs."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from workflow_scripts.common.run_names import Run
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.workflow.cost_groups import CostGroup
from workflow_scripts.workflow.gpu_hours import (
    GPU,
    HIGH_UTILISATION,
    JOB_SECONDS,
    LOW_UTILISATION,
    OPERATION_SECONDS,
    PEAK_FLOPS,
    STATE_BYTES_PER_PARAMETER,
    GpuHours,
    RunMemory,
)
from workflow_scripts.workflow.job_hours import CPU, CUDA, JobHours
from workflow_scripts.workflow.job_specs import find_resources
from workflow_scripts.workflow.job_times import find_job_minutes, format_time_limits
from workflow_scripts.workflow.planned_jobs import list_paper_jobs
from workflow_scripts.workflow.snakemake_job import SnakemakeJob
from workflow_scripts.workflow.step_times import STEP_TIMES
from workflow_scripts.workflow.submitted_time import estimate_submitted_seconds
from workflow_scripts.workflow.targets import list_wildcards
from workflow_scripts.workflow.time_limit import SCORING_SHARES, TRAINING_SHARE

WIDEST = 500  # columns of a table
# GB of the memory of common GPUs, and what a job needs besides what is counted: CUDA's context and
# buffers of its libraries.
CARDS = (16, 24, 40, 80, 141)
CONTEXT_GB = 2
MEASURED = "*"  # after the memory of a training that was measured


def print_group_costs(estimates: GpuHours, groups: Iterable[CostGroup]) -> None:
    """Print the GPU-hours of each group, and of all together."""
    table = make_cost_table("", "", "runs", "measured", "GPU-hours")
    job_hours = JobHours(estimates.catalogue, estimates.config, CUDA, estimates)
    together = JointCosts()
    for group in groups:
        together.add(group)
        cells = format_costs(job_hours, group.runs, group.jobs)
        table.add_row(group.name, group.kind, *cells)
    cells = format_costs(job_hours, together.runs, together.jobs.values())
    table.add_row("together", "", *cells, style="bold")
    print_table(table)
    print_notes(list_range_notes(estimates.config.gpu_speed))


def print_measured_costs(estimates: GpuHours, groups: Iterable[CostGroup]) -> None:
    """Print the hours of each group, and of all together, by recorded step times."""
    table = make_cost_table("", "", "runs", "on CPU: core-hours", "on GPU: GPU-hours")
    catalogue, config = estimates.catalogue, estimates.config
    devices = [JobHours(catalogue, config, device, estimates) for device in (CPU, CUDA)]
    together = JointCosts()
    for group in groups:
        together.add(group)
        cells = [device.sum_jobs(group.jobs).format_cell() for device in devices]
        table.add_row(group.name, group.kind, str(len(group.runs)), *cells)
    cells = [device.sum_jobs(together.jobs.values()).format_cell() for device in devices]
    table.add_row("together", "", str(len(together.runs)), *cells, style="bold")
    print_table(table)
    print(f"Of all jobs, by the step times of {STEP_TIMES}; unknown: jobs without one")


@dataclass
class JointCosts:
    """The runs and jobs of several groups, each once; jobs by their names."""

    runs: set[Run] = field(default_factory=set)
    jobs: dict[str, SnakemakeJob] = field(default_factory=dict)

    def add(self, group: CostGroup) -> None:
        """Add a group."""
        self.runs |= group.runs
        self.jobs |= {job.name: job for job in group.jobs}


def format_costs(
    job_hours: JobHours, runs: Collection[Run], jobs: Iterable[SnakemakeJob]
) -> list[str]:
    """Format the number of runs, of those with a measured step time, and the GPU-hours.

    The hours are followed by the number of jobs whose time is unknown, if there are any.
    """
    measured = sum(job_hours.gpu_hours.is_measured(run) for run in runs)
    return [str(len(runs)), str(measured), job_hours.sum_jobs(jobs).format_cell()]


def print_model_costs(estimates: GpuHours, jobs: int) -> None:
    """Print the memory, disk and hours that each method needs, the largest of its trainings.

    jobs: trainings that run at once.
    """
    table = make_cost_table(
        "method", "params", "memory", "card", "weights", "states", "job", "GPU-hours"
    )
    runs_of_methods: dict[str, list[Run]] = {}
    requested = list_requested_runs(estimates.catalogue, estimates.config)
    job_hours = JobHours(estimates.catalogue, estimates.config, CUDA, estimates)
    jobs_of_methods = map_jobs_to_methods(estimates)
    for run in requested:
        if not run.weights:
            runs_of_methods.setdefault(run.method, []).append(run)
    for method, runs in runs_of_methods.items():
        largest = max(runs, key=lambda run: estimates.find_memory(run).gpu_bytes)
        memory = estimates.find_memory(largest)
        parameters = max(estimates.count(run).parameters for run in runs)
        table.add_row(
            method,
            format_millions(parameters),
            format_gigabytes(memory.gpu_bytes) + (MEASURED if memory.is_measured else ""),
            choose_card(memory),
            format_gigabytes(4 * parameters),
            format_gigabytes(STATE_BYTES_PER_PARAMETER * parameters),
            format_time_limits(list_job_minutes(estimates, runs)),
            job_hours.sum_jobs(jobs_of_methods[method]).format_cell(),
        )
    print_table(table)
    print_notes(list_memory_notes(estimates, requested, jobs))


def map_jobs_to_methods(estimates: GpuHours) -> dict[str, list[SnakemakeJob]]:
    """Return the jobs on runs of each method, and its searches, that a configuration needs."""
    catalogue, config = estimates.catalogue, estimates.config
    papers_by_run = list_requested_runs(catalogue, config)
    jobs: dict[str, SnakemakeJob] = {}
    for paper in config.papers:
        runs = [run for run, papers in papers_by_run.items() if paper in papers]
        jobs |= {job.name: job for job in list_paper_jobs(catalogue, config, paper, runs)}
    jobs_of_methods: dict[str, list[SnakemakeJob]] = {}
    for job in jobs.values():
        if "method" in job.wildcards:
            jobs_of_methods.setdefault(job.wildcards["method"], []).append(job)
    return jobs_of_methods


def list_job_minutes(estimates: GpuHours, runs: Iterable[Run]) -> list[int]:
    """Return the minutes that trainings ask a cluster for at their first attempt."""
    catalogue, config = estimates.catalogue, estimates.config
    minutes = []
    for run in {run.training._replace(seed=0) for run in runs}:
        wildcards = {"scale": config.scale, **list_wildcards(run)}
        seconds = estimate_submitted_seconds(estimates, "train", wildcards, "cuda")
        resources = find_resources(catalogue, run, config.scale)
        minutes.append(find_job_minutes("train", resources, seconds))
    return minutes


def estimate_state_bytes(estimates: GpuHours, runs: Iterable[Run], jobs: int) -> int:
    """Return the disk of the saved states while the `jobs` largest trainings run at once."""
    sizes = [
        STATE_BYTES_PER_PARAMETER * estimates.count(run).parameters
        for run in runs
        if not run.weights
    ]
    return sum(sorted(sizes)[-jobs:])


def choose_card(memory: RunMemory) -> str:
    """Return the smallest common GPU on which a training fits."""
    needed = memory.gpu_bytes / 1e9 + CONTEXT_GB
    for gigabytes in CARDS:
        if needed <= gigabytes:
            return f"{gigabytes} GB"
    return "none"


def list_range_notes(gpu_speed: float) -> Iterator[str]:
    """Yield how GPU-hours are estimated. gpu_speed: of the configuration."""
    share = ", ".join(f"{100 * low:.2g}% in {name}" for name, low in LOW_UTILISATION.items())
    peaks = ", ".join(f"{peak / 1e12:.3g} in {name}" for name, peak in PEAK_FLOPS.items())
    yield "GPU-hours: of all jobs of the runs, of those that they start from, and of searches."
    yield (
        f"Training takes {TRAINING_SHARE} x its updates, an evaluation "
        f"{SCORING_SHARES['evaluate']} x, interventions {SCORING_SHARES['intervene']} x, and the "
        f"start of a job {JOB_SECONDS[0]} to {JOB_SECONDS[1]} s."
    )
    yield (
        f"Updates: as measured on an {GPU} (catalogue/step_times.csv), else a range by counted "
        f"FLOPs, from {100 * HIGH_UTILISATION:.0f}% of its peak ({peaks} TFLOP/s) "
        f"down to the lowest tenth of what was measured ({share}), and no faster there than "
        f"{1e6 * OPERATION_SECONDS:.0f} microseconds an operation. A budget counts the upper end."
    )
    if gpu_speed != 1:
        yield f"All of that is divided by gpu_speed, {gpu_speed:g}."
    else:
        yield "For another GPU give its speed: an A100 has 0.3 of an H100's, --config gpu_speed=0.3"


def list_memory_notes(estimates: GpuHours, runs: Iterable[Run], jobs: int) -> Iterator[str]:
    """Yield how memory and disk are estimated."""
    states = estimate_state_bytes(estimates, runs, jobs)
    yield (
        f"Memory: of the GPU, measured ({MEASURED}), or estimated: weights, gradients, Adam's "
        "moments, and what is stored for the backward pass, in fp32; the card has 2 GB more."
    )
    yield (
        f"States: on disk while a training runs, {STATE_BYTES_PER_PARAMETER} bytes per parameter; "
        f"the {jobs} largest trainings at once need {format_gigabytes(states)} (--jobs)."
    )
    yield (
        "Job: the time that trainings ask a cluster for at their first attempt. One that needs "
        "more continues in another job."
    )
    yield from list_range_notes(estimates.config.gpu_speed)


def make_cost_table(*headings: str) -> Table:
    """Make a table without lines; its first two columns are texts."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for number, heading in enumerate(headings):
        justify = "left" if number == 0 or heading == "" else "right"
        table.add_column(heading, justify=justify, no_wrap=True)
    return table


def print_table(table: Table) -> None:
    """Print a table as wide as its cells: names are copied, so none is cut off or broken."""
    console = Console(highlight=False, width=WIDEST)
    console.width = console.measure(table).maximum
    console.print(table)


def print_notes(lines: Iterable[str]) -> None:
    """Print notes under a table; on a terminal lines are broken between words."""
    console = Console(highlight=False, markup=False)
    for line in lines:
        console.print(line, soft_wrap=not console.is_terminal)


def format_gigabytes(size: float) -> str:
    """Format bytes as GB, or from 1,000 GB on as TB."""
    if size >= 1e12:
        return f"{size / 1e12:.1f} TB"
    decimals = 1 if size < 1e11 else 0
    return f"{size / 1e9:.{decimals}f} GB"


def format_millions(parameters: int) -> str:
    """Format a number of parameters in millions."""
    return f"{parameters / 1e6:,.0f} M"
