"""The effect of a claim, from its cells by seed, and from the paper's published numbers."""

import math
from dataclasses import dataclass, replace

import numpy as np

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.display_schema import Claim, match_stars
from workflow_scripts.evaluation.statistics import (
    Effect,
    compare_with_constant,
    compute_kendall_tau,
    measure_association,
)
from workflow_scripts.reporting.evidence.pairing import compute_difference
from workflow_scripts.reporting.tables.cells import COMPUTED, MEASURED, NOT_RUN, Cell


class NoEffectError(Exception):
    """The scores of a claim exist but give no effect; the message says why."""


@dataclass(frozen=True)
class Side:
    """One side of a claim: one or several cells with their seeds. A number is a computed cell."""

    cells: tuple[Cell, ...]

    @property
    def complete_seeds(self) -> float:
        """Count the seeds that all cells have; unlimited for numbers without seeds."""
        by_cell = [set(cell.seeds) for cell in self.cells if cell.status != COMPUTED]
        return len(set.intersection(*by_cell)) if by_cell else math.inf

    def average_by_seed(self) -> dict[int, float]:
        """Return seed -> mean over the cells, for seeds that all cells have."""
        shared = sorted(set.intersection(*(set(cell.seeds) for cell in self.cells)))
        return {seed: float(np.mean([cell.seeds[seed] for cell in self.cells])) for seed in shared}


def get_direction(claim: Claim) -> int:
    """Return 1 if a claim says that left is above right, else -1."""
    return 1 if claim.relation == "greater" else -1


def get_margin(claim: Claim) -> float:
    """Return the margin that the effect in the claimed direction must exceed."""
    return -claim.at_least if claim.relation == "no_gain" else claim.at_least


def select_sides(claim: Claim, cells: dict[str, Cell], file: str, seeds: list[int] | None) -> tuple[Side, Side]:
    """Return the cells of both sides in pairs; for a trend those that both sides have. `seeds` restricts the seeds."""
    if isinstance(claim.right, int | float):
        (left,) = _find_cells(claim.left, cells, claim, file).values()
        right = replace(left, status=COMPUTED, computed=claim.right, published=None, seeds={}, weights="")
        found = [[left], [right]]
    elif isinstance(claim.left, list):
        keys = (claim.left, claim.right)
        found = [[cell for key in side for cell in _find_cells(key, cells, claim, file).values()] for side in keys]
    else:
        lefts, rights = (_find_cells(side, cells, claim, file) for side in (claim.left, claim.right))
        found = [[one[name] for name in lefts if name in rights] for one in (lefts, rights)]
    if seeds is not None:
        found = [[_keep_seeds(cell, seeds) for cell in side] for side in found]
    return tuple(Side(tuple(side)) for side in found)


def compute_effect(claim: Claim, pairs: list[tuple[Cell, Cell]]) -> Effect:
    """Compute the effect in the claimed direction over seeds. Several pairs are averaged per seed first.

    Raises NoEffectError if paired seeds are missing, or if a value without a logarithm is not positive.
    """
    sign = get_direction(claim)
    if claim.relation == "falls_with":
        seeds = sorted(set.intersection(*(set(cell.seeds) for pair in pairs for cell in pair)))
        if not seeds:
            raise NoEffectError("its cells share no seed")
        left, right = (np.array([[pair[side].seeds[seed] for pair in pairs] for seed in seeds]) for side in (0, 1))
        return -measure_association(left, right)
    left, right = (Side(tuple(side)) for side in zip(*pairs, strict=True))
    if claim.measure == "log_ratio":
        left, right = _logarithms(left), _logarithms(right)
    paired = all(one.weights == other.weights != "" for one, other in pairs)
    by_seed = [side.average_by_seed() for side in (left, right) if side.cells[0].status != COMPUTED]
    if not all(by_seed):
        raise NoEffectError("no seed has a value in all cells of a side")
    if len(by_seed) == 1:
        constant_right = right.cells[0].status == COMPUTED
        constants = right if constant_right else left
        constant = float(np.mean([cell.computed for cell in constants.cells]))
        effect = compare_with_constant(list(by_seed[0].values()), constant, constant_right)
    elif paired and not by_seed[0].keys() & by_seed[1].keys():
        raise NoEffectError("its sides start from the same weights and share no seed")
    else:
        effect = compute_difference(*by_seed, paired)
    return effect if sign == 1 else -effect


def compute_planned_effect(claim: Claim, cells: dict[str, Cell], seeds: list[int], file: str) -> Effect | None:
    """Compute the effect of a claim on these seeds only; None if a cell lacks one of them."""
    sides = select_sides(claim, cells, file, seeds)
    if min(side.complete_seeds for side in sides) < len(seeds):
        return None
    try:
        return compute_effect(claim, list(zip(*(side.cells for side in sides), strict=True)))
    except NoEffectError:
        return None


def compute_published_effect(claim: Claim, pairs: list[tuple[Cell, Cell]]) -> float | None:
    """Compute the effect of a claim from the paper's numbers; None if the paper does not print them."""
    numbers = [(left.published, right.published) for left, right in pairs]
    if claim.measure == "success_rate" or any(n is None or n.value is None for pair in numbers for n in pair):
        return None
    left, right = (np.array([pair[side].value for pair in numbers]) for side in (0, 1))
    if claim.relation == "falls_with":
        return -float(compute_kendall_tau(left, right))
    if claim.measure == "log_ratio":
        if min(*left, *right) <= 0:
            return None
        left, right = np.log(left), np.log(right)
    return get_direction(claim) * float(np.mean(left - right))


def _logarithms(side: Side) -> Side:
    """Take ln of every value, and leave out values that are not positive."""
    cells = []
    for cell in side.cells:
        seeds = {seed: math.log(value) for seed, value in cell.seeds.items() if value > 0}
        cells.append(replace(cell, seeds=seeds, computed=math.log(cell.computed) if cell.computed else None))
    return Side(tuple(cells))


def _keep_seeds(cell: Cell, seeds: list[int]) -> Cell:
    kept = {seed: value for seed, value in cell.seeds.items() if seed in seeds}
    status = NOT_RUN if cell.status == MEASURED and not kept else cell.status
    return replace(cell, seeds=kept, status=status)


def _find_cells(pattern: str, cells: dict[str, Cell], claim: Claim, file: str) -> dict[str, Cell]:
    """Return the cells of a side of a claim by the text that `*` matches; without `*` this is the empty text."""
    if pattern.split("/").count("*") != (claim.relation == "falls_with"):
        raise UserError(f"{file}: claim {claim.claim}: '*' in {pattern}; only falls_with has it, once on either side")
    if "*" in pattern.split("/"):
        matched = {key: match_stars(pattern, key) for key in cells}
        found = {"".join(texts): cells[key] for key, texts in matched.items() if texts is not None}
    else:
        found = {"": cells[pattern]} if pattern in cells else {}
    if not found:
        raise UserError(f"{file}: claim {claim.claim}: there is no cell {pattern} in displays.yaml")
    return found
