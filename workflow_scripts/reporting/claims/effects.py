"""The effect of a claim, from its cells by seed or from published numbers, and the controls that a verdict needs."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.analysis_plan import PlannedClaim, PrimaryClaim
from workflow_scripts.config.display_schema import Claim, match_stars
from workflow_scripts.evaluation import statistics
from workflow_scripts.evaluation.statistics import Effect, SuccessRates
from workflow_scripts.reporting.evidence.pairing import compute_difference
from workflow_scripts.reporting.tables.cells import COMPUTED, MEASURED, NOT_RUN, Cell

EXPLORATORY = "exploratory"
NO_VERDICT = "no verdict"  # measured, but a control fails, data are generated, or seeds of the plan are missing
NO_VALUE = "no seed has a value in all cells of a side"


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
        if not by_cell:
            return math.inf
        return len(set.intersection(*by_cell))

    @property
    def is_number(self) -> bool:
        """Whether the side has no seeds."""
        return self.cells[0].status == COMPUTED

    @property
    def number(self) -> float:
        """The mean of cells without seeds. Raises NoEffectError if one has no logarithm that is needed."""
        values = [cell.computed for cell in self.cells]
        if None in values:
            raise NoEffectError(NO_VALUE)
        return float(np.mean(values))

    @property
    def mean(self) -> float:
        """Mean over cells and seeds."""
        return float(np.mean([cell.mean for cell in self.cells]))

    def average_by_seed(self) -> dict[int, float]:
        """Return seed -> mean over the cells, for seeds that all cells have."""
        shared = sorted(set.intersection(*(set(cell.seeds) for cell in self.cells)))
        return {seed: float(np.mean([cell.seeds[seed] for cell in self.cells])) for seed in shared}


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
        return "agree" if self.published > self.claim.margin else "contradict"


def select_sides(
    claim: Claim, cells: dict[str, Cell], file: str, seeds: list[int] | None
) -> tuple[Side, Side]:
    """Return the cells of both sides in pairs; for a trend those that both sides have. `seeds` restricts the seeds."""
    pairs = _pair_cells(claim, cells, file)
    if seeds is not None:
        pairs = [(_keep_seeds(left, seeds), _keep_seeds(right, seeds)) for left, right in pairs]
    return Side(tuple(left for left, _ in pairs)), Side(tuple(right for _, right in pairs))


def _pair_cells(claim: Claim, cells: dict[str, Cell], file: str) -> list[tuple[Cell, Cell]]:
    """Return the cells that a claim compares, pair by pair. A number is a cell without seeds."""
    if isinstance(claim.right, int | float):
        (left,) = _find_cells(claim.left, cells, claim, file).values()
        number = replace(
            left, status=COMPUTED, computed=claim.right, published=None, seeds={}, weights=""
        )
        return [(left, number)]
    if isinstance(claim.left, list):
        lefts = [
            cell for key in claim.left for cell in _find_cells(key, cells, claim, file).values()
        ]
        rights = [
            cell for key in claim.right for cell in _find_cells(key, cells, claim, file).values()
        ]
        return list(zip(lefts, rights, strict=True))
    left_by_name = _find_cells(claim.left, cells, claim, file)
    right_by_name = _find_cells(claim.right, cells, claim, file)
    return [
        (left, right_by_name[name]) for name, left in left_by_name.items() if name in right_by_name
    ]


def compute_effect(claim: Claim, pairs: list[tuple[Cell, Cell]]) -> Effect:
    """Compute the effect in the claimed direction over seeds. Several pairs are averaged per seed first.

    Raises NoEffectError if paired seeds are missing, or if no value of a side has a logarithm.
    """
    if claim.relation == "falls_with":
        return -_measure_trend(pairs)
    transform = TRANSFORMS.get(claim.measure)
    if transform is not None:
        pairs = [
            (_transform_cell(left, transform), _transform_cell(right, transform))
            for left, right in pairs
        ]
    left, right = Side(tuple(left for left, _ in pairs)), Side(tuple(right for _, right in pairs))
    if claim.measure == "superiority":
        effect: Effect = statistics.measure_superiority(_list_values(left), _list_values(right))
    elif left.is_number:
        effect = statistics.compare_with_constant(
            _list_values(right), left.number, constant_right=False
        )
    elif right.is_number:
        effect = statistics.compare_with_constant(
            _list_values(left), right.number, constant_right=True
        )
    else:
        start_alike = all(
            left_cell.weights == right_cell.weights != "" for left_cell, right_cell in pairs
        )
        effect = _compare_sides(left, right, start_alike)
    return effect if claim.relation == "greater" else -effect


def _measure_trend(pairs: list[tuple[Cell, Cell]]) -> Effect:
    """Measure how both sides rise together along the pairs, over the seeds that all cells have."""
    seeds = sorted(set.intersection(*(set(cell.seeds) for pair in pairs for cell in pair)))
    if not seeds:
        raise NoEffectError("its cells share no seed")
    left = np.array([[cell.seeds[seed] for cell, _ in pairs] for seed in seeds])
    right = np.array([[cell.seeds[seed] for _, cell in pairs] for seed in seeds])
    return statistics.measure_association(left, right)


def _compare_sides(left: Side, right: Side, paired: bool) -> Effect:
    """Return the difference of the means of two sides; `paired` if all their cells start from the same weights."""
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


def compute_planned_effect(
    claim: Claim, cells: dict[str, Cell], seeds: list[int], file: str
) -> Effect | None:
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
        return cell.published.value if cell.published else None
    if claim.measure in ("success_rate", "superiority"):  # papers print means
        return None
    left = _list_published_values([left for left, _ in pairs])
    right = _list_published_values([right for _, right in pairs])
    if claim.relation == "falls_with":
        if None in left or None in right:
            return None
        return -float(statistics.compute_kendall_tau(np.array(left), np.array(right)))
    transform = TRANSFORMS.get(claim.measure)
    if transform is not None:
        left = [None if value is None else transform(value) for value in left]
        right = [None if value is None else transform(value) for value in right]
    if None in left or None in right:
        return None
    effect = float(np.mean(np.array(left) - np.array(right)))
    return effect if claim.relation == "greater" else 0.0 - effect  # not -0.0


def _list_published_values(cells: list[Cell]) -> list[float | None]:
    return [cell.published.value if cell.published else None for cell in cells]


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
    return replace(
        cell, seeds=seeds, computed=None if cell.computed is None else transform(cell.computed)
    )


def _keep_seeds(cell: Cell, seeds: list[int]) -> Cell:
    kept = {seed: value for seed, value in cell.seeds.items() if seed in seeds}
    status = NOT_RUN if cell.status == MEASURED and not kept else cell.status
    return replace(cell, seeds=kept, status=status)


def _find_cells(pattern: str, cells: dict[str, Cell], claim: Claim, file: str) -> dict[str, Cell]:
    """Return the cells of a side of a claim by the text that `*` matches; without `*` this is the empty text."""
    if pattern.split("/").count("*") != (claim.relation == "falls_with"):
        raise UserError(
            f"{file}: claim {claim.claim}: '*' in {pattern}; only falls_with has it, once on either side"
        )
    if "*" in pattern.split("/"):
        matched = {key: match_stars(pattern, key) for key in cells}
        found = {"".join(texts): cells[key] for key, texts in matched.items() if texts is not None}
    else:
        found = {"": cells[pattern]} if pattern in cells else {}
    if not found:
        raise UserError(f"{file}: claim {claim.claim}: there is no cell {pattern} in displays.yaml")
    return found


def find_failed_control(
    outcome: Outcome, planned: PlannedClaim, cells: dict[str, Cell], other: Effect | None
) -> str:
    """Describe the control of a primary claim that fails; empty if all hold.

    Required cells are judged on the planned seeds, as is `other`, the effect that must have the same sign.
    """
    entry, claim = planned.entry, outcome.claim
    floor = claim.floor if entry.control.floor is None else entry.control.floor
    # Effects of other measures are not in the units of the sides.
    distance = entry.smallest - entry.margin if claim.measure == "difference" else 0.0
    return (
        find_failed_floor(outcome, floor, distance, cells)
        or _find_missing_room(outcome, entry)
        or _find_failed_requirement(planned, cells)
        or _find_other_sign(outcome, entry.control.same_sign, other)
    )


def _find_missing_room(outcome: Outcome, entry: PrimaryClaim) -> str:
    """Say that the worse side is so near to the best possible score that the published effect has no room."""
    perfect = entry.control.perfect
    if perfect is None or not entry.published:
        return ""
    means = [side.mean for side in outcome.sides]
    worse = max(means) if outcome.claim.relation == "less" else min(means)
    if abs(perfect - worse) < entry.published / 2:
        return f"no room: the worse side has {worse:.1f}, and {perfect:g} is the best possible"
    return ""


def _find_failed_requirement(planned: PlannedClaim, cells: dict[str, Cell]) -> str:
    """Say which required cell is not measured or too low on the planned seeds."""
    for required in planned.entry.control.requires:
        cell = cells.get(required.cell)
        if cell is None:
            return f"a control is not measured: {required.cell}"
        if cell.status == COMPUTED:
            mean = cell.computed
        elif set(planned.seeds) <= cell.seeds.keys():
            mean = float(np.mean([cell.seeds[seed] for seed in planned.seeds]))
        else:
            return f"a control is not measured: {required.cell}"
        if mean < required.at_least:
            return f"a control fails: {required.cell} is {mean:.1f}, and {required.at_least:g} is needed"
    return ""


def _find_other_sign(outcome: Outcome, name: str | None, other: Effect | None) -> str:
    """Say that the effect of the claim `name` has another sign than the outcome's, or none."""
    if not name:
        return ""
    if other is None or outcome.effect is None:
        return f"a control is not measured: {name}"
    if (other.value - other.null) * (outcome.effect.value - outcome.effect.null) <= 0:
        return f"a control fails: {name} has the other sign"
    return ""


def find_failed_floor(
    outcome: Outcome, floor: float | str | None, distance: float, cells: dict[str, Cell]
) -> str:
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
    best = min if errors else max
    better = best(outcome.sides, key=lambda side: side.mean)
    if any(cell.status == COMPUTED for cell in better.cells):
        lowest = floor - better.mean if errors else better.mean - floor
    else:
        values = list(better.average_by_seed().values())
        interval = statistics.compare_with_constant(values, floor, not errors).compute_interval(
            outcome.quantile
        )
        lowest = math.inf if interval is None else interval[0]
    if lowest <= distance:
        return f"a control fails: the better side, {better.mean:.1f}, is not beyond {floor:.1f} ({name})"
    return ""
