"""The effect of a claim, measured or published, and the controls that a verdict needs."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.analysis_plan import PrimaryClaim
from workflow_scripts.config.display_schema import Claim, match_stars
from workflow_scripts.evaluation import statistics
from workflow_scripts.evaluation.seeds import list_common_seeds
from workflow_scripts.evaluation.statistics import Effect, SuccessRates
from workflow_scripts.reporting.evidence.pairing import compute_difference
from workflow_scripts.reporting.tables.cells import COMPUTED, MEASURED, NOT_RUN, Cell

EXPLORATORY = "exploratory"
# Measured, but a control fails, data are generated, or seeds of the plan are missing.
NO_VERDICT = "no verdict"
NO_VALUE = "no seed has a value in all cells of a side"


class NoEffectError(Exception):
    """The scores of a claim exist but give no effect; the message says why."""


@dataclass(frozen=True)
class Side:
    """One side of a claim: one or several cells with their seeds. A number is a computed cell."""

    cells: tuple[Cell, ...]

    @property
    def n_complete_seeds(self) -> float:
        """Number of seeds that all cells have; infinite for numbers without seeds."""
        cells = [cell for cell in self.cells if cell.status != COMPUTED]
        if not cells:
            return math.inf
        return len(list_common_seeds(cell.seeds for cell in cells))

    @property
    def is_number(self) -> bool:
        """Whether the side has no seeds."""
        return self.cells[0].status == COMPUTED

    @property
    def number(self) -> float:
        """The mean over cells without seeds.

        Raises NoEffectError if one of them has no number: one of which no logarithm can be taken.
        """
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
        averages = {}
        for seed in list_common_seeds(cell.seeds for cell in self.cells):
            values = [cell.seeds[seed] for cell in self.cells]
            averages[seed] = float(np.mean(values))
        return averages


@dataclass(frozen=True)
class Outcome:
    """A judged claim. It has no effect if a side was not measured, or if planned seeds are missing.

    plan: file of the analysis plan of a primary claim. interval: of the effect, by the t quantile
    `quantile`. smallest: the smallest effect of interest, None if the paper gives no effect.
    published: the effect in the paper's numbers. n_seeds, n_planned: of the side with fewer seeds,
    and per side of a primary claim. reason: why it has this verdict or none.
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
        """Whether the paper's own numbers `agree` with the claim or `contradict` it.

        Empty if it prints none.
        """
        if self.published is None:
            return ""
        if self.published > self.claim.margin:
            return "agree"
        return "contradict"

    @property
    def pairs(self) -> list[tuple[Cell, Cell]]:
        """The cells that are compared with each other."""
        left, right = self.sides
        return list(zip(left.cells, right.cells, strict=True))


def select_sides(
    claim: Claim, cells: dict[str, Cell], file: str, seeds: list[int] | None
) -> tuple[Side, Side]:
    """Return the cells of both sides in pairs; for a trend those that both sides have.

    With `seeds` None they have all of their seeds, else these only. file: of the claims, for
    messages. Raises UserError for an unknown cell.
    """
    pairs = _pair_cells(claim, cells, file)
    if seeds is not None:
        pairs = [(_keep_seeds(left, seeds), _keep_seeds(right, seeds)) for left, right in pairs]
    return _split_pairs(pairs)


def _split_pairs(pairs: list[tuple[Cell, Cell]]) -> tuple[Side, Side]:
    """Return the left and the right side of pairs of cells."""
    left = Side(tuple(left for left, _ in pairs))
    right = Side(tuple(right for _, right in pairs))
    return left, right


def _pair_cells(claim: Claim, cells: dict[str, Cell], file: str) -> list[tuple[Cell, Cell]]:
    """Return the cells that a claim compares, pair by pair. A number is a cell without seeds."""
    if isinstance(claim.right, int | float):
        (left,) = _find_cells(claim.left, cells, claim, file).values()
        number = replace(
            left, status=COMPUTED, computed=claim.right, published=None, seeds={}, weights=""
        )
        return [(left, number)]
    if isinstance(claim.left, list):
        pairs = []
        for left_key, right_key in zip(claim.left, claim.right, strict=True):
            (left,) = _find_cells(left_key, cells, claim, file).values()
            (right,) = _find_cells(right_key, cells, claim, file).values()
            pairs.append((left, right))
        return pairs
    left_by_name = _find_cells(claim.left, cells, claim, file)
    right_by_name = _find_cells(claim.right, cells, claim, file)
    pairs = []
    for name, left in left_by_name.items():
        if name in right_by_name:
            pairs.append((left, right_by_name[name]))
    return pairs


def compute_effect(claim: Claim, pairs: list[tuple[Cell, Cell]]) -> Effect:
    """Compute the effect in the claimed direction over seeds.

    Several pairs are averaged per seed first. Raises NoEffectError if paired seeds are missing, or
    if no value of a side has a logarithm.
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
    left, right = _split_pairs(pairs)
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
    left, right = _split_pairs(pairs)
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


def compute_planned_effect(
    claim: Claim, cells: dict[str, Cell], seeds: list[int], file: str
) -> Effect | None:
    """Compute the effect of a claim on these seeds only.

    None if a cell lacks one of them, or if its scores give no effect. file: of the claims, for
    messages.
    """
    left, right = select_sides(claim, cells, file, seeds)
    if min(left.n_complete_seeds, right.n_complete_seeds) < len(seeds):
        return None
    try:
        return compute_effect(claim, list(zip(left.cells, right.cells, strict=True)))
    except NoEffectError:
        return None


def find_published_effect(
    claim: Claim, pairs: list[tuple[Cell, Cell]], cells: dict[str, Cell], file: str
) -> float | None:
    """Return the effect of a claim in the paper's numbers; None if it does not print them."""
    if claim.published:
        (cell,) = _find_cells(claim.published, cells, claim, file).values()
        return _get_published_value(cell)
    if claim.measure in ("success_rate", "superiority"):  # papers print means
        return None
    left = [_get_published_value(cell) for cell, _ in pairs]
    right = [_get_published_value(cell) for _, cell in pairs]
    transform = TRANSFORMS.get(claim.measure)
    if transform is not None:
        left = [_apply_to_value(value, transform) for value in left]
        right = [_apply_to_value(value, transform) for value in right]
    if None in left or None in right:
        return None
    if claim.relation == "falls_with":
        return -float(statistics.compute_kendall_tau(np.array(left), np.array(right)))
    effect = float(np.mean(np.array(left) - np.array(right)))
    if claim.relation == "greater":
        return effect
    return 0.0 - effect  # not -0.0


def _get_published_value(cell: Cell) -> float | None:
    """Return the number that the paper prints for a cell; None if it prints none."""
    return cell.published.value if cell.published else None


def _compute_logarithm(value: float) -> float | None:
    """Return ln(value); None at 0 and below, where there is none."""
    if value <= 0:
        return None
    return math.log(value)


def _compute_log_odds(percent: float) -> float | None:
    """Return ln(p / (1 - p)) of a percentage; None at 0% and at 100%, where it is infinite."""
    if not 0 < percent < 100:
        return None
    return math.log(percent / (100 - percent))


Transform = Callable[[float], float | None]
# Measure -> what is taken of each value before two sides are compared.
TRANSFORMS: dict[str, Transform] = {
    "log_ratio": _compute_logarithm,
    "log_odds": _compute_log_odds,
}


def _apply_to_value(value: float | None, transform: Transform) -> float | None:
    """Transform a value; None stays None."""
    if value is None:
        return None
    return transform(value)


def _apply_to_cell(cell: Cell, transform: Transform) -> Cell:
    """Transform every value of a cell, and leave out seeds whose value has no result."""
    transformed = {seed: transform(value) for seed, value in cell.seeds.items()}
    seeds = {seed: value for seed, value in transformed.items() if value is not None}
    return replace(cell, seeds=seeds, computed=_apply_to_value(cell.computed, transform))


def _keep_seeds(cell: Cell, seeds: list[int]) -> Cell:
    """Drop the other seeds of a cell; a measured one without any of `seeds` is not run."""
    kept = {seed: value for seed, value in cell.seeds.items() if seed in seeds}
    if cell.status == MEASURED and not kept:
        return replace(cell, seeds=kept, status=NOT_RUN)
    return replace(cell, seeds=kept)


def _find_cells(pattern: str, cells: dict[str, Cell], claim: Claim, file: str) -> dict[str, Cell]:
    """Return the cells of a side of a claim by the text that `*` matches, empty without `*`."""
    place = f"{file}: claim {claim.claim}"
    allowed_stars = 1 if claim.relation == "falls_with" else 0
    if pattern.split("/").count("*") != allowed_stars:
        rule = "only falls_with has it, once on either side"
        raise UserError(f"{place}: '*' in {pattern}; {rule}")
    cells_by_text: dict[str, Cell] = {}
    if allowed_stars:
        for key, cell in cells.items():
            texts = match_stars(pattern, key)
            if texts is not None:
                cells_by_text["".join(texts)] = cell
    elif pattern in cells:
        cells_by_text[""] = cells[pattern]
    if not cells_by_text:
        raise UserError(f"{place}: there is no cell {pattern} in displays.yaml")
    return cells_by_text


def find_failed_control(
    outcome: Outcome, entry: PrimaryClaim, seeds: list[int], cells: dict[str, Cell]
) -> str:
    """Describe the first control of a primary claim that fails; empty if all hold.

    They are the floor (the plan's, or else that of the claim), room for an effect, and required
    cells, which are judged on the planned `seeds`. For a claim about a difference, the better side
    must be farther from the floor than the smallest effect of interest is from the margin; for
    other measures, it must be beyond the floor. entry: what the plan says about the claim.
    """
    floor = entry.control.floor
    if floor is None:
        floor = outcome.claim.floor
    distance_to_floor = 0.0  # effects of other measures are not in the units of the sides
    if outcome.claim.measure == "difference":
        distance_to_floor = entry.smallest - entry.margin
    return (
        find_failed_floor(outcome, floor, distance_to_floor, cells)
        or _find_missing_room(outcome, entry)
        or _find_failed_requirement(entry, seeds, cells)
    )


def _find_missing_room(outcome: Outcome, entry: PrimaryClaim) -> str:
    """Say that the worse side is so near to the best possible score that no effect has room.

    Half of the published effect is taken as room enough. Empty if there is room, or if the plan
    names no best possible score or no published effect.
    """
    perfect = entry.control.perfect
    if perfect is None or not entry.published:
        return ""
    worse = min(side.mean for side in outcome.sides)
    if outcome.claim.relation == "less":  # of errors
        worse = max(side.mean for side in outcome.sides)
    if abs(perfect - worse) < entry.published / 2:
        return f"no room: the worse side has {worse:.1f}, and {perfect:g} is the best possible"
    return ""


def _find_failed_requirement(entry: PrimaryClaim, seeds: list[int], cells: dict[str, Cell]) -> str:
    """Say which required cell is not measured or too low on the planned seeds."""
    for required in entry.control.requires:
        mean = _average_planned_seeds(cells.get(required.cell), seeds)
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


def compare_signs(outcome: Outcome, name: str, other_effect: Effect | None) -> str:
    """Say that the effect of the claim `name` has another sign than the outcome's, or none.

    Empty if both have the same sign.
    """
    if other_effect is None or outcome.effect is None:
        return f"a control is not measured: {name}"
    difference = outcome.effect.value - outcome.effect.null
    other_difference = other_effect.value - other_effect.null
    if other_difference * difference <= 0:
        return f"a control fails: {name} has the other sign"
    return ""


def find_failed_floor(
    outcome: Outcome, floor: float | str | None, distance: float, cells: dict[str, Cell]
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
        cell = cells.get(floor)
        if cell is None or cell.status not in (MEASURED, COMPUTED):
            return f"a control is not measured: {floor}"
        floor_score = cell.mean
    else:
        name = "what a model scores that has learnt nothing"
        floor_score = floor
    are_errors = outcome.claim.relation == "less"
    if are_errors:
        better = min(outcome.sides, key=lambda side: side.mean)
    else:
        better = max(outcome.sides, key=lambda side: side.mean)
    lowest_distance = _find_lowest_distance(better, floor_score, are_errors, outcome.quantile)
    if lowest_distance > distance:
        return ""
    failure = f"the better side, {better.mean:.1f}, is not beyond {floor_score:.1f}"
    return f"a control fails: {failure} ({name})"


def _find_lowest_distance(
    side: Side, floor: float, are_errors: bool, quantile: float | None
) -> float:
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
