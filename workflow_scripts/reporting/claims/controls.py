"""Controls of a claim: conditions for a verdict."""

import numpy as np

from workflow_scripts.config.analysis_plan import PrimaryClaim
from workflow_scripts.config.display_schema import Claim
from workflow_scripts.evaluation.statistics import Effect, compare_with_constant
from workflow_scripts.reporting.claims.effects import Side
from workflow_scripts.reporting.tables.cells import COMPUTED, MEASURED, Cell


def find_failed_control(
    claim: Claim,
    sides: tuple[Side, Side],
    entry: PrimaryClaim,
    seeds: list[int],
    cells: dict[str, Cell],
    same_sign: tuple[Effect | None, Effect | None],
    quantile: float,
) -> str:
    """Describe the control of a primary claim that fails; empty if all hold.

    `sides` and required cells are judged on the planned `seeds`, as is `same_sign`: the effects of this claim and of
    the claim that must have the same sign.
    """
    control = entry.control
    floor = control.floor if control.floor is not None else claim.floor
    beyond = 0.0 if entry.threshold is not None else entry.smallest - entry.margin  # of a share of seeds: other units
    if failed := find_failed_floor(claim, sides, floor, beyond, cells, quantile):
        return failed
    if control.perfect is not None and entry.published:
        worse = min((average_side(side) for side in sides), key=lambda mean: _quality(claim, mean))
        if abs(control.perfect - worse) < entry.published / 2:
            return f"no room: the worse side has {worse:.1f}, and {control.perfect:g} is the best possible"
    for required in control.requires:
        cell = cells.get(required.cell)
        if cell is None or (cell.status != COMPUTED and not set(seeds) <= cell.seeds.keys()):
            return f"a control is not measured: {required.cell}"
        mean = cell.computed if cell.status == COMPUTED else float(np.mean([cell.seeds[seed] for seed in seeds]))
        if mean < required.at_least:
            return f"a control fails: {required.cell} is {mean:.1f}, and {required.at_least:g} is needed"
    if control.same_sign:
        own, other = same_sign
        if other is None or own is None:
            return f"a control is not measured: {control.same_sign}"
        if other.value * own.value <= 0:
            return f"a control fails: {control.same_sign} has the other sign"
    return ""


def find_failed_floor(
    claim: Claim, sides: tuple[Side, Side], floor: float | str | None, beyond: float, cells: dict, quantile: float
) -> str:
    """Return an empty text if the better side's interval is above the floor by more than `beyond`, or below of errors.

    The floor is the score of a model that has learned nothing. A single seed has no interval and is not tested.
    """
    if floor is None:
        return ""
    name = "what a model scores that has learnt nothing"
    if isinstance(floor, str):
        cell = cells.get(floor)
        if cell is None or cell.status not in (MEASURED, COMPUTED):
            return f"a control is not measured: {floor}"
        name, floor = floor, cell.mean
    better = max(sides, key=lambda side: _quality(claim, average_side(side)))
    if any(cell.status == COMPUTED for cell in better.cells):
        lowest = _quality(claim, average_side(better) - floor)
    else:
        above = compare_with_constant(list(better.average_by_seed().values()), floor)
        interval = (-above if claim.relation == "less" else above).compute_interval(quantile)
        if interval is None:
            return ""
        lowest = interval[0]
    if lowest <= beyond:
        return f"a control fails: the better side, {average_side(better):.1f}, is not beyond {floor:.1f} ({name})"
    return ""


def average_side(side: Side) -> float:
    """Return the mean over cells and seeds."""
    return float(np.mean([cell.mean for cell in side.cells]))


def _quality(claim: Claim, value: float) -> float:
    return -value if claim.relation == "less" else value
