"""Print for `plan --power` whether the planned seeds are enough to decide, and the cost of their runs."""

from rich.console import Console
from rich.table import Table

from workflow_scripts.config.analysis_plan import AnalysisPlan
from workflow_scripts.config.catalogue import Catalogue, Paper
from workflow_scripts.config.planned import list_planned_runs
from workflow_scripts.config.requested import list_lineage
from workflow_scripts.config.runs import Run
from workflow_scripts.config.schema import Config
from workflow_scripts.reporting.claims.power_analysis import Power, compute_power
from workflow_scripts.workflow.step_times import estimate_hours, format_hours

WIDTH = 100  # columns, if the terminal does not report its width


def print_power(catalogue: Catalogue, config: Config, scale: str | None) -> None:
    """Print the primary claims of each chosen paper: the spread of the pilots, seeds, power, runs and core-hours.

    `scale` is the one that was asked for; without one, plans of any scale are shown.
    """
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = WIDTH
    everything: dict[str, list[Run]] = {}
    for key in config.papers:
        paper = catalogue.papers[key]
        if paper.plan is None:
            console.print(f"{key}: no analysis_plan.yaml")
        elif scale and paper.plan.scale != scale:
            console.print(f"{key}: its analysis plan is of the scale {paper.plan.scale}")
        else:
            runs = _show_paper(console, catalogue, config, key, paper, paper.plan)
            everything.setdefault(paper.plan.scale, []).extend(runs)
    if not everything:
        return
    if len(config.papers) > 1:
        for name, runs in everything.items():
            own = list(dict.fromkeys(runs))
            console.print(f"all papers at {name}: {len(own)} runs, {_hours(catalogue, config, own, name)} core-hours")
    for line in (
        "Spread: standard deviation of a seed's effect (paired), else of one side, and degrees of freedom.",
        "Power: chance of 'reproduced' + of 'not reproduced', if the effect is the one in brackets.",
        "Runs: of the cells, and the runs that they start from. A run of several claims counts once in sums.",
        "Core-hours: of training alone, by catalogue/step_times.csv.",
    ):
        console.print(line, style="dim")


def _show_paper(
    console: Console, catalogue: Catalogue, config: Config, key: str, paper: Paper, plan: AnalysisPlan
) -> list[Run]:
    """Print the table of one paper and return the runs of its primary claims."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("primary claim", overflow="fold")
    for heading in ("spread (df)", "seeds", "power if none", "power if half", "runs", "core-hours"):
        table.add_column(heading, justify="right", no_wrap=True)
    everything: dict[Run, None] = {}
    settings = config.model_copy(update={"scale": plan.scale})
    for entry in plan.primary:
        # The runs that decide the claim, after the runs that they start from.
        planned = list_planned_runs(paper, entry)
        runs = list(dict.fromkeys(run for each in planned for run in list_lineage(catalogue, each, settings)))
        everything |= dict.fromkeys(runs)
        seeds = len(plan.select_seeds(entry))
        spread = f"{entry.spread.sd:.3g} ({entry.spread.freedom})" if entry.spread else "shares"
        chances = map(_percent, compute_power(entry, seeds, plan.quantile))
        cost = _hours(catalogue, config, runs, plan.scale)
        table.add_row(entry.claim, spread, str(seeds), *chances, str(len(runs)), cost)
    runs = list(everything)
    table.add_row("sum", "", "", "", "", str(len(runs)), _hours(catalogue, config, runs, plan.scale), style="bold")
    count = len(plan.primary)
    level = f"{100 * (2 * plan.quantile - 1):.4g}%"
    console.print(f"{key} at {plan.scale}: {count} primary claims, intervals of {level}, written {plan.written}")
    console.print(table, soft_wrap=False)
    console.print()
    return runs


def _percent(power: Power) -> str:
    """Format the power of both verdicts and the true effect: `1% + 86% (0)`."""
    return f"{power.reproduced:.0%} + {power.not_reproduced:.0%} ({power.truth})"


def _hours(catalogue: Catalogue, config: Config, runs: list[Run], scale: str) -> str:
    return format_hours(*estimate_hours(catalogue, runs, scale, config.precision, "cpu"))
