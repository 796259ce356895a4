"""Controls of a claim: the conditions without which it has no verdict."""

import math

import numpy as np

from workflow_scripts.config.analysis_plan import PlannedClaim, PrimaryClaim
from workflow_scripts.evaluation import statistics
from workflow_scripts.evaluation.statistics import Effect
from workflow_scripts.reporting.claims.comparison import Comparison, PaperCells, Side
from workflow_scripts.reporting.tables.cells import COMPUTED, MEASURED, Cell


def find_failed_control(comparison: Comparison, planned: PlannedClaim, cells: PaperCells) -> str:
    """Describe the first control of a primary claim that fails; empty if all hold.

    They are the floor (the plan's, or else that of the claim), room for an effect, and required
    cells, which are judged on the planned seeds. For a claim about a difference, the better side
    must be farther from the floor than the smallest effect of interest is from the margin; for
    other measures, it must be beyond the floor.
    """
    entry = planned.entry
    floor = entry.control.floor
    if floor is None:
        floor = comparison.claim.floor
    distance_to_floor = 0.0  # effects of other measures are not in the units of the sides
    if comparison.claim.measure == "difference":
        distance_to_floor = entry.smallest - entry.margin
    return (
        find_failed_floor(comparison, floor, distance_to_floor, cells)
        or _find_missing_room(comparison, entry)
        or _find_failed_requirement(entry, planned.seeds, cells)
    )


def _find_missing_room(comparison: Comparison, entry: PrimaryClaim) -> str:
    """Say that the worse side is so near to the best possible score that no effect has room.

    Half of the published effect is taken as room enough. Empty if there is room, or if the plan
    names no best possible score or no published effect.
    """
    perfect = entry.control.perfect
    if perfect is None or not entry.published:
        return ""
    worse = min(side.mean for side in comparison.sides)
    if comparison.claim.relation == "less":  # of errors
        worse = max(side.mean for side in comparison.sides)
    if abs(perfect - worse) < entry.published / 2:
        return f"no room: the worse side has {worse:.1f}, and {perfect:g} is the best possible"
    return ""


def _find_failed_requirement(entry: PrimaryClaim, seeds: list[int], cells: PaperCells) -> str:
    """Say which required cell is not measured or too low on the planned seeds."""
    for required in entry.control.requires:
        mean = _average_planned_seeds(cells.by_key.get(required.cell), seeds)
        if mean is None:
            return f"a control is not measured: {required.cell}"
        if mean < required.at_least:
            needed = f"{required.at_least:g} is needed"
            return f"a control fails: {required.cell} is {mean:.1f}, and {needed}"
    return ""


def _average_planned_seeds(cell: Cell | None, seeds: list[int]) -> float | None:
    """Return the mean of a cell over `seeds`, which are not empty, or its computed number.

    Returns None without a cell, or if one of the seeds is missing.
    """
    if cell is None:
        return None
    if cell.status == COMPUTED:
        return cell.computed
    if not set(seeds) <= cell.seeds.keys():
        return None
    return float(np.mean([cell.seeds[seed] for seed in seeds]))


def compare_signs(effect: Effect | None, name: str, other_effect: Effect | None) -> str:
    """Say that the effect of the claim `name` has another sign than `effect`, or none.

    Empty if both have the same sign.
    """
    if effect is None or other_effect is None:
        return f"a control is not measured: {name}"
    difference = effect.value - effect.null
    other_difference = other_effect.value - other_effect.null
    if other_difference * difference <= 0:
        return f"a control fails: {name} has the other sign"
    return ""


def find_failed_floor(
    comparison: Comparison, floor: float | str | None, distance: float, cells: PaperCells
) -> str:
    """Say why the floor control fails; empty if it holds, or if there is no floor.

    It holds if the interval over seeds of the better side is beyond the floor by over `distance`.
    The floor is the score of a model that has learned nothing, as a number or as the key of its
    cell; scores must be above it, and errors below. A single seed has no interval, and passes.
    """
    if floor is None:
        return ""
    if isinstance(floor, str):
        name = floor
        floor_score = _find_floor_score(comparison, cells.by_key.get(floor))
        if floor_score is None:
            return f"a control is not measured: {floor}"
    else:
        name = "what a model scores that has learnt nothing"
        floor_score = floor
    are_errors = comparison.claim.relation == "less"
    if are_errors:
        better = min(comparison.sides, key=lambda side: side.mean)
    else:
        better = max(comparison.sides, key=lambda side: side.mean)
    lowest_distance = _find_lowest_distance(better, floor_score, are_errors, comparison.quantile)
    if lowest_distance > distance:
        return ""
    failure = f"the better side, {better.mean:.1f}, is not beyond {floor_score:.1f}"
    return f"a control fails: {failure} ({name})"


def _find_floor_score(comparison: Comparison, cell: Cell | None) -> float | None:
    """Return the mean of a floor's cell, of a primary claim over the planned seeds.

    None if it is not measured.
    """
    if cell is None or cell.status not in (MEASURED, COMPUTED):
        return None
    if comparison.planned is None:
        return cell.mean
    return _average_planned_seeds(cell, comparison.planned.seeds)


def _find_lowest_distance(side: Side, floor: float, are_errors: bool, quantile: float) -> float:
    """Return the lower end of the interval of the distance between a side and the floor.

    The distance is positive if the side is better than the floor: above it, or below it for errors.
    A side with a computed number has no seeds and so no interval: its distance is returned. One
    seed gives no interval either: inf is returned, so that the control passes.
    """
    if any(cell.status == COMPUTED for cell in side.cells):
        return floor - side.mean if are_errors else side.mean - floor
    values = list(side.average_by_seed().values())
    distance = statistics.compare_with_constant(values, floor, constant_right=not are_errors)
    interval = distance.compute_interval(quantile)
    if interval is None:
        return math.inf
    return interval[0]
