"""The effect of a claim, measured or published."""

from dataclasses import replace

import numpy as np

from workflow_scripts.config.display_schema import Claim
from workflow_scripts.evaluation import statistics
from workflow_scripts.evaluation.seeds import list_common_seeds
from workflow_scripts.evaluation.statistics import Effect
from workflow_scripts.reporting.claims.comparison import (
    NO_VALUE,
    NoEffectError,
    PaperCells,
    Side,
    select_sides,
    split_pairs,
)
from workflow_scripts.reporting.claims.transforms import TRANSFORMS, Transform
from workflow_scripts.reporting.evidence.pairing import compute_difference
from workflow_scripts.reporting.tables.cells import Cell

NO_LOGARITHM = "there is no logarithm"


def compute_effect(claim: Claim, pairs: list[tuple[Cell, Cell]]) -> Effect:
    """Compute the effect in the claimed direction over seeds.

    Several pairs are averaged per seed first. Raises NoEffectError if paired seeds are missing, or
    if a value has no logarithm: without it, the mean would be that of the other seeds.
    """
    if claim.relation == "falls_with":
        return -_measure_trend(pairs)
    compared_pairs = pairs
    transform = TRANSFORMS.get(claim.measure)
    if transform is not None:
        compared_pairs = []
        for left, right in pairs:
            pair = (_apply_to_cell(left, transform), _apply_to_cell(right, transform))
            compared_pairs.append(pair)
    effect = _compute_gain(claim, compared_pairs)
    if claim.relation == "greater":
        return effect
    return -effect


def _compute_gain(claim: Claim, pairs: list[tuple[Cell, Cell]]) -> Effect:
    """Compute what left has over right."""
    left, right = split_pairs(pairs)
    if claim.measure == "superiority":
        return statistics.measure_superiority(_list_values(left), _list_values(right))
    if left.is_number:
        values = _list_values(right)
        return statistics.compare_with_constant(values, left.number, constant_right=False)
    if right.is_number:
        values = _list_values(left)
        return statistics.compare_with_constant(values, right.number, constant_right=True)
    start_alike = all(first.weights == second.weights != "" for first, second in pairs)
    return _compare_sides(left, right, start_alike)


def _measure_trend(pairs: list[tuple[Cell, Cell]]) -> Effect:
    """Measure how both sides rise together along the pairs, over the seeds that all cells have."""
    left, right = split_pairs(pairs)
    seeds = list_common_seeds(cell.seeds for cell in (*left.cells, *right.cells))
    if not seeds:
        raise NoEffectError("its cells share no seed")
    return statistics.measure_association(_stack_seeds(left, seeds), _stack_seeds(right, seeds))


def _stack_seeds(side: Side, seeds: list[int]) -> np.ndarray:
    """Return the values of a side: [seeds, cells]."""
    rows = []
    for seed in seeds:
        rows.append([cell.seeds[seed] for cell in side.cells])
    return np.array(rows)


def _compare_sides(left: Side, right: Side, paired: bool) -> Effect:
    """Return the difference of the means of two sides.

    paired: whether all of their cells start from the same weights.
    """
    left_by_seed = left.average_by_seed()
    right_by_seed = right.average_by_seed()
    if not left_by_seed or not right_by_seed:
        raise NoEffectError(NO_VALUE)
    if paired and not left_by_seed.keys() & right_by_seed.keys():
        raise NoEffectError("its sides start from the same weights and share no seed")
    return compute_difference(left_by_seed, right_by_seed, paired)


def _list_values(side: Side) -> list[float]:
    """Return the mean over the cells of each seed."""
    values = list(side.average_by_seed().values())
    if not values:
        raise NoEffectError(NO_VALUE)
    return values


def compute_planned_effect(claim: Claim, cells: PaperCells, seeds: list[int]) -> Effect | None:
    """Compute the effect of a claim on these seeds only.

    None if a cell lacks one of them, or if its scores give no effect.
    """
    left, right = select_sides(claim, cells, seeds)
    if min(left.n_complete_seeds, right.n_complete_seeds) < len(seeds):
        return None
    try:
        return compute_effect(claim, list(zip(left.cells, right.cells, strict=True)))
    except NoEffectError:
        return None


def find_published_effect(
    claim: Claim, sides: tuple[Side, Side], cells: PaperCells
) -> float | None:
    """Return the effect of a claim in the paper's numbers; None if it does not print them."""
    if claim.published:
        return _get_published_value(cells.find(claim.published, claim))
    if claim.measure in ("success_rate", "superiority"):  # papers print means
        return None
    left, right = (_list_published_values(side, claim) for side in sides)
    if left is None or right is None:
        return None
    if claim.relation == "falls_with":
        return -float(statistics.compute_kendall_tau(np.array(left), np.array(right)))
    effect = float(np.mean(np.array(left) - np.array(right)))
    if claim.relation == "greater":
        return effect
    return 0.0 - effect  # not -0.0


def _list_published_values(side: Side, claim: Claim) -> list[float] | None:
    """Return what the paper prints for the cells of a side, as the claim's measure takes it.

    None if a cell has no number, or one of which the measure can take no logarithm.
    """
    transform = TRANSFORMS.get(claim.measure)
    values = []
    for cell in side.cells:
        value = _get_published_value(cell)
        if transform is not None:
            value = _apply_to_value(value, transform)
        if value is None:
            return None
        values.append(value)
    return values


def _get_published_value(cell: Cell) -> float | None:
    """Return the number that the paper prints for a cell; None if it prints none."""
    return cell.published.value if cell.published else None


def _apply_to_value(value: float | None, transform: Transform) -> float | None:
    """Transform a value; None stays None."""
    if value is None:
        return None
    return transform(value)


def _apply_to_cell(cell: Cell, transform: Transform) -> Cell:
    """Transform every value of a cell. Raises NoEffectError if one of them has no result."""
    seeds = {}
    for seed, value in cell.seeds.items():
        transformed = transform(value)
        if transformed is None:
            raise NoEffectError(f"seed {seed} of {cell.row} has {value:g}: {NO_LOGARITHM}")
        seeds[seed] = transformed
    computed = _apply_to_value(cell.computed, transform)
    if computed is None and cell.computed is not None:
        raise NoEffectError(f"{cell.row} is {cell.computed:g}: {NO_LOGARITHM}")
    return replace(cell, seeds=seeds, computed=computed)
