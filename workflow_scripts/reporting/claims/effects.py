"""The effect of a claim, from its cells by seed or from published numbers, and the controls that a verdict needs."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.analysis_plan import PlannedClaim
from workflow_scripts.config.display_schema import Claim, match_stars
from workflow_scripts.evaluation import statistics
from workflow_scripts.evaluation.statistics import Effect, SuccessRates
from workflow_scripts.reporting.evidence.pairing import compute_difference
from workflow_scripts.reporting.tables.cells import COMPUTED, MEASURED, NOT_RUN, Cell

EXPLORATORY = "exploratory"
NO_VERDICT = "no verdict"  # measured, but a control fails, data are generated, or seeds of the plan are missing


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

    @property
    def mean(self) -> float:
        """Mean over cells and seeds."""
        return float(np.mean([cell.mean for cell in self.cells]))

    def average_by_seed(self) -> dict[int, float]:
        """Return seed -> mean over the cells, for seeds that all cells have."""
        shared = sorted(set.intersection(*(set(cell.seeds) for cell in self.cells)))
        return {seed: float(np.mean([cell.seeds[seed] for cell in self.cells])) for seed in shared}


def get_margin(claim: Claim) -> float:
    """Return the margin that the effect in the claimed direction must exceed."""
    return -claim.at_least if claim.relation == "no_gain" else claim.at_least


@dataclass(frozen=True)
class Outcome:
    """A judged claim. It has no effect if a side was not measured, or if planned seeds are missing.

    plan: file of the analysis plan of a primary claim. interval: of the effect, by the t quantile `quantile`.
    smallest: the smallest effect of interest, None if the paper gives no effect. n_planned: seeds per side of a
    primary claim.
    """

    claim: Claim
    sides: tuple[Side, Side]
    role: str = EXPLORATORY
    plan: str = ""
    verdict: str = NO_VERDICT
    protocol: str = ""
    effect: Effect | None = None
    success: SuccessRates | None = None
    published: float | None = None
    smallest: float | None = None
    quantile: float | None = None
    interval: tuple[float, float] | None = None
    p_value: float | None = None
    q_value: float | None = None
    n_seeds: int | None = None
    n_planned: int | None = None
    reason: str = ""

    @property
    def printed(self) -> str:
        """Whether the paper's own numbers agree with the claim or contradict it; empty if it prints none."""
        if self.published is None:
            return ""
        return "agree" if self.published > get_margin(self.claim) else "contradict"


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

    Raises NoEffectError if paired seeds are missing, or if no value of a side has a logarithm.
    """
    if claim.relation == "falls_with":
        seeds = sorted(set.intersection(*(set(cell.seeds) for pair in pairs for cell in pair)))
        if not seeds:
            raise NoEffectError("its cells share no seed")
        left, right = (np.array([[pair[side].seeds[seed] for pair in pairs] for seed in seeds]) for side in (0, 1))
        return -statistics.measure_association(left, right)
    if transform := TRANSFORMS.get(claim.measure):
        pairs = [(_transform_cell(left, transform), _transform_cell(right, transform)) for left, right in pairs]
    left, right = map(Side, zip(*pairs, strict=True))
    paired = all(one.weights == other.weights != "" for one, other in pairs)
    by_seed = [side.average_by_seed() for side in (left, right) if side.cells[0].status != COMPUTED]
    if not all(by_seed):
        raise NoEffectError("no seed has a value in all cells of a side")
    if claim.measure == "superiority":
        effect: Effect = statistics.measure_superiority(*(list(side.values()) for side in by_seed))
    elif len(by_seed) == 1:
        constant_right = right.cells[0].status == COMPUTED
        constants = right if constant_right else left
        constant = float(np.mean([cell.computed for cell in constants.cells]))
        effect = statistics.compare_with_constant(list(by_seed[0].values()), constant, constant_right)
    elif paired and not by_seed[0].keys() & by_seed[1].keys():
        raise NoEffectError("its sides start from the same weights and share no seed")
    else:
        effect = compute_difference(*by_seed, paired)
    return effect if claim.relation == "greater" else -effect


def compute_planned_effect(claim: Claim, cells: dict[str, Cell], seeds: list[int], file: str) -> Effect | None:
    """Compute the effect of a claim on these seeds only; None if a cell lacks one of them."""
    sides = select_sides(claim, cells, file, seeds)
    if min(side.complete_seeds for side in sides) < len(seeds):
        return None
    try:
        return compute_effect(claim, list(zip(*(side.cells for side in sides), strict=True)))
    except NoEffectError:
        return None


def find_published_effect(
    claim: Claim, pairs: list[tuple[Cell, Cell]], cells: dict[str, Cell], file: str
) -> float | None:
    """Return the effect of a claim in the paper's numbers, printed or computed; None if they are not printed."""
    if claim.published:
        (cell,) = _find_cells(claim.published, cells, claim, file).values()
        return cell.published and cell.published.value
    numbers = [(left.published, right.published) for left, right in pairs]
    of_seeds = claim.measure in ("success_rate", "superiority")  # papers print means
    if of_seeds or any(n is None or n.value is None for pair in numbers for n in pair):
        return None
    left, right = (np.array([pair[side].value for pair in numbers]) for side in (0, 1))
    if claim.relation == "falls_with":
        return -float(statistics.compute_kendall_tau(left, right))
    if transform := TRANSFORMS.get(claim.measure):
        transformed = [[transform(value) for value in side] for side in (left, right)]
        if any(value is None for side in transformed for value in side):
            return None
        left, right = np.array(transformed)
    effect = float(np.mean(left - right))
    return effect if claim.relation == "greater" else 0.0 - effect  # not -0.0


def _take_logarithm(value: float) -> float | None:
    return math.log(value) if value > 0 else None


def _compute_log_odds(percent: float) -> float | None:
    """Return ln(p / (1 - p)) of a percentage; None at 0% and at 100%, where the odds have no logarithm."""
    return math.log(percent / (100 - percent)) if 0 < percent < 100 else None


TRANSFORMS: dict[str, Callable[[float], float | None]] = {
    "log_ratio": _take_logarithm,
    "log_odds": _compute_log_odds,
}  # measure -> what is taken of each value before two sides are compared


def _transform_cell(cell: Cell, transform: Callable[[float], float | None]) -> Cell:
    """Transform every value, and leave out seeds whose value has no result."""
    transformed = {seed: transform(value) for seed, value in cell.seeds.items()}
    seeds = {seed: value for seed, value in transformed.items() if value is not None}
    return replace(cell, seeds=seeds, computed=None if cell.computed is None else transform(cell.computed))


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


def find_failed_control(outcome: Outcome, planned: PlannedClaim, cells: dict[str, Cell], other: Effect | None) -> str:
    """Describe the control of a primary claim that fails; empty if all hold.

    Required cells are judged on the planned seeds, as is `other`, the effect that must have the same sign.
    """
    entry, seeds = planned.entry, planned.seeds
    control, claim = entry.control, outcome.claim
    floor = control.floor if control.floor is not None else claim.floor
    # Effects of other measures are not in the units of the sides.
    distance = entry.smallest - entry.margin if claim.measure == "difference" else 0.0
    if failed := find_failed_floor(outcome, floor, distance, cells):
        return failed
    if control.perfect is not None and entry.published:
        worse = (max if claim.relation == "less" else min)(side.mean for side in outcome.sides)
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
        if other is None or outcome.effect is None:
            return f"a control is not measured: {control.same_sign}"
        if (other.value - other.null) * (outcome.effect.value - outcome.effect.null) <= 0:
            return f"a control fails: {control.same_sign} has the other sign"
    return ""


def find_failed_floor(outcome: Outcome, floor: float | str | None, distance: float, cells: dict[str, Cell]) -> str:
    """Say why the floor control fails; empty if the better side's interval is beyond the floor by over `distance`.

    The floor is the score of a model that has learned nothing, and errors must be below it. One seed is not tested.
    """
    if floor is None:
        return ""
    name = "what a model scores that has learnt nothing"
    if isinstance(floor, str):
        cell = cells.get(floor)
        if cell is None or cell.status not in (MEASURED, COMPUTED):
            return f"a control is not measured: {floor}"
        name, floor = floor, cell.mean
    errors = outcome.claim.relation == "less"
    better = (min if errors else max)(outcome.sides, key=lambda side: side.mean)
    if any(cell.status == COMPUTED for cell in better.cells):
        lowest = floor - better.mean if errors else better.mean - floor
    else:
        above = statistics.compare_with_constant(list(better.average_by_seed().values()), floor, not errors)
        lowest, _ = above.compute_interval(outcome.quantile) or (math.inf, math.inf)
    if lowest <= distance:
        return f"a control fails: the better side, {better.mean:.1f}, is not beyond {floor:.1f} ({name})"
    return ""
