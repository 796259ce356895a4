"""Verdicts on claims, from the interval of the effect in the claimed direction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.analysis_plan import PlannedClaim
from workflow_scripts.config.display_schema import Claim
from workflow_scripts.evaluation.statistics import Effect, SuccessRates, compute_q_values
from workflow_scripts.reporting.claims.comparison import Comparison, PaperCells
from workflow_scripts.reporting.claims.controls import (
    compare_signs,
    find_failed_control,
    find_failed_floor,
)
from workflow_scripts.reporting.claims.effects import compute_planned_effect
from workflow_scripts.reporting.claims.measuring import (
    FEWEST_WITHOUT_SPREAD,
    count_successes,
    measure_claim,
    name_cause,
)
from workflow_scripts.reporting.claims.outcome import (
    INCONCLUSIVE,
    NO_VERDICT,
    NOT_REPRODUCED,
    REPRODUCED,
    MeasuredEffect,
    MeasuredSuccess,
    OpenClaim,
    Outcome,
)
from workflow_scripts.reporting.tables.cells import COMPUTED, MEASURED

FALSE_DISCOVERIES = 0.05
# Shares of the published effect that a reason names, with the words for them.
NAMED_SHARES = ((0.25, "a quarter of "), (0.5, "half of "), (1.0, ""))


def judge_claims(
    claims: Sequence[Claim],
    cells: PaperCells,
    verdicts: bool,
    scale: str,
    planned: Iterable[PlannedClaim] = (),
    departures: Mapping[str, str] = MappingProxyType({}),
    are_all: bool = True,
) -> list[Outcome]:
    """Judge claims of a paper on its `cells`: all of them, or without `are_all` some.

    At a scale without `verdicts`, effects are shown but not judged. The primary claims, `planned`,
    are judged on the seeds of their plan by its limits. All others are exploratory, with q values
    among themselves; some of them have none, and no verdict that depends on one. departures:
    primary claim -> how its runs depart from the plan, so that it has no verdict. Raises UserError
    for a claim about an unknown cell or claim.
    """
    primary = {planned_claim.name: planned_claim for planned_claim in planned}
    measured: list[Outcome | OpenClaim] = []
    for claim in claims:
        found = measure_claim(claim, cells, scale, primary.get(claim.claim))
        departure = departures.get(claim.claim)
        if departure and isinstance(found, OpenClaim):
            found = found.decide(NO_VERDICT, departure)
        measured.append(found)
    if not verdicts:
        return [_drop_verdict(found, scale) for found in measured]
    if are_all:
        measured = _add_q_values(measured)
    claims_by_name = {claim.claim: claim for claim in claims}
    judged = []
    for found in measured:
        if isinstance(found, OpenClaim):
            found = _judge(found, claims_by_name, cells)
        judged.append(found)
    verdict_of = {outcome.claim.claim: outcome.verdict for outcome in judged}
    return [_apply_condition(outcome, verdict_of, cells) for outcome in judged]


def _judge(measured: OpenClaim, claims_by_name: Mapping[str, Claim], cells: PaperCells) -> Outcome:
    """Decide a claim by its limits, unless a control fails."""
    comparison = measured.comparison
    planned = comparison.planned
    if planned is None:
        floor = comparison.claim.floor
        failure = find_failed_floor(comparison, floor, distance=0.0, cells=cells)
    else:
        failure = find_failed_control(comparison, planned, cells)
    if failure:
        return measured.decide(NO_VERDICT, failure)
    verdict, reason = _decide(measured)
    if planned is not None and verdict == REPRODUCED:
        failure = _find_other_sign(measured, planned, claims_by_name, cells)
        if failure:
            return measured.decide(NO_VERDICT, failure)
    return measured.decide(verdict, reason)


def _find_other_sign(
    measured: OpenClaim,
    planned: PlannedClaim,
    claims_by_name: Mapping[str, Claim],
    cells: PaperCells,
) -> str:
    """Say that the effect of the claim that the plan names as `same_sign` has another sign.

    Empty if it has the same sign, or if the plan names no claim.
    """
    name = planned.entry.control.same_sign
    if name is None:
        return ""
    effect = None
    if isinstance(measured.measurement, MeasuredEffect):
        effect = measured.measurement.effect
    other_effect = compute_planned_effect(claims_by_name[name], cells, planned.seeds)
    return compare_signs(effect, name, other_effect)


def _drop_verdict(measured: Outcome | OpenClaim, scale: str) -> Outcome:
    """Return the outcome at a scale without verdicts: its effect is kept, its p value is not."""
    if isinstance(measured, Outcome):
        return measured
    measurement = measured.measurement
    if isinstance(measurement, MeasuredEffect):
        measurement = replace(measurement, p_value=None)
    untested = replace(measured, measurement=measurement)
    return untested.decide(NO_VERDICT, f"the {scale} scale gives no verdict")


def _add_q_values(measured: list[Outcome | OpenClaim]) -> list[Outcome | OpenClaim]:
    """Add the q values of the exploratory claims that are tested."""
    tested: dict[int, OpenClaim] = {}  # by place in the list
    p_values: list[float] = []
    for place, found in enumerate(measured):
        if isinstance(found, OpenClaim) and found.exploratory_p_value is not None:
            tested[place] = found
            p_values.append(found.exploratory_p_value)
    with_q_values = list(measured)
    for place, q_value in zip(tested, compute_q_values(p_values), strict=True):
        with_q_values[place] = tested[place].add_q_value(q_value)
    return with_q_values


def _decide(measured: OpenClaim) -> tuple[str, str]:
    """Return (verdict, reason) of a claim whose controls hold; the reason may be empty."""
    comparison = measured.comparison
    if isinstance(measured.measurement, MeasuredSuccess):
        verdict, reason = decide_by_success(comparison, measured.measurement)
    else:
        verdict, reason = decide_by_interval(comparison, measured.measurement)
    reasons = [reason, _count_missing_cells(comparison), name_cause(comparison)]
    if isinstance(measured.measurement, MeasuredEffect):
        reasons.append(_count_planned_successes(comparison))
    reasons += _name_depths(comparison)
    return verdict, "; ".join(filter(None, reasons))


def _count_planned_successes(comparison: Comparison) -> str:
    """Say how many seeds are above the threshold of the plan; empty if it has none."""
    if comparison.planned is None or comparison.planned.entry.threshold is None:
        return ""
    threshold = comparison.planned.entry.threshold
    return describe_successes(count_successes(comparison.sides, threshold), threshold)


def _count_missing_cells(comparison: Comparison) -> str:
    """Say how many pairs of a trend are not run; empty if all are."""
    missing = 0
    for left, right in comparison.pairs:
        if not {left.status, right.status} <= {MEASURED, COMPUTED}:
            missing += 1
    if not missing:
        return ""
    return f"{missing} of {len(comparison.pairs)} cells not run"


def _name_depths(comparison: Comparison) -> list[str]:
    """Name the blocks of depths such as 25%: in small models several are often the first block."""
    blocks = set()
    for side in comparison.sides:
        for cell in side.cells:
            depth = cell.selection.layer
            if isinstance(depth, str):
                blocks.add((depth, cell.block))
    return [f"{depth} of the depth is block {block}" for depth, block in sorted(blocks)]


def decide_by_interval(comparison: Comparison, measured: MeasuredEffect) -> tuple[str, str]:
    """Return (verdict, reason) by the interval, and of an exploratory claim by its q value."""
    if measured.interval is None:
        return INCONCLUSIVE, _explain_missing_interval(measured.effect)
    low, high = measured.interval
    margin = comparison.claim.margin
    smallest = comparison.lower_bound
    is_above = low > margin
    is_below = high < smallest
    if not is_above and not is_below:
        return INCONCLUSIVE, _estimate_needed_seeds(comparison, measured.effect)
    if comparison.planned is None:
        if measured.q_value is None:
            return NO_VERDICT, _name_joint_judgement(comparison)
        if measured.q_value > FALSE_DISCOVERIES:
            place = "above the margin" if is_above else "below what would be of interest"
            return INCONCLUSIVE, _describe_chance(place, measured.q_value)
    if is_above:
        return REPRODUCED, "smaller than of interest" if is_below else ""
    null = measured.effect.null
    return NOT_REPRODUCED, describe_bound(comparison.published, margin, smallest, high, null)


def _explain_missing_interval(effect: Effect) -> str:
    """Say why an effect has no interval."""
    if effect.n == 1:
        return "one seed has no interval"
    rule = f"an interval needs {FEWEST_WITHOUT_SPREAD} of them"
    return f"the {effect.n} seeds of a side have the same value: {rule}"


def _name_joint_judgement(comparison: Comparison) -> str:
    """Say how an exploratory claim gets the q value that it lacks."""
    paper = comparison.sides[0].cells[0].paper
    return f"judged with all exploratory claims of the paper: ./reproduce --papers {paper}"


def _describe_chance(place: str, q_value: float) -> str:
    """Say that an interval at this place decides nothing because the q value is too large."""
    q_text = f"q is {q_value:.2g}, more than {FALSE_DISCOVERIES}"
    return f"the interval is {place}, but {q_text}: among many claims this can be chance"


def _estimate_needed_seeds(comparison: Comparison, effect: Effect) -> str:
    """Say how many seeds would decide; empty if that cannot be estimated."""
    above_margin = effect.value - comparison.claim.margin
    below_smallest = comparison.lower_bound - effect.value
    distance = max(above_margin, below_smallest)
    seeds = effect.estimate_seeds_to_decide(distance, comparison.quantile)
    if not seeds:
        return ""
    number = "more than 1,000" if seeds > 1000 else f"about {seeds}"
    condition = ", if q allows" if comparison.planned is None else ""
    return f"{number} seeds would decide{condition}"


def describe_bound(
    published: float | None, margin: float, smallest: float, high: float, null: float = 0.0
) -> str:
    """Return what `high` is below: `less than 2.1, a quarter of the published effect`.

    The number is `smallest`, in the unit of the effect. Empty for a share without a name. null: the
    effect if both sides are alike.
    """
    if high < null <= margin:
        return f"the whole interval is below {null:g}, opposite to the claim"
    if smallest == margin:
        return "the interval is below the margin"
    share = 0.0  # of the published effect, from the margin to `smallest`
    if published:
        share = (smallest - margin) / (published - null)
    for named_share, words in NAMED_SHARES:
        if abs(share - named_share) < 0.01:
            bound = f"{words}the published effect"
            if margin != null:
                bound = f"the margin of {margin:g} plus {bound}"
            return f"less than {smallest:.3g}, {bound}"
    return ""


def decide_by_success(comparison: Comparison, measured: MeasuredSuccess) -> tuple[str, str]:
    """Return (verdict, reason) from success rates.

    They are judged by Fisher's exact test, and by the upper limit of left's rate.
    """
    rates = measured.rates
    description = describe_successes(rates, measured.threshold)
    is_small = rates.compute_upper_limit(comparison.quantile) < comparison.lower_bound
    if rates.compute_fisher_p() <= 1 - comparison.quantile:
        if is_small:
            description += "; smaller than of interest"
        return REPRODUCED, description
    if is_small:
        return NOT_REPRODUCED, description
    return INCONCLUSIVE, description


def describe_successes(rates: SuccessRates, threshold: float) -> str:
    """Return how many seeds of each side are above a threshold."""
    left = f"{rates.left} of {rates.left_n} seeds"
    right = f"{rates.right} of {rates.right_n}"
    return f"above {threshold:g}: {left} against {right}"


def _apply_condition(outcome: Outcome, verdict_of: Mapping[str, str], cells: PaperCells) -> Outcome:
    """Give no verdict on a missing gain unless the gain that the claim requires is reproduced."""
    required = outcome.claim.given
    if required is None:
        return outcome
    if required not in verdict_of:
        place = f"{cells.place(outcome.claim)}: given"
        raise UserError(f"{place}: no claim '{required}'; {suggest_name(required, verdict_of)}")
    verdict = verdict_of[required]
    if outcome.verdict != REPRODUCED or verdict == REPRODUCED:
        return outcome
    gain = "has no verdict" if verdict == NO_VERDICT else f"is {verdict}"
    return replace(outcome, verdict=NO_VERDICT, reason=f"says nothing while {required} {gain}")
