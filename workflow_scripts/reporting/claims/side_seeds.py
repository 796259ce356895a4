"""Say of an exploratory claim that one of its sides has planned seeds and the other has pilots.

The seeds of a plan were run later than its pilots, often by other commits and on other machines.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import groupby

from workflow_scripts.config.analysis_plan import AnalysisPlan
from workflow_scripts.reporting.claims.effects import Outcome, Side
from workflow_scripts.reporting.tables.cells import COMPUTED


def add_seed_caveat(outcome: Outcome, plans: Collection[AnalysisPlan]) -> Outcome:
    """Return the outcome with what `describe_side_seeds` says at the end of its claim's caveat."""
    said = describe_side_seeds(outcome, plans)
    if not said:
        return outcome
    caveat = "; ".join(filter(None, (outcome.claim.caveat, said)))
    return replace(outcome, claim=outcome.claim.model_copy(update={"caveat": caveat}))


def describe_side_seeds(outcome: Outcome, plans: Collection[AnalysisPlan]) -> str:
    """Return `planned seeds (101 to 109) on the left are compared with pilots (21 to 23) on the right`.

    Empty if both sides have planned seeds, or neither has, and for outcomes without an effect. `plans` are those of the
    scale; without one there are no planned seeds.
    """
    if outcome.effect is None:
        return ""
    planned = {seed for plan in plans for seed in plan.seeds}
    planned |= {
        seed for plan in plans for entry in plan.primary for seed in plan.select_seeds(entry)
    }
    pilots = {seed for plan in plans for seed in plan.pilots.seeds}
    named = []
    for place, side in zip(("left", "right"), outcome.sides, strict=True):
        seeds = list_side_seeds(side)
        fresh, others = seeds & planned, seeds - planned
        kind = "pilots" if others <= pilots else "other seeds"
        sets = (("planned seeds", fresh), (kind, others))
        parts = [f"{name} ({format_seeds(some)})" for name, some in sets if some]
        named.append((bool(fresh), bool(others), f"{' and '.join(parts)} on the {place}"))
    left, right = named
    if left[:2] == right[:2] or not any(left[:2]) or not any(right[:2]):
        return ""
    return f"{left[2]} are compared with {right[2]}"


def list_side_seeds(side: Side) -> set[int]:
    """Return the seeds of any cell of a side; none of a number without seeds."""
    return {seed for cell in side.cells if cell.status != COMPUTED for seed in cell.seeds}


def format_seeds(seeds: Iterable[int]) -> str:
    """Format `21, 24, 101 to 109`: three or more in a row are a range."""
    runs = [
        [seed for _, seed in run]
        for _, run in groupby(enumerate(sorted(seeds)), key=lambda place: place[1] - place[0])
    ]
    texts = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(texts)
