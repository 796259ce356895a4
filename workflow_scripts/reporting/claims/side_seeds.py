"""Say of an exploratory claim that one of its sides has planned seeds and the other has pilots.

The seeds of a plan were run later than its pilots, often by other commits and on other machines.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from workflow_scripts.config.analysis_plan import AnalysisPlan
from workflow_scripts.reporting.claims.comparison import Side
from workflow_scripts.reporting.claims.outcome import MeasuredEffect, Outcome
from workflow_scripts.reporting.tables.cells import COMPUTED


def add_seed_caveat(outcome: Outcome, plans: Collection[AnalysisPlan]) -> Outcome:
    """Return the outcome with what `describe_side_seeds` says at the end of its claim's caveat."""
    caveat = describe_side_seeds(outcome, plans)
    if not caveat:
        return outcome
    if outcome.claim.caveat:
        caveat = f"{outcome.claim.caveat}; {caveat}"
    claim = outcome.claim.model_copy(update={"caveat": caveat})
    return replace(outcome, comparison=replace(outcome.comparison, claim=claim))


def describe_side_seeds(outcome: Outcome, plans: Collection[AnalysisPlan]) -> str:
    """Say that the seeds of one side are planned ones and those of the other are not.

    Such as `planned seeds (101 to 109) on the left are compared with pilots (21 to 23) on the
    right`. Empty if both sides have planned seeds, or neither has, and for outcomes without an
    effect. `plans` are those of the scale; without one there are no planned seeds.
    """
    if not isinstance(outcome.measurement, MeasuredEffect):
        return ""
    left, right = (split_side_seeds(side, plans) for side in outcome.sides)
    if left.is_empty or right.is_empty or left.has_kinds_of(right):
        return ""
    return f"{left.describe()} on the left are compared with {right.describe()} on the right"


@dataclass(frozen=True)
class SideSeeds:
    """The seeds of a side: planned ones, and others, which may all be pilots."""

    planned: set[int]
    others: set[int]
    are_pilots: bool  # the others

    @property
    def is_empty(self) -> bool:
        """Whether the side has no seeds, as a number has none."""
        return not self.planned and not self.others

    def has_kinds_of(self, side: "SideSeeds") -> bool:
        """Whether both sides have planned seeds or neither, and both others or neither."""
        planned_alike = bool(self.planned) == bool(side.planned)
        others_alike = bool(self.others) == bool(side.others)
        return planned_alike and others_alike

    def describe(self) -> str:
        """Return `planned seeds (101 to 109) and pilots (21 to 23)`, or the part that is there."""
        parts = []
        if self.planned:
            parts.append(f"planned seeds ({format_seeds(self.planned)})")
        if self.others:
            kind = "pilots" if self.are_pilots else "other seeds"
            parts.append(f"{kind} ({format_seeds(self.others)})")
        return " and ".join(parts)


def split_side_seeds(side: Side, plans: Collection[AnalysisPlan]) -> SideSeeds:
    """Split the seeds of a side into those of the plans, and others."""
    planned: set[int] = set()
    pilots: set[int] = set()
    for plan in plans:
        planned.update(plan.seeds)
        pilots.update(plan.pilots.seeds)
        for entry in plan.primary:
            planned.update(plan.select_seeds(entry))
    seeds = list_side_seeds(side)
    others = seeds - planned
    return SideSeeds(seeds & planned, others, are_pilots=others <= pilots)


def list_side_seeds(side: Side) -> set[int]:
    """Return the seeds of any cell of a side; none of a number without seeds."""
    seeds: set[int] = set()
    for cell in side.cells:
        if cell.status != COMPUTED:
            seeds.update(cell.seeds)
    return seeds


def format_seeds(seeds: Iterable[int]) -> str:
    """Format `21, 24, 101 to 109`: three or more in a row are a range."""
    ranges: list[list[int]] = []
    for seed in sorted(seeds):
        if ranges and ranges[-1][-1] == seed - 1:
            ranges[-1].append(seed)
        else:
            ranges.append([seed])
    texts = []
    for seeds_in_row in ranges:
        if len(seeds_in_row) > 2:
            texts.append(f"{seeds_in_row[0]} to {seeds_in_row[-1]}")
        else:
            texts += [str(seed) for seed in seeds_in_row]
    return ", ".join(texts)
