"""Print how likely the planned seeds of each primary claim decide it, and what they cost."""

from rich.console import Console
from rich.table import Table

from workflow_scripts.config.analysis_plan import (
    AnalysisPlan,
    LaterPlan,
    PlannedClaim,
    PrimaryClaim,
)
from workflow_scripts.config.catalogue import Catalogue, Paper, Run
from workflow_scripts.config.requested import list_lineage
from workflow_scripts.config.schema import Config
from workflow_scripts.reporting.claims.power_analysis import (
    MOST_SEEDS,
    Power,
    compute_power,
    count_seeds_to_decide,
    select_spread,
)
from workflow_scripts.workflow.step_times import format_training_hours

WIDTH = 100  # columns, if the terminal does not report its width
NOTES = (
    "Spread: standard deviation of a seed's effect (paired), else of one side, and degrees of "
    "freedom;",
    "in plans/ its upper 80% limit.",
    "Power: chance of 'reproduced' + of 'not reproduced', if the effect is the one in brackets.",
    "For 80%: seeds with which a verdict has a chance of 80%, if there is no effect & if it is "
    "half.",
    "Runs: of the cells, and the runs that they start from. A run of several claims counts once in "
    "sums.",
    "Core-hours: of training alone, by catalogue/step_times.csv.",
)
HEADINGS = (
    "spread\n(df)",
    "seeds",
    "power\nif none",
    "power\nif half",
    "for\n80%",
    "runs",
    "core-\nhours",
)


def print_power(catalogue: Catalogue, config: Config, scale: str | None) -> None:
    """Print the primary claims of each chosen paper.

    A row has the spread of the pilots, seeds, power, runs and core-hours. `scale` is that of the
    call; without one, plans of any scale are shown.
    """
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = WIDTH
    for key in config.papers:
        paper = catalogue.papers[key]
        if not paper.plans:
            console.print(f"{key}: no analysis plan")
        for file, plan in paper.plans.items():
            if scale and plan.scale != scale:
                console.print(f"{key}: {file} is of the scale {plan.scale}")
                continue
            table = make_power_table(catalogue, config, paper, file)
            console.print(f"{key} at {plan.scale}, {file}: {describe_plan(plan)}")
            if isinstance(plan, LaterPlan):
                console.print(f"a seed: {plan.unit}; on {plan.device} in {plan.precision}")
            console.print(table, soft_wrap=False)
            console.print()
    for line in NOTES:
        console.print(line, style="dim")


def describe_plan(plan: AnalysisPlan) -> str:
    """Describe the number of primary claims of a plan, the level of their intervals and its day."""
    level = f"{100 * (2 * plan.limit_quantile - 1):.4g}%"
    return f"{len(plan.primary)} primary claims, intervals of {level}, written {plan.written}"


def make_power_table(catalogue: Catalogue, config: Config, paper: Paper, file: str) -> Table:
    """Make the table of the primary claims of one plan of a paper, and of their sum."""
    plan = paper.plans[file]
    config_of_plan = config.model_copy(update={"scale": plan.scale})
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("primary claim", overflow="fold")
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    runs_of_plan: dict[Run, None] = {}
    for planned in paper.list_primary_claims():
        if planned.file != file:
            continue
        runs = list_deciding_runs(catalogue, config_of_plan, paper, planned)
        hours = format_training_hours(catalogue, config_of_plan, runs, "cpu")
        table.add_row(planned.name, *format_decision(planned), str(len(runs)), hours)
        runs_of_plan |= dict.fromkeys(runs)
    hours = format_training_hours(catalogue, config_of_plan, list(runs_of_plan), "cpu")
    table.add_row("sum", "", "", "", "", "", str(len(runs_of_plan)), hours, style="bold")
    return table


def list_deciding_runs(
    catalogue: Catalogue, config: Config, paper: Paper, planned: PlannedClaim
) -> list[Run]:
    """Return the runs that decide a claim, each after the runs that it starts from."""
    runs: dict[Run, None] = {}
    for run in paper.list_planned_runs(planned):
        runs |= dict.fromkeys(list_lineage(catalogue, run, config))
    return list(runs)


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
    return f"{select_spread(plan, entry):.3g} ({entry.spread.freedom})"


def _format_power(power: Power) -> str:
    return f"{100 * power.reproduced:.0f}+{100 * power.not_reproduced:.0f}% ({power.truth})"


def _format_seeds_to_decide(plan: AnalysisPlan, entry: PrimaryClaim) -> str:
    counts = []
    for seeds in count_seeds_to_decide(entry, plan):
        counts.append(str(seeds) if seeds else f"> {MOST_SEEDS}")
    return " & ".join(counts)
