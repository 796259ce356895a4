"""Verdicts on claims, from the interval of the effect in the claimed direction."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.analysis_plan import PlannedClaim, PrimaryClaim
from workflow_scripts.config.display_schema import Claim
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.evaluation.statistics import QUANTILE, SuccessRates, compute_q_values
from workflow_scripts.reporting.claims import effects
from workflow_scripts.reporting.claims.effects import EXPLORATORY, NO_VERDICT, Outcome, Side
from workflow_scripts.reporting.tables.cells import COMPUTED, MEASURED, WITHHELD, Cell

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
INCONCLUSIVE = "inconclusive"
NOT_RUN = "not run"  # not measured
MEANINGS = {
    REPRODUCED: "the whole interval is beyond what is claimed; "
    "of exploratory claims q is at most 0.05, too",
    NOT_REPRODUCED: "the whole interval is below the smallest effect of interest, "
    "or below the margin if there is none",
    INCONCLUSIVE: "neither of the two",
    NO_VERDICT: "planned seeds are missing, a control fails or is not measured, "
    "or the data are generated",
    NOT_RUN: "this scale does not measure it",
}
VERDICTS = tuple(MEANINGS)
DECIDED = (REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE)  # by all planned seeds
PRIMARY = "primary"
FEWEST_CELLS = 3  # of a trend: two cells only say that one is above the other
FALSE_DISCOVERIES = 0.05
QUARTER = 0.25  # of the published effect: less than this above the margin is not reproduced
# Shares of the published effect that a reason names, with the words for them.
NAMED_SHARES = ((0.25, "a quarter of "), (0.5, "half of "), (1.0, ""))


def judge_claims(
    claims: list[Claim],
    cells: dict[str, Cell],
    verdicts: bool,
    scale: str,
    file: str,
    planned: Iterable[PlannedClaim] = (),
    departures: Mapping[str, str] = MappingProxyType({}),
    are_all: bool = True,
) -> list[Outcome]:
    """Judge claims of a paper on its `cells`: all of them, or without `are_all` some.

    At a scale without `verdicts`, effects are shown but not judged. The primary claims, `planned`,
    are judged on the seeds of their plan by its limits. All others are exploratory, with q values
    among themselves; some of them have none, and no verdict that depends on one. departures:
    primary claim -> how its runs depart from the plan, so that it has no verdict. Raises UserError
    with `file` for a claim about an unknown cell or claim.
    """
    primary = {planned_claim.name: planned_claim for planned_claim in planned}
    outcomes = []
    for claim in claims:
        outcome = _measure(claim, cells, scale, file, primary.get(claim.claim))
        departure = departures.get(claim.claim)
        if departure and _is_undecided(outcome):
            outcome = replace(outcome, reason=departure)
        outcomes.append(outcome)
    if not verdicts:
        return [_drop_verdict(outcome, scale) for outcome in outcomes]
    claims_by_name = {claim.claim: claim for claim in claims}
    if are_all:
        outcomes = _add_q_values(outcomes)
    judged = []
    for outcome in outcomes:
        if _is_undecided(outcome):
            planned_claim = primary.get(outcome.claim.claim)
            outcome = _judge(outcome, planned_claim, claims_by_name, cells, file)
        judged.append(outcome)
    verdict_of = {outcome.claim.claim: outcome.verdict for outcome in judged}
    return [_apply_condition(outcome, verdict_of, file) for outcome in judged]


def _judge(
    outcome: Outcome,
    planned: PlannedClaim | None,
    claims_by_name: Mapping[str, Claim],
    cells: dict[str, Cell],
    file: str,
) -> Outcome:
    """Decide an outcome by its limits, unless a control fails."""
    if planned is None:
        floor = outcome.claim.floor
        failure = effects.find_failed_floor(outcome, floor, distance=0.0, cells=cells)
    else:
        failure = effects.find_failed_control(outcome, planned.entry, planned.seeds, cells)
    if failure:
        return replace(outcome, reason=failure)
    decided = _decide(outcome, planned)
    if planned is None or decided.verdict != REPRODUCED:
        return decided
    failure = _find_other_sign(outcome, planned, claims_by_name, cells, file)
    if failure:
        return replace(outcome, reason=failure)
    return decided


def _find_other_sign(
    outcome: Outcome,
    planned: PlannedClaim,
    claims_by_name: Mapping[str, Claim],
    cells: dict[str, Cell],
    file: str,
) -> str:
    """Say that the effect of the claim that the plan names as `same_sign` has another sign.

    Empty if it has the same sign, or if the plan names no claim.
    """
    other_claim = claims_by_name.get(planned.entry.control.same_sign)
    if other_claim is None:
        return ""
    other_effect = effects.compute_planned_effect(other_claim, cells, planned.seeds, file)
    return effects.compare_signs(outcome, other_claim.claim, other_effect)


def _is_undecided(outcome: Outcome) -> bool:
    """Whether the outcome can still get a verdict: nothing says why it has none."""
    return outcome.verdict == NO_VERDICT and not outcome.reason


def _drop_verdict(outcome: Outcome, scale: str) -> Outcome:
    """Return the outcome at a scale without verdicts: its effect is kept, its p value is not."""
    if not _is_undecided(outcome):
        return outcome
    return replace(outcome, p_value=None, reason=f"the {scale} scale gives no verdict")


def _add_q_values(outcomes: list[Outcome]) -> list[Outcome]:
    """Add the q values of the exploratory claims that are tested."""
    tested = []
    for i, outcome in enumerate(outcomes):
        is_exploratory = _is_undecided(outcome) and outcome.role == EXPLORATORY
        if is_exploratory and outcome.p_value is not None:
            tested.append(i)
    q_values = compute_q_values([outcomes[i].p_value for i in tested])
    with_q_values = list(outcomes)
    for i, q_value in zip(tested, q_values, strict=True):
        with_q_values[i] = replace(outcomes[i], q_value=q_value)
    return with_q_values


def _measure(
    claim: Claim, cells: dict[str, Cell], scale: str, file: str, planned: PlannedClaim | None
) -> Outcome:
    """Measure the effect of a claim, without a verdict yet unless it can have none."""
    outcome = _start_outcome(claim, cells, file, planned)
    if planned:
        n_done = min(side.n_complete_seeds for side in outcome.sides)
        if n_done < len(planned.seeds):
            reasons = [f"{n_done} of {len(planned.seeds)} seeds", _name_cause(outcome)]
            reason = "; ".join(filter(None, reasons))
            return replace(outcome, n_seeds=n_done, reason=reason)
    measured = _select_measured_pairs(outcome)
    is_trend = claim.relation == "falls_with"
    needed = FEWEST_CELLS if is_trend else len(outcome.pairs)
    if len(measured) < needed:
        return replace(outcome, verdict=NOT_RUN, reason=_explain_missing_cells(outcome, scale))
    protocols = [cell.protocol for pair in measured for cell in pair]
    outcome = replace(outcome, protocol=find_worst_protocol(*protocols))
    if planned and planned.entry.counts_successes:
        success = count_successes(outcome.sides, planned.entry.threshold)
        outcome = replace(outcome, success=success, n_seeds=min(success.left_n, success.right_n))
    else:
        outcome = _add_effect(outcome, measured)
        if outcome.reason:
            return outcome
    if not planned and _has_published_gain(outcome):
        outcome = replace(outcome, smallest=claim.margin + QUARTER * outcome.published)
    if outcome.protocol == "stand_in":
        return replace(outcome, reason="generated data")
    if outcome.effect is None:  # a success rate has no p value, and is meaningful at 0% or 100%
        return outcome
    end = "" if is_trend else _find_common_end(measured)
    if end:
        reason = f"all seeds of both sides are at {end}: no difference could be seen"
        return replace(outcome, reason=reason)
    return replace(outcome, p_value=compute_deciding_p_value(outcome))


def _start_outcome(
    claim: Claim, cells: dict[str, Cell], file: str, planned: PlannedClaim | None
) -> Outcome:
    """Return what is known of a claim before its cells are looked at."""
    sides = effects.select_sides(claim, cells, file, planned.seeds if planned else None)
    outcome = Outcome(claim, sides)
    published = planned.entry.published if planned else None
    if not published:
        published = effects.find_published_effect(claim, outcome.pairs, cells, file)
    outcome = replace(outcome, published=published)
    if planned is None:
        return outcome
    return replace(
        outcome,
        role=PRIMARY,
        plan=planned.file,
        smallest=planned.entry.smallest,
        quantile=planned.plan.limit_quantile,
        n_planned=len(planned.seeds),
    )


def _select_measured_pairs(outcome: Outcome) -> list[tuple[Cell, Cell]]:
    """Select the pairs of cells that can be compared.

    One side may be a number that no seed changes, such as a control without any model; of a trend,
    none.
    """
    allowed = [(MEASURED, MEASURED)]
    if outcome.claim.relation != "falls_with":
        allowed += [(MEASURED, COMPUTED), (COMPUTED, MEASURED)]
    measured = []
    for left, right in outcome.pairs:
        if (left.status, right.status) in allowed:
            measured.append((left, right))
    return measured


def _explain_missing_cells(outcome: Outcome, scale: str) -> str:
    """Say why cells of a claim cannot be compared: the note of a withheld one, or not measured."""
    for pair in outcome.pairs:
        for cell in pair:
            if cell.status == WITHHELD:
                return cell.note
    return _name_cause(outcome) or f"not measured at {scale}"


def _name_cause(outcome: Outcome) -> str:
    """Say why runs that the claim compares are not run although they were asked for.

    Empty if they are run, or were not asked for.
    """
    for pair in outcome.pairs:
        for cell in pair:
            if cell.cause:
                return f"not run: {cell.cause.sentence}"
    return ""


def _add_effect(outcome: Outcome, measured: list[tuple[Cell, Cell]]) -> Outcome:
    """Add the effect with its interval, or the reason why there is none."""
    if outcome.claim.measure == "success_rate":
        reason = "a share of seeds that succeed has a verdict only in an analysis plan"
        return replace(outcome, reason=reason)
    try:
        effect = effects.compute_effect(outcome.claim, measured)
    except effects.NoEffectError as error:
        return replace(outcome, reason=str(error))
    if outcome.n_planned is not None and effect.n < outcome.n_planned:
        reason = f"{effect.n} of {outcome.n_planned} seeds have a value"
        return replace(outcome, n_seeds=effect.n, reason=reason)
    quantile = outcome.quantile or QUANTILE
    interval = effect.compute_interval(quantile)
    return replace(outcome, effect=effect, quantile=quantile, interval=interval, n_seeds=effect.n)


def _has_published_gain(outcome: Outcome) -> bool:
    """Whether a part of the published effect can be the smallest effect of interest."""
    if outcome.published is None or outcome.claim.relation == "no_gain":
        return False
    return outcome.published > 0


def count_successes(sides: tuple[Side, Side], threshold: float) -> SuccessRates:
    """Count the seeds of each side that are above a threshold."""
    left, right = (list(side.average_by_seed().values()) for side in sides)
    left_successes = sum(value > threshold for value in left)
    right_successes = sum(value > threshold for value in right)
    return SuccessRates(left_successes, len(left), right_successes, len(right))


def compute_deciding_p_value(outcome: Outcome) -> float | None:
    """Return the p-value by which either verdict is reached; None for a single seed.

    It is that of a two-sided t test against the bound that the effect is beyond: against the margin
    if it is above that, against the smallest effect of interest if it is below that, and the
    smaller of the two between them. At most one of the two verdicts can be wrong, since the margin
    is not above the smallest effect of interest.
    """
    margin = outcome.claim.margin
    effect = outcome.effect
    smallest = _find_smallest(outcome)
    if effect.value == margin == smallest:
        return effect.compute_p_value(margin)
    if effect.error is None:
        return None
    p_values = []
    if effect.value > margin:
        p_values.append(effect.compute_p_value(margin))
    if effect.value < smallest:
        p_values.append(effect.compute_p_value(smallest))
    return min(p_values)


def _find_smallest(outcome: Outcome) -> float:
    """Return the smallest effect of interest: where the paper prints no effect, the margin."""
    if outcome.smallest is None:
        return outcome.claim.margin
    return outcome.smallest


def _decide(outcome: Outcome, planned: PlannedClaim | None) -> Outcome:
    """Decide on a measured claim whose controls hold, with the reason if one is needed."""
    if planned and outcome.success:
        verdict, reason = decide_by_success(outcome, planned.entry)
    else:
        verdict, reason = decide_by_interval(outcome)
    reasons = [reason, _count_missing_cells(outcome), _name_cause(outcome)]
    if planned and planned.entry.threshold is not None and not outcome.success:
        rates = count_successes(outcome.sides, planned.entry.threshold)
        reasons.append(describe_successes(rates, planned.entry.threshold))
    reasons += _name_depths(outcome)
    return replace(outcome, verdict=verdict, reason="; ".join(filter(None, reasons)))


def _count_missing_cells(outcome: Outcome) -> str:
    """Say how many pairs of a trend are not run; empty if all are."""
    missing = 0
    for left, right in outcome.pairs:
        if not {left.status, right.status} <= {MEASURED, COMPUTED}:
            missing += 1
    if not missing:
        return ""
    return f"{missing} of {len(outcome.pairs)} cells not run"


def _name_depths(outcome: Outcome) -> list[str]:
    """Name the blocks of depths such as 25%: in small models several are often the first block."""
    blocks = set()
    for side in outcome.sides:
        for cell in side.cells:
            depth = cell.selection.layer
            if isinstance(depth, str):
                blocks.add((depth, cell.block))
    return [f"{depth} of the depth is block {block}" for depth, block in sorted(blocks)]


def decide_by_interval(outcome: Outcome) -> tuple[str, str]:
    """Return (verdict, reason) by the interval, and of an exploratory claim by its q value."""
    if outcome.interval is None:
        return INCONCLUSIVE, "one seed has no interval"
    low, high = outcome.interval
    margin = outcome.claim.margin
    smallest = _find_smallest(outcome)
    if low <= margin and high >= smallest:
        return INCONCLUSIVE, _estimate_needed_seeds(outcome, smallest)
    if outcome.role == EXPLORATORY and outcome.q_value is None:
        return NO_VERDICT, _name_joint_judgement(outcome)
    is_discovered = outcome.role == PRIMARY or outcome.q_value <= FALSE_DISCOVERIES
    if low > margin and is_discovered:
        return REPRODUCED, "smaller than of interest" if high < smallest else ""
    if high < smallest and is_discovered:
        null = outcome.effect.null
        return NOT_REPRODUCED, describe_bound(outcome.published, margin, smallest, high, null)
    if low > margin:
        return INCONCLUSIVE, _describe_chance("above the margin", outcome.q_value)
    return INCONCLUSIVE, _describe_chance("below what would be of interest", outcome.q_value)


def _name_joint_judgement(outcome: Outcome) -> str:
    """Say how an exploratory claim gets the q value that it lacks."""
    paper = outcome.sides[0].cells[0].paper
    return f"judged with all exploratory claims of the paper: ./reproduce --papers {paper}"


def _describe_chance(place: str, q_value: float) -> str:
    """Say that an interval at this place decides nothing because the q value is too large."""
    q_text = f"q is {q_value:.2g}, more than {FALSE_DISCOVERIES}"
    return f"the interval is {place}, but {q_text}: among many claims this can be chance"


def _estimate_needed_seeds(outcome: Outcome, smallest: float) -> str:
    """Say how many seeds would decide; empty if that cannot be estimated."""
    effect = outcome.effect
    distance = max(effect.value - outcome.claim.margin, smallest - effect.value)
    seeds = effect.estimate_seeds_to_decide(distance, outcome.quantile)
    if not seeds:
        return ""
    number = "more than 1,000" if seeds > 1000 else f"about {seeds}"
    condition = ", if q allows" if outcome.role == EXPLORATORY else ""
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


def decide_by_success(outcome: Outcome, entry: PrimaryClaim) -> tuple[str, str]:
    """Return (verdict, reason) from success rates.

    They are judged by Fisher's exact test, and by the upper limit of left's rate.
    """
    rates = outcome.success
    description = describe_successes(rates, entry.threshold)
    is_small = rates.compute_upper_limit(outcome.quantile) < entry.smallest
    if rates.compute_fisher_p() <= 1 - outcome.quantile:
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


def _apply_condition(outcome: Outcome, verdict_of: dict[str, str], file: str) -> Outcome:
    """Give no verdict on a missing gain unless the gain that the claim requires is reproduced."""
    required = outcome.claim.given
    if required is None:
        return outcome
    if required not in verdict_of:
        place = f"{file}: claim {outcome.claim.claim}: given"
        raise UserError(f"{place}: no claim '{required}'; {suggest_name(required, verdict_of)}")
    verdict = verdict_of[required]
    if outcome.verdict != REPRODUCED or verdict == REPRODUCED:
        return outcome
    gain = "has no verdict" if verdict == NO_VERDICT else f"is {verdict}"
    return replace(outcome, verdict=NO_VERDICT, reason=f"says nothing while {required} {gain}")


def _find_common_end(pairs: list[tuple[Cell, Cell]]) -> str:
    """Return the end of the scale, 0% or 100%, where all seeds of all cells are; empty if none."""
    values = set()
    for pair in pairs:
        for cell in pair:
            numbers = cell.seeds.values() or [cell.computed]
            values |= {(number, cell.unit) for number in numbers}
    if values == {(0.0, "percent")}:
        return "0%"
    if values == {(100.0, "percent")}:
        return "100%"
    return ""
