"""Print how likely the planned seeds of each primary claim decide it, and what they cost."""

import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.markup import escape

from workflow_scripts.common.console import make_console
from workflow_scripts.config.analysis_plan import (
    AnalysisPlan,
    LaterPlan,
    PlannedClaim,
    PrimaryClaim,
)
from workflow_scripts.config.catalogue import Catalogue, Run
from workflow_scripts.config.claim_needs import find_claim_needs
from workflow_scripts.config.requested import list_lineage, list_requested_runs, select_claim
from workflow_scripts.config.schema import Config
from workflow_scripts.reporting.claims.power_analysis import (
    MOST_SEEDS,
    Power,
    compute_power,
    count_seeds_to_decide,
    select_spread,
)
from workflow_scripts.workflow.job_hours import CPU, JobHours
from workflow_scripts.workflow.planned_jobs import list_run_jobs
from workflow_scripts.workflow.snakemake_job import SnakemakeJob

WIDTH = 100  # columns, if the output is no terminal
INDENT = 2  # of the numbers below a claim, where there is no room next to it
GAP = 2  # columns between two numbers
NOTES = (
    "Spread: standard deviation of a seed's effect (paired), else of one side, and degrees of "
    "freedom; in plans/ its upper 80% limit.",
    "Power: 5+90% is a chance of 5% of 'reproduced' and of 90% of 'not reproduced', if the effect "
    "is the one in brackets. (90:10%): 90% of the left side's seeds succeed, and 10% of the right "
    "side's.",
    "For 80%: seeds with which a verdict has a chance of 80%, if there is no effect & if it is "
    "half.",
    "Runs: those of `./reproduce --claim`, with the runs that they start from. A run of several "
    "claims counts once in sums.",
    "Core-hours: of all jobs on them, by catalogue/step_times.csv; ?: of some it has no time.",
)
# Two lines of each column of numbers.
HEADINGS = (
    ("spread", "(df)"),
    ("", "seeds"),
    ("power", "if none"),
    ("power", "if half"),
    ("for", "80%"),
    ("", "runs"),
    ("core-", "hours"),
)


@dataclass(frozen=True)
class PowerRow:
    """A claim, or the sum, with a text for each of HEADINGS."""

    name: str
    numbers: list[str]


def print_power(catalogue: Catalogue, config: Config, scale: str | None) -> None:
    """Print the primary claims of each chosen paper.

    A row has the spread of the pilots, seeds, power, runs and core-hours. `scale` is that of the
    call; without one, plans of any scale are shown.
    """
    console = make_console(WIDTH)
    for key in config.papers:
        paper = catalogue.papers[key]
        if not paper.plans:
            console.print(f"{key}: no analysis plan")
        for file, plan in paper.plans.items():
            if scale and plan.scale != scale:
                console.print(f"{key}: {file} is of the scale {plan.scale}")
                continue
            console.print(f"{key} at {plan.scale}, {file}: {describe_plan(plan)}")
            if isinstance(plan, LaterPlan):
                console.print(f"a seed: {plan.unit}; on {plan.device} in {plan.precision}")
            rows = make_power_rows(catalogue, config, key, file)
            for line in format_power_lines(rows, console.width):
                console.print(line)
            console.print()
    for note in NOTES:
        console.print(textwrap.fill(note, console.width), style="dim")


def describe_plan(plan: AnalysisPlan) -> str:
    """Describe the number of primary claims of a plan, the level of their intervals and its day."""
    level = f"{100 * (2 * plan.limit_quantile - 1):.4g}%"
    return f"{len(plan.primary)} primary claims, intervals of {level}, written {plan.written}"


def make_power_rows(catalogue: Catalogue, config: Config, key: str, file: str) -> list[PowerRow]:
    """Make a row for each primary claim of one plan of a paper, and one for their sum."""
    paper = catalogue.papers[key]
    plan = paper.plans[file]
    config_of_plan = config.model_copy(update={"scale": plan.scale})
    rows: list[PowerRow] = []
    job_hours = JobHours(catalogue, config_of_plan, CPU)
    runs_of_plan: dict[Run, None] = {}
    jobs_of_plan: dict[str, SnakemakeJob] = {}
    for planned in paper.list_primary_claims():
        if planned.file != file:
            continue
        runs = list_deciding_runs(catalogue, config_of_plan, key, planned)
        jobs = list_deciding_jobs(catalogue, config_of_plan, key, planned, runs)
        cost = _format_cost(job_hours, runs, jobs)
        rows.append(PowerRow(planned.name, [*format_decision(planned), *cost]))
        runs_of_plan |= dict.fromkeys(runs)
        jobs_of_plan |= {job.name: job for job in jobs}
    cost = _format_cost(job_hours, runs_of_plan, jobs_of_plan.values())
    rows.append(PowerRow("sum", ["", "", "", "", "", *cost]))
    return rows


def _format_cost(
    job_hours: JobHours, runs: Collection[Run], jobs: Iterable[SnakemakeJob]
) -> list[str]:
    """Format the number of runs and their core-hours, with `?` for jobs of unknown times."""
    work = job_hours.sum_jobs(jobs)
    hours = work.hours.format()
    if work.unknown:
        hours = f"{hours} + ?" if work.hours.upper else "?"
    return [str(len(runs)), hours]


def format_power_lines(rows: list[PowerRow], width: int) -> Iterator[str]:
    """Yield the lines of a table, for rich; the last row is the sum.

    The numbers of a claim are next to its name if all fit into `width` columns, else below it.
    """
    widths = []
    for number, heading in enumerate(HEADINGS):
        texts = [*heading, *(row.numbers[number] for row in rows)]
        widths.append(max(map(len, texts)) + GAP)
    name_width = max(len(row.name) for row in rows)
    is_narrow = name_width + sum(widths) > width
    if is_narrow:
        name_width = INDENT
    for texts in zip(*HEADINGS, strict=True):
        yield f"[bold]{' ' * name_width}{_align(texts, widths)}[/]"
    for row in rows[:-1]:
        name = escape(row.name)
        if is_narrow:
            yield name
            name = ""
        yield f"{name:{name_width}}{_align(row.numbers, widths)}"
    total = rows[-1]
    line = " " * name_width + _align(total.numbers, widths)
    # Its first numbers are empty, so its name always has room.
    yield f"[bold]{total.name}{line[len(total.name) :]}[/]"


def _align(texts: Sequence[str], widths: list[int]) -> str:
    """Align texts to the right in columns of these widths."""
    return "".join(f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))


def list_deciding_runs(
    catalogue: Catalogue, config: Config, key: str, planned: PlannedClaim
) -> list[Run]:
    """Return the runs that decide a claim, each after the runs that it starts from.

    They are those of `./reproduce --claim`: among them what an analysis reads, such as all models
    of which one asks for the items that all had right.
    """
    config_of_claim = select_claim(config, key, planned.name)
    planned_config = config_of_claim.model_copy(update={"seeds": None, "only": None})
    runs: dict[Run, None] = {}
    for run in list_requested_runs(catalogue, planned_config):
        runs |= dict.fromkeys(list_lineage(catalogue, run, config))
    return list(runs)


def list_deciding_jobs(
    catalogue: Catalogue, config: Config, key: str, planned: PlannedClaim, runs: Sequence[Run]
) -> list[SnakemakeJob]:
    """Return the jobs on the runs that decide a claim. runs: these, and those before them."""
    needs = find_claim_needs(catalogue, key, (planned.name,), config.scale)
    scored = [run for run in runs if run.variant_key in needs.scored_variants]
    intervened = [run for run in runs if run.variant_key in needs.intervened_variants]
    return list_run_jobs(catalogue, config, runs, scored, intervened)


def format_decision(planned: PlannedClaim) -> list[str]:
    """Format spread, planned seeds, their power, and the seeds for a power of 80%."""
    plan = planned.plan
    entry = planned.entry
    n_seeds = len(planned.seeds)
    powers = compute_power(entry, n_seeds, plan)
    return [
        _format_spread(plan, entry),
        str(n_seeds),
        *(_format_power(power) for power in powers),
        _format_seeds_to_decide(plan, entry),
    ]


def _format_spread(plan: AnalysisPlan, entry: PrimaryClaim) -> str:
    if entry.spread is None:
        return "shares" if entry.counts_successes else "ranks"
    spread = select_spread(plan, entry)
    return f"{spread.sd:.3g} ({spread.freedom})"


def _format_power(power: Power) -> str:
    return f"{100 * power.reproduced:.0f}+{100 * power.not_reproduced:.0f}% ({power.truth})"


def _format_seeds_to_decide(plan: AnalysisPlan, entry: PrimaryClaim) -> str:
    counts = []
    for seeds in count_seeds_to_decide(entry, plan):
        counts.append(str(seeds) if seeds else f"> {MOST_SEEDS}")
    return " & ".join(counts)
