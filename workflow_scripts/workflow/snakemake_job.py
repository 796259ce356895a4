"""A job of a Snakemake call: what a dry run, or Snakemake's graph of jobs, says of it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from workflow_scripts.common.run_names import Run
from workflow_scripts.workflow.result_patterns import get_stage
from workflow_scripts.workflow.wildcards import read_run_name

# Rules with one job per run.
RUN_RULES = ("train", "evaluate", "intervene")
# Stage -> what one job makes, and what several make.
NOUNS = {
    "fetch": ("download", "downloads"),
    "fetch_model": ("downloaded model", "downloaded models"),
    "prepare": ("data set", "data sets"),
    "candidates": ("list of candidates", "lists of candidates"),
    "search": ("search", "searches"),
    "train": ("training", "trainings"),
    "evaluate": ("evaluation", "evaluations"),
    "intervene": ("intervention", "interventions"),
    "analyse": ("analysis", "analyses"),
    "table": ("table", "tables"),
    "figure": ("figure", "figures"),
    "claim": ("claim", "claims"),
    "claims": ("table of claims", "tables of claims"),
    "page": ("page", "pages"),
}


def format_job_count(stage: str, count: int) -> str:
    """Format a number of jobs of a stage, such as `3 trainings`."""
    one, several = NOUNS.get(stage, (f"job of {stage}", f"jobs of {stage}"))
    return f"{count} {one if count == 1 else several}"


@dataclass(eq=False)
class SnakemakeJob:
    """A job that Snakemake would run.

    reason: Snakemake's. needed: the jobs whose outputs it reads; `set_needed_jobs` finds them.
    """

    rule: str
    wildcards: dict[str, str]
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    reason: str = ""
    command: str = ""
    needed: list["SnakemakeJob"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name, such as `train scan-jump-x2/transformer/default/seed-1`."""
        return f"{self.rule} {self.subject}".strip()

    @property
    def subject(self) -> str:
        """What the job is about, such as a run; empty for a job that its rule alone names."""
        return "/".join(value for key, value in self.wildcards.items() if key != "scale")

    @property
    def stage(self) -> str:
        """The stage of its rule."""
        return get_stage(self.rule)

    @property
    def run(self) -> Run | None:
        """The run that it trains, scores or intervenes on; None for other jobs."""
        if self.rule not in RUN_RULES:
            return None
        return read_run_name(self.wildcards)


def drop_subject(text: str, job: SnakemakeJob) -> str:
    """Return a text about a job as it is about others like it."""
    return text.replace(job.subject, "…") if job.subject else text


def count_by_stage(jobs: Iterable[SnakemakeJob]) -> str:
    """Count jobs by stage, such as `2 trainings, 1 table`."""
    counts = []
    for stage, count in Counter(job.stage for job in jobs).items():
        counts.append(format_job_count(stage, count))
    return ", ".join(counts)


def set_needed_jobs(jobs: Iterable[SnakemakeJob]) -> list[SnakemakeJob]:
    """Set what each job needs of the others, and return the jobs."""
    linked = list(jobs)
    makers: dict[str, SnakemakeJob] = {}
    for job in linked:
        makers |= dict.fromkeys(job.outputs, job)
    for job in linked:
        needed = dict.fromkeys(makers[file] for file in job.inputs if file in makers)
        job.needed = list(needed)
    return linked
