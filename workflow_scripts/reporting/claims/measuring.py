"""Measure a claim on the cells of its paper: its effect over seeds, or why it has none."""

from workflow_scripts.config.analysis_plan import PlannedClaim
from workflow_scripts.config.display_schema import Claim
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.evaluation.statistics import Effect, SuccessRates
from workflow_scripts.reporting.claims.comparison import (
    Comparison,
    NoEffectError,
    PaperCells,
    Side,
    select_sides,
)
from workflow_scripts.reporting.claims.effects import compute_effect, find_published_effect
from workflow_scripts.reporting.claims.outcome import (
    NO_VERDICT,
    NOT_RUN,
    MeasuredEffect,
    MeasuredSuccess,
    OpenClaim,
    Outcome,
)
from workflow_scripts.reporting.tables.cells import COMPUTED, MEASURED, WITHHELD, Cell

FEWEST_CELLS = 3  # of a trend: two cells only say that one is above the other
# Seeds of a side that all have one value, so that Student's t has no error: that four of one side
# are above four of the other by chance happens in 1 of 70 cases, with three in 1 of 20.
FEWEST_WITHOUT_SPREAD = 4


def measure_claim(
    claim: Claim, cells: PaperCells, scale: str, planned: PlannedClaim | None
) -> Outcome | OpenClaim:
    """Measure a claim; the outcome of one that can have no verdict says why.

    planned: what the analysis plan says about a primary claim. Raises UserError for an unknown
    cell.
    """
    comparison = compare_sides(claim, cells, planned)
    if planned is not None:
        n_done = min(side.n_complete_seeds for side in comparison.sides)
        if n_done < len(planned.seeds):
            reasons = [f"{n_done} of {len(planned.seeds)} seeds", name_cause(comparison)]
            reason = "; ".join(filter(None, reasons))
            return Outcome(comparison, NO_VERDICT, reason, n_seeds=int(n_done))
    pairs = _select_measured_pairs(comparison)
    needed = FEWEST_CELLS if _is_trend(claim) else len(comparison.pairs)
    if len(pairs) < needed:
        return Outcome(comparison, NOT_RUN, _explain_missing_cells(comparison, scale))
    protocol = find_worst_protocol(*(cell.protocol for pair in pairs for cell in pair))
    if planned is not None and planned.entry.success_threshold is not None:
        return _measure_success(comparison, planned.entry.success_threshold, protocol)
    return _measure_effect(comparison, pairs, protocol)


def compare_sides(claim: Claim, cells: PaperCells, planned: PlannedClaim | None) -> Comparison:
    """Return what a claim compares: of a primary claim, the planned seeds."""
    seeds = None
    published = None
    if planned is not None:
        seeds = planned.seeds
        published = planned.entry.published
    sides = select_sides(claim, cells, seeds)
    if published is None:
        published = find_published_effect(claim, sides, cells)
    return Comparison(claim, sides, published, planned)


def _measure_success(
    comparison: Comparison, threshold: float, protocol: str
) -> Outcome | OpenClaim:
    """Count the seeds of each side that succeed. This is meaningful at 0% and at 100%, too."""
    rates = count_successes(comparison.sides, threshold)
    measured = OpenClaim(comparison, MeasuredSuccess(rates, threshold), protocol)
    if protocol == "stand_in":
        return measured.decide(NO_VERDICT, "generated data")
    return measured


def _measure_effect(
    comparison: Comparison, pairs: list[tuple[Cell, Cell]], protocol: str
) -> Outcome | OpenClaim:
    """Measure the effect of these pairs of cells with its interval and p value."""
    if comparison.claim.measure == "success_rate":
        reason = "a share of seeds that succeed has a verdict only in an analysis plan"
        return Outcome(comparison, NO_VERDICT, reason, protocol=protocol)
    try:
        effect = compute_effect(comparison.claim, pairs)
    except NoEffectError as error:
        n_planned = comparison.n_planned  # all of them are run
        return Outcome(comparison, NO_VERDICT, str(error), protocol=protocol, n_seeds=n_planned)
    interval = effect.compute_interval(comparison.quantile)
    untested = OpenClaim(comparison, MeasuredEffect(effect, interval), protocol)
    if protocol == "stand_in":
        return untested.decide(NO_VERDICT, "generated data")
    value = "" if _is_trend(comparison.claim) else _find_common_value(pairs)
    if value:
        reason = f"all seeds of both sides are at {value}: no difference could be seen"
        return untested.decide(NO_VERDICT, reason)
    if effect.is_without_spread and effect.n < FEWEST_WITHOUT_SPREAD:
        return OpenClaim(comparison, MeasuredEffect(effect, interval=None), protocol)
    p_value = compute_deciding_p_value(comparison, effect)
    return OpenClaim(comparison, MeasuredEffect(effect, interval, p_value), protocol)


def _is_trend(claim: Claim) -> bool:
    """Whether the claim is about a row of cells."""
    return claim.relation == "falls_with"


def _select_measured_pairs(comparison: Comparison) -> list[tuple[Cell, Cell]]:
    """Select the pairs of cells that can be compared.

    One side may be a number that no seed changes, such as a control without any model; of a trend,
    none.
    """
    allowed = [(MEASURED, MEASURED)]
    if not _is_trend(comparison.claim):
        allowed += [(MEASURED, COMPUTED), (COMPUTED, MEASURED)]
    measured = []
    for left, right in comparison.pairs:
        if (left.status, right.status) in allowed:
            measured.append((left, right))
    return measured


def _explain_missing_cells(comparison: Comparison, scale: str) -> str:
    """Say why cells of a claim cannot be compared: the note of a withheld one, or not measured."""
    for pair in comparison.pairs:
        for cell in pair:
            if cell.status == WITHHELD:
                return cell.note
    return name_cause(comparison) or f"not measured at {scale}"


def name_cause(comparison: Comparison) -> str:
    """Say why runs that the claim compares are not run although they were asked for.

    Empty if they are run, or were not asked for.
    """
    for pair in comparison.pairs:
        for cell in pair:
            if cell.cause:
                return f"not run: {cell.cause.sentence}"
    return ""


def count_successes(sides: tuple[Side, Side], threshold: float) -> SuccessRates:
    """Count the seeds of each side that are above a threshold."""
    left, right = (list(side.average_by_seed().values()) for side in sides)
    left_successes = sum(value > threshold for value in left)
    right_successes = sum(value > threshold for value in right)
    return SuccessRates(left_successes, len(left), right_successes, len(right))


def compute_deciding_p_value(comparison: Comparison, effect: Effect) -> float | None:
    """Return the p-value by which either verdict is reached; None for a single seed.

    It is that of a two-sided t test against the bound that the interval is beyond: against the
    margin if it is above that, which is reproduced, and else against the smallest effect of
    interest if it is below that. An interval that decides nothing has that of the bound that the
    effect is beyond, and between the two the smaller one.
    """
    margin = comparison.claim.margin
    smallest = comparison.lower_bound
    interval = effect.compute_interval(comparison.quantile)
    if interval is not None and interval[0] > margin:
        return effect.compute_p_value(margin)
    if effect.value == margin == smallest:
        return effect.compute_p_value(margin)
    p_values = []
    if effect.value > margin:
        p_values.append(effect.compute_p_value(margin))
    if effect.value < smallest:
        p_values.append(effect.compute_p_value(smallest))
    tested = [p_value for p_value in p_values if p_value is not None]
    return min(tested, default=None)


def _find_common_value(pairs: list[tuple[Cell, Cell]]) -> str:
    """Return the value that all seeds of all cells have, such as 0%; empty if some differ."""
    values = set()
    for pair in pairs:
        for cell in pair:
            numbers = cell.seeds.values() or [cell.computed]
            values |= {(number, cell.unit) for number in numbers}
    if len(values) > 1:
        return ""
    ((value, unit),) = values
    return f"{value:g}%" if unit == "percent" else f"{value:g}"
