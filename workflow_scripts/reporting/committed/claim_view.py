"""A single claim of an export in the terminal: both sides by seed, effect, interval and verdict."""

from dataclasses import dataclass
from statistics import fmean

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from workflow_scripts.reporting.claims.claim_rows import (
    ClaimRow,
    format_effect,
    format_published_effect,
)
from workflow_scripts.reporting.claims.effects import Outcome, Side
from workflow_scripts.reporting.committed.rescoring_runs import Rescored
from workflow_scripts.reporting.committed.run_origins import RunOrigins
from workflow_scripts.reporting.tables.cells import WITHHELD

NAME_WIDTH = 11  # of the names of facts, with the space after them


@dataclass(frozen=True)
class CheckedClaim:
    """A claim that was judged again, and what it rests on.

    rescored: scores from predictions. origins: how its runs were made. datasets: by task, how data
    differ from the paper's.
    """

    row: ClaimRow
    outcome: Outcome
    rescored: Rescored
    origins: RunOrigins
    datasets: dict[str, list[str]]
    scale: str


def print_claim(claim: CheckedClaim) -> None:
    """Print what a claim says, what it compares, what follows, and how its runs were made."""
    row, outcome = claim.row, claim.outcome
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]{row.paper}/{row.claim}[/], {describe_role(row)}")
    console.print(f"  {escape(row.statement)}")
    if row.quote:
        console.print(f"  “{escape(row.quote)}” ({escape(row.source)})")
    for name, side in zip(("left", "right"), outcome.sides, strict=True):
        cells = [cell.key for cell in side.cells]
        more = f", mean with {len(cells) - 1} more" if len(cells) > 1 else ""
        print_fact(console, name, cells[0] + more)
    if _is_shown(outcome):
        console.print(make_seed_table(outcome, claim.rescored))
        console.print(f"  {describe_origin(outcome, claim.rescored)}")
    print_effect(console, row, claim.scale)
    if outcome.success is not None and row.quantile is not None:
        limit = outcome.success.compute_upper_limit(row.quantile)
        print_fact(console, "limit", f"the share on the left is below {limit:.2f}")
    for task, notes in claim.datasets.items():
        print_fact(console, "data", f"{task}: {'; '.join(notes)}")
    print_origins(console, claim.origins)


def describe_role(row: ClaimRow) -> str:
    """Say whether a claim is primary or exploratory, and whether it is a control of ours."""
    if row.is_control:
        return f"{row.role}, a control of ours"
    return row.role


def print_fact(console: Console, name: str, text: str) -> None:
    """Print a line with a name and what is said of it."""
    console.print(f"  {name:{NAME_WIDTH}}{escape(text)}")


def print_effect(console: Console, row: ClaimRow, scale: str) -> None:
    """Print the effect, what was claimed, and the verdict with its reason."""
    absent = "none" if row.has_planned_seeds else "none yet: planned seeds are missing"
    print_fact(console, "effect", format_effect(row) or absent)
    if row.test and row.degrees_of_freedom is not None:
        degrees = f"{row.degrees_of_freedom:.3g} degrees of freedom"
        print_fact(console, "test", f"{row.test}, {degrees}")
    elif row.test:
        print_fact(console, "test", row.test)
    print_fact(console, "claimed", f"> {row.margin:g} {row.unit}".replace("-", "−"))
    published = format_published_effect(row)
    if published:
        print_fact(console, "published", published)
    if row.smallest_effect is not None:
        smallest = f"{row.smallest_effect:.3g} {row.unit}".replace("-", "−")
        print_fact(console, "matters", f"from {smallest} on, the smallest effect of interest")
    verdict = f"[bold]{row.verdict}[/] at {scale}"
    if row.reason:
        verdict += f": {escape(row.reason)}"
    console.print(f"  {'verdict':{NAME_WIDTH}}{verdict}")
    if row.caveat:
        print_fact(console, "caveat", row.caveat)


def print_origins(console: Console, origins: RunOrigins) -> None:
    """Print how the runs were made, as far as it is recorded."""
    if not origins.compared:
        return
    runs = str(origins.compared)
    if origins.parents:
        runs += f", and {origins.parents} that their weights come from"
    print_fact(console, "runs", runs)
    print_fact(console, "started", origins.starts)
    if origins.plan:
        print_fact(console, "plan", origins.plan)
    print_fact(console, "commits", origins.commits)
    print_fact(console, "devices", origins.devices)
    print_fact(console, "torch", origins.torch_versions)


def _is_shown(outcome: Outcome) -> bool:
    """Whether values by seed are shown: not of a plan whose seeds are not all there."""
    if outcome.effect is None and outcome.success is None:
        return False
    return all(cell.status != WITHHELD for side in outcome.sides for cell in side.cells)


def make_seed_table(outcome: Outcome, rescored: Rescored) -> Table:
    """Make the table of both sides by seed; a side of several cells has their mean.

    Values that also follow from predictions have a check mark.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("  seed", "left", "right"):
        table.add_column(name, justify="right")
    sides = [average_side(side) for side in outcome.sides]
    predicted = [average_side(side, rescored) for side in outcome.sides]
    largest = max(abs(value) for values in sides for value in values.values())
    decimals = 2 if largest >= 1 else 4  # a coefficient of variation is a small share
    for seed in sorted({seed for side in sides for seed in side}):
        texts = []
        for values, by_predictions in zip(sides, predicted, strict=True):
            text = f"{values[seed]:.{decimals}f}" if seed in values else ""
            mark = "✓" if seed in by_predictions else " "
            texts.append(f"{text} {mark}")
        table.add_row(str(seed), *texts)
    means = [f"{fmean(values.values()):.{decimals}f}  " for values in sides]
    table.add_row("mean", *means, style="bold")
    published = [format_published_mean(side, decimals) for side in outcome.sides]
    if any(published):
        table.add_row("paper", *(f"{text}  " for text in published), style="dim")
    return table


def format_published_mean(side: Side, decimals: int) -> str:
    """Format the paper's number of a side, the mean over its cells; empty unless each has one."""
    numbers = []
    for cell in side.cells:
        if cell.published is None or cell.published.value is None:
            return ""
        numbers.append(cell.published.value)
    return f"{fmean(numbers):.{decimals}f}"


def average_side(side: Side, rescored: Rescored | None = None) -> dict[int, float]:
    """Return seed -> mean over the cells of a side, of the seeds that all of them have.

    With `rescored` by predictions alone.
    """
    values_of_cells = []
    for cell in side.cells:
        values = cell.seeds
        if rescored is not None:
            values = rescored.find_values(cell)
        values_of_cells.append(values)
    shared = set.intersection(*(set(values) for values in values_of_cells))
    means = {}
    for seed in sorted(shared):
        means[seed] = sum(values[seed] for values in values_of_cells) / len(values_of_cells)
    return means


def describe_origin(outcome: Outcome, rescored: Rescored) -> str:
    """Say whether the values follow from predictions, and if not why."""
    if rescored.has_all_values(outcome):
        return "✓ these scores were computed again from the committed predictions"
    if rescored.unanswered:
        tasks = ", ".join(f"{task}: {why}" for task, why in sorted(rescored.unanswered.items()))
        return (
            f"from scores only: the predictions are committed, the right answers are not ({tasks})"
        )
    return "from scores only: their predictions are not committed"
