"""A job of a Snakemake call: what a dry run, or Snakemake's graph of jobs, says of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from workflow_scripts.common.run_names import Run
from workflow_scripts.workflow.wildcards import read_run_name

# Rules with one job per run.
RUN_RULES = ("train", "evaluate", "intervene")
# What the jobs of a stage are called: (one, several).
NOUNS = {
    "train": ("training", "trainings"),
    "search": ("search", "searches"),
    "evaluate": ("evaluation", "evaluations"),
    "intervene": ("intervention", "interventions"),
    "analyse": ("analysis", "analyses"),
    "prepare": ("data set", "data sets"),
    "candidates": ("list of candidates", "lists of candidates"),
    "fetch_model": ("model", "models"),
}
LARGE = "_large"  # end of the name of a rule for large data


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
        wildcards = [value for key, value in self.wildcards.items() if key != "scale"]
        return f"{self.rule} {'/'.join(wildcards)}".strip()

    @property
    def stage(self) -> str:
        """The rule, without its distinction of large data."""
        return self.rule.removesuffix(LARGE)

    @property
    def run(self) -> Run | None:
        """The run that it trains, scores or intervenes on; None for other jobs."""
        if self.rule not in RUN_RULES:
            return None
        return read_run_name(self.wildcards)


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
