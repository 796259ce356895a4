"""A single claim of an export in the terminal: both sides by seed, effect, interval and verdict."""

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
from workflow_scripts.reporting.tables.cells import WITHHELD


def print_claim(row: ClaimRow, outcome: Outcome, rescored: Rescored, scale: str) -> None:
    """Print what a claim says, what it compares and what follows."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]{row.paper}/{row.claim}[/], {row.role}: {escape(row.statement)}")
    for name, side in zip(("left", "right"), outcome.sides, strict=True):
        cells = [cell.key for cell in side.cells]
        more = f", mean with {len(cells) - 1} more" if len(cells) > 1 else ""
        console.print(f"  {name:5}  {escape(cells[0])}{more}")
    if _is_shown(outcome):
        console.print(make_seed_table(outcome, rescored))
        console.print(f"  {describe_origin(outcome, rescored)}")
    claimed = f"> {row.margin:g} {row.unit}".replace("-", "−")
    published = format_published_effect(row)
    if published:
        claimed += f", published {published}"
    effect = format_effect(row) or "none yet: planned seeds are missing"
    console.print(f"  effect   {effect}")
    console.print(f"  claimed  {claimed}")
    if row.smallest_effect is not None:
        smallest = f"{row.smallest_effect:.3g} {row.unit}".replace("-", "−")
        console.print(f"  smallest effect of interest  {smallest}")
    verdict = f"[bold]{row.verdict}[/] at {scale}"
    if row.reason:
        verdict += f": {escape(row.reason)}"
    console.print(f"  verdict  {verdict}")
    if row.caveat:
        console.print(f"  caveat   {escape(row.caveat)}")


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
    return table


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
