"""Controls of a claim: what must hold before its effect may bear a verdict."""

import numpy as np

from workflow_scripts.reporting.analysis_plan import PrimaryClaim
from workflow_scripts.reporting.cells import COMPUTED, MEASURED, Cell
from workflow_scripts.reporting.effects import Side, direction
from workflow_scripts.reporting.spec import Claim
from workflow_scripts.reporting.statistics import Effect, difference_from_constant


def failed_control(
    claim: Claim,
    sides: tuple[Side, Side],
    entry: PrimaryClaim,
    cells: dict[str, Cell],
    effects: dict[str, Effect | None],
    quantile: float,
) -> str:
    """Which control of a primary claim fails, in a few words; empty if all hold. `effects` are those of all claims."""
    control = entry.control
    floor = control.floor if control.floor is not None else claim.floor
    if failed := failed_floor(claim, sides, floor, entry.smallest - entry.margin, cells, quantile):
        return failed
    if control.perfect is not None and entry.published:
        worse = min((mean_of(side) for side in sides), key=lambda mean: _quality(claim, mean))
        if abs(control.perfect - worse) < entry.published / 2:
            return f"no room: the worse side has {worse:.1f}, and {control.perfect:g} is the best possible"
    for required in control.requires:
        cell = cells.get(required.cell)
        if cell is None or cell.status != MEASURED:
            return f"a control is not measured: {required.cell}"
        if (mean := cell.summary.mean) < required.at_least:
            return f"a control fails: {required.cell} is {mean:.1f}, and {required.at_least:g} is needed"
    if control.same_sign:
        other, own = effects.get(control.same_sign), effects.get(claim.claim)
        if other is None or own is None:
            return f"a control is not measured: {control.same_sign}"
        if other.value * own.value < 0:
            return f"a control fails: {control.same_sign} has the other sign"
    return ""


def failed_floor(
    claim: Claim,
    sides: tuple[Side, Side],
    floor: float | str | None,
    beyond: float,
    cells: dict[str, Cell],
    quantile: float,
) -> str:
    """Empty if the better side's interval is beyond the floor (the score of a model that has learnt nothing) by more
    than `beyond`; for errors, below it."""
    if floor is None:
        return ""
    if isinstance(floor, str):
        cell = cells.get(floor)
        if cell is None or cell.status not in (MEASURED, COMPUTED):
            return f"a control is not measured: {floor}"
        name, floor = floor, cell.computed if cell.status == COMPUTED else cell.summary.mean
    else:
        name = "what a model scores that has learnt nothing"
    better = max(sides, key=lambda side: _quality(claim, mean_of(side)))
    if not all(cell.seeds for cell in better.cells):
        return ""
    sign = -1 if claim.relation == "less" else 1
    above = difference_from_constant(list(better.by_seed().values()), floor)
    interval = (above if sign == 1 else above.turned()).interval(quantile)
    if interval is None or interval[0] <= beyond:
        return f"a control fails: the better side, {mean_of(better):.1f}, is not beyond {floor:.1f} ({name})"
    return ""


def mean_of(side: Side) -> float:
    """Mean over cells and seeds."""
    values = [cell.computed if cell.status == COMPUTED else cell.summary.mean for cell in side.cells]
    return float(np.mean(values))


def _quality(claim: Claim, value: float) -> float:
    """Greater is better, whatever the measure: of errors and divergences, which a claim has `less`, the negative."""
    return -value if direction(claim) == -1 and claim.relation == "less" else value
