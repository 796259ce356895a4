"""Groups of runs whose cost `plan` shows: of a paper, a table or figure, or a claim."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import Run
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.catalogue import Catalogue, parse_run
from workflow_scripts.config.claim_needs import split_claim_names
from workflow_scripts.config.displays import find_paper, select_display_runs, suggest_full_name
from workflow_scripts.config.requested import (
    check_named_claims,
    is_measured_at,
    list_lineage,
    list_requested_runs,
    select_claim,
)
from workflow_scripts.config.schema import Config
from workflow_scripts.workflow.gpu_hours import HoursRange, sum_hours
from workflow_scripts.workflow.planned_jobs import (
    list_display_jobs,
    list_paper_jobs,
    list_run_jobs,
)
from workflow_scripts.workflow.snakemake_job import SnakemakeJob

PRIMARY = "primary"
EstimateJob = Callable[[SnakemakeJob], HoursRange | None]
RUN_SLASHES = 3  # `<task>/<method>/<variant>/seed-<n>`
KINDS = (PRIMARY, "paper", "control")  # of claims, in the order in which a budget takes them


@dataclass(frozen=True)
class CostGroup:
    """Runs that are shown together, with those that they start from.

    name: a paper, `<paper>/<table or figure>`, `<paper>/<claim>` or a run. kind: paper, table,
    figure, run, or one of KINDS for a claim. jobs: all that they need, without downloads.
    """

    name: str
    kind: str
    runs: frozenset[Run]
    jobs: tuple[SnakemakeJob, ...]


def list_cost_groups(catalogue: Catalogue, config: Config, by: str) -> list[CostGroup]:
    """Return the papers of a configuration, their tables and figures, or their claims.

    `by` is paper, table or claim. Those that show no run at the scale are left out.
    """
    groups: list[CostGroup] = []
    for paper in config.papers:
        if by == "paper":
            groups.append(make_paper_group(catalogue, config, paper))
        elif by == "table":
            groups += list_display_groups(catalogue, config, paper)
        else:
            groups += list_claim_groups(catalogue, config, paper)
    return [group for group in groups if group.runs]


def find_cost_groups(
    catalogue: Catalogue, config: Config, targets: Iterable[str]
) -> list[CostGroup]:
    """Return the groups of these names: papers, tables, figures, claims and runs.

    Raises UserError, with the nearest name, for others, and for a claim that is not measured at
    the scale.
    """
    groups = []
    for target in targets:
        if target.count("/") == RUN_SLASHES:
            groups.append(make_run_group(catalogue, config, target))
            continue
        paper, _, name = target.partition("/")
        full_name = suggest_full_name(catalogue, target)
        if full_name and target not in catalogue.papers:
            raise UserError(f"no paper '{target}' in papers/; {full_name}")
        content = find_paper(catalogue, paper)
        if not name:
            groups.append(make_paper_group(catalogue, config, paper))
        elif name in content.displays:
            groups.append(make_display_group(catalogue, config, paper, name))
        elif name in content.claims_by_name:
            groups.append(make_claim_group(catalogue, config, paper, name))
        else:
            known = [*content.displays, *content.claims_by_name]
            suggestion = suggest_name(name, known)
            raise UserError(f"papers/{paper}: no table, figure or claim '{name}'; {suggestion}")
    return groups


def make_run_group(catalogue: Catalogue, config: Config, name: str) -> CostGroup:
    """Return a run and those that it starts from. Raises UserError for an unknown name."""
    run = parse_run(catalogue, name)
    lineage = list_lineage(catalogue, run, config)
    jobs = list_run_jobs(catalogue, config, lineage, scored=[run], intervened=[])
    return CostGroup(name, "run", frozenset(lineage), tuple(jobs))


def make_paper_group(catalogue: Catalogue, config: Config, paper: str) -> CostGroup:
    """Return all runs that a paper requests."""
    config_of_paper = config.model_copy(update={"papers": [paper]})
    runs = list(list_requested_runs(catalogue, config_of_paper))
    jobs = list_paper_jobs(catalogue, config_of_paper, paper, runs)
    return CostGroup(paper, "paper", frozenset(runs), tuple(jobs))


def list_display_groups(catalogue: Catalogue, config: Config, paper: str) -> list[CostGroup]:
    """Return the tables and figures of a paper, in its order."""
    names = catalogue.papers[paper].displays
    return [make_display_group(catalogue, config, paper, name) for name in names]


def make_display_group(catalogue: Catalogue, config: Config, paper: str, name: str) -> CostGroup:
    """Return the runs that a table or figure shows, and those that its analyses read."""
    content = catalogue.papers[paper]
    display = content.displays[name]
    config_of_paper = config.model_copy(update={"papers": [paper]})
    requested = list_requested_runs(catalogue, config_of_paper)
    runs = set(select_display_runs(display, requested))
    for analysis in display.list_analyses():
        runs.update(select_display_runs(content.analyses[analysis], requested))
    lineages = (list_lineage(catalogue, run, config) for run in runs)
    with_parents = list(dict.fromkeys(run for lineage in lineages for run in lineage))
    jobs = list_display_jobs(catalogue, config, paper, name, requested, with_parents)
    return CostGroup(f"{paper}/{name}", display.kind, frozenset(with_parents), tuple(jobs))


def list_claim_groups(catalogue: Catalogue, config: Config, paper: str) -> list[CostGroup]:
    """Return the claims of a paper that are measured at the scale, the primary ones first.

    Where the configuration names claims, they are those of them that are of the paper.
    """
    names: Iterable[str] = catalogue.papers[paper].claims_by_name
    if config.claims:
        check_named_claims(catalogue, config)
        names = split_claim_names(config.claims).get(paper, ())
    groups = []
    for name in names:
        if is_measured_at(catalogue, f"{paper}/{name}", config.scale, config.only):
            groups.append(make_claim_group(catalogue, config, paper, name))
    return sorted(groups, key=lambda group: KINDS.index(group.kind))


def list_left_out_claims(catalogue: Catalogue, config: Config) -> list[str]:
    """Return the claims of a scale, `<paper>/<claim>`, that `only: paper` leaves out.

    The primary ones come first.
    """
    if config.only is None:
        return []
    left_out = []
    for paper in config.papers:
        for claim in catalogue.papers[paper].claims_by_name:
            name = f"{paper}/{claim}"
            is_measured = is_measured_at(catalogue, name, config.scale)
            if is_measured and not is_measured_at(catalogue, name, config.scale, config.only):
                left_out.append(name)
    return sorted(left_out, key=lambda name: not is_primary(catalogue, name))


def is_primary(catalogue: Catalogue, name: str, scale: str | None = None) -> bool:
    """Whether the claim `<paper>/<claim>` is primary in a plan: of any scale, or of this one."""
    paper, _, claim = name.partition("/")
    planned_claims = catalogue.papers[paper].list_primary_claims(scale)
    return claim in {planned.name for planned in planned_claims}


def make_claim_group(catalogue: Catalogue, config: Config, paper: str, name: str) -> CostGroup:
    """Return the runs that a claim needs. Primary is one that is so in a plan of any scale.

    Raises UserError if the claim is not measured at the scale.
    """
    content = catalogue.papers[paper]
    config_of_claim = select_claim(config, paper, name)
    runs = list(list_requested_runs(catalogue, config_of_claim))
    jobs = list_paper_jobs(catalogue, config_of_claim, paper, runs)
    kind: str = content.claims_by_name[name].kind
    full_name = f"{paper}/{name}"
    if is_primary(catalogue, full_name):
        kind = PRIMARY
    return CostGroup(full_name, kind, frozenset(runs), tuple(jobs))


@dataclass(frozen=True)
class AddedClaim:
    """A claim that a budget takes: the hours that it adds, and the sum with those before it.

    adds_runs: whether it needs jobs on runs that no claim before it needs.
    """

    group: CostGroup
    added: HoursRange
    total: HoursRange
    adds_runs: bool


def choose_claims(
    groups: Iterable[CostGroup], estimate: EstimateJob, budget: float
) -> list[AddedClaim]:
    """Choose the claims that fit into `budget` GPU-hours, by the upper ends of their ranges.

    First the primary ones, then the paper's others, then controls. Of each kind the one that adds
    the least is next, until none fits. What an earlier claim needs costs nothing. Jobs of unknown
    time are not counted.
    """
    waiting = [(group, _estimate_jobs(group, estimate)) for group in groups]
    chosen: list[AddedClaim] = []
    paid: set[str] = set()
    total = HoursRange()
    for kind in KINDS:
        of_kind = [entry for entry in waiting if entry[0].kind == kind]
        while of_kind:
            added = [_sum_unpaid(hours, paid) for _, hours in of_kind]
            least = min(range(len(of_kind)), key=lambda number: added[number].upper)
            if total.upper + added[least].upper > budget:
                break
            group, _ = of_kind.pop(least)
            total += added[least]
            adds_runs = any(job.run and job.name not in paid for job in group.jobs)
            paid.update(job.name for job in group.jobs)
            chosen.append(AddedClaim(group, added[least], total, adds_runs))
    return chosen


def _estimate_jobs(group: CostGroup, estimate: EstimateJob) -> dict[str, HoursRange]:
    """Return the hours of the jobs of a group that take any, by their names."""
    hours_of_jobs = {}
    for job in group.jobs:
        hours = estimate(job)
        if hours and hours.upper:
            hours_of_jobs[job.name] = hours
    return hours_of_jobs


def _sum_unpaid(hours_of_jobs: dict[str, HoursRange], paid: set[str]) -> HoursRange:
    return sum_hours(hours for name, hours in hours_of_jobs.items() if name not in paid)
