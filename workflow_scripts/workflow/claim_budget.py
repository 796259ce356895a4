"""Choose the claims that a budget of GPU-hours affords, and print what they need together."""

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.workflow.cost_groups import (
    PRIMARY,
    AddedClaim,
    CostGroup,
    choose_claims,
    is_primary,
    list_cost_groups,
    list_left_out_claims,
)
from workflow_scripts.workflow.cost_tables import (
    list_range_notes,
    make_cost_table,
    print_notes,
    print_table,
)
from workflow_scripts.workflow.gpu_hours import GpuHours
from workflow_scripts.workflow.job_hours import CUDA, JobHours
from workflow_scripts.workflow.paper_costs import (
    find_needs_of_papers,
    join_needs,
    print_joint_needs,
)
from workflow_scripts.workflow.step_times import format_hours

CLUSTER_WORDS = ("--workflow-profile", "profiles/slurm")


@dataclass(frozen=True)
class CallWords:
    """The words of a call of `plan` that change config.yaml, besides the scale.

    jobs: how many are to run at once, None if the call does not say.
    """

    papers: list[str]
    claims: list[str]
    overrides: list[str]
    jobs: int | None = None


@dataclass(frozen=True)
class ClaimBudget:
    """The claims that fit into a budget of GPU-hours, in their order, and those that do not."""

    hours: float
    chosen: list[AddedClaim]
    left_out: list[CostGroup]

    @property
    def names(self) -> list[str]:
        """The claims that fit, `<paper>/<claim>`."""
        return [entry.group.name for entry in self.chosen]


def choose_affordable_claims(estimates: GpuHours, hours: float) -> ClaimBudget:
    """Return the claims of a configuration that fit into a budget of GPU-hours."""
    groups = list_cost_groups(estimates.catalogue, estimates.config, "claim")
    job_hours = JobHours(estimates.catalogue, estimates.config, CUDA, estimates)
    chosen = choose_claims(groups, job_hours.estimate, hours)
    names = {entry.group.name for entry in chosen}
    return ClaimBudget(hours, chosen, [group for group in groups if group.name not in names])


def print_budget(
    estimates: GpuHours, budget: ClaimBudget, call: CallWords, results: Path, jobs: int
) -> None:
    """Print the claims that fit, what they need together, and the commands that run them.

    jobs: trainings at once, for the disk that their states need.
    """
    table = make_cost_table("claim", "", "GPU-hours added", "sum so far")
    shown = [entry for entry in budget.chosen if is_shown(entry)]
    for entry in shown:
        total = format_hours(entry.total.upper)
        table.add_row(entry.group.name, entry.group.kind, entry.added.format(), total)
    print_table(table)
    print_notes(list_free_claims(budget))
    n_claims = len(budget.chosen) + len(budget.left_out)
    hours = format_hours(budget.hours)
    n_primary = sum(entry.group.kind == PRIMARY for entry in budget.chosen)
    n_all_primary = n_primary + sum(group.kind == PRIMARY for group in budget.left_out)
    print(
        f"{len(budget.chosen)} of {n_claims} claims fit into {hours} GPU-hours of {estimates.gpu} "
        f"(primary: {n_primary} of {n_all_primary})"
    )
    job_hours = JobHours(estimates.catalogue, estimates.config, CUDA, estimates)
    for group in budget.left_out:
        if group.kind == PRIMARY:
            alone = job_hours.sum_jobs(group.jobs).format_time(CUDA)
            print(f"primary, left out: {group.name}, {alone} alone")
    print_notes(list_missing_notes(estimates))
    groups = [entry.group for entry in budget.chosen] + budget.left_out
    print_notes(list_role_notes(estimates.catalogue, estimates.config.scale, groups))
    if budget.chosen:
        print_needs_of_claims(estimates, budget, results, jobs)
        print_commands(estimates.config.scale, budget.hours, call)
    print_notes(list_range_notes(estimates.config.gpu_speed))


def is_shown(entry: AddedClaim) -> bool:
    """Whether a claim has a line: the primary ones, and those that need further runs."""
    return entry.group.kind == PRIMARY or entry.adds_runs


def list_free_claims(budget: ClaimBudget) -> Iterator[str]:
    """Yield how many claims of each paper need no further run."""
    papers = Counter(
        entry.group.name.split("/")[0] for entry in budget.chosen if not is_shown(entry)
    )
    if papers:
        counts = ", ".join(f"{count} of {paper}" for paper, count in papers.items())
        yield f"and {papers.total()} more that need no further run: {counts} (--names lists them)"


def list_missing_notes(estimates: GpuHours) -> Iterator[str]:
    """Yield how many claims, and which primary ones, `only: paper` leaves out."""
    names = list_left_out_claims(estimates.catalogue, estimates.config)
    if not names:
        return
    text = f"`only: paper` leaves out the runs of {len(names)} more claims, which are not counted"
    primary = [name for name in names if is_primary(estimates.catalogue, name)]
    if primary:
        text += f"; primary ones among them: {', '.join(primary)}"
    yield text


def list_role_notes(catalogue: Catalogue, scale: str, groups: Iterable[CostGroup]) -> Iterator[str]:
    """Say which verdict a claim gets at this scale if it is primary only in a plan of another."""
    primary = [group.name for group in groups if group.kind == PRIMARY]
    elsewhere = [name for name in primary if not is_primary(catalogue, name, scale)]
    if not elsewhere:
        return
    count = f"{len(elsewhere)} of the {len(primary)}"
    if len(elsewhere) == len(primary):
        count = "these claims"
    yield (
        f"primary: in a plan of another scale. At {scale} {count} are exploratory, as all others: "
        "each has effect and interval; whether it is reproduced depends also on q over all "
        f"measured ones of the paper: ./reproduce --scale {scale} --finished"
    )


def print_needs_of_claims(
    estimates: GpuHours, budget: ClaimBudget, results: Path, jobs: int
) -> None:
    """Print what the claims that fit need together."""
    papers = list(dict.fromkeys(name.split("/")[0] for name in budget.names))
    changes = {"papers": papers, "claims": budget.names}
    config = estimates.config.model_copy(update=changes)
    needs = join_needs(find_needs_of_papers(estimates.catalogue, config, results))
    print(f"These {len(budget.names)} claims need together, in {len(needs.runs)} runs:")
    print_joint_needs(estimates, needs, jobs)


def format_budget(hours: float) -> str:
    """Format a number of hours with all its digits and no exponent, which --budget does not read.

    nan and inf, which are no budgets, are formatted as such.
    """
    if not math.isfinite(hours):
        return str(hours)
    return f"{Decimal(str(hours)).normalize():f}"


def print_commands(scale: str, hours: float, call: CallWords) -> None:
    """Print the commands that run the claims: on a cluster, and on one machine."""
    words = ["--scale", scale, "--budget", format_budget(hours)]
    for option, values in (
        ("--papers", call.papers),
        ("--claim", call.claims),
        ("--config", call.overrides),
    ):
        if values:
            words += [option, *values]
    at_once = [] if call.jobs is None else ["--jobs", str(call.jobs)]
    print(f"On a SLURM cluster: {shlex.join(['./reproduce', *CLUSTER_WORDS, *at_once, *words])}")
    print(f"On this machine:    {shlex.join(['./reproduce', *words])}")
