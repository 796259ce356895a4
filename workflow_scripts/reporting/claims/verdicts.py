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

REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE = "reproduced", "not reproduced", "inconclusive"
NOT_RUN = "not run"  # not measured
MEANINGS = {
    REPRODUCED: "the whole interval is beyond what is claimed; of exploratory claims q is at most 0.05, too",
    NOT_REPRODUCED: "the whole interval is below the smallest effect of interest, or below the margin if there is none",
    INCONCLUSIVE: "neither of the two",
    NO_VERDICT: "planned seeds are missing, a control fails or is not measured, or the data are generated",
    NOT_RUN: "this scale does not measure it",
}
VERDICTS = tuple(MEANINGS)
PRIMARY = "primary"
FEWEST_CELLS = 3  # of a trend: two cells only say that one is above the other
FALSE_DISCOVERIES = 0.05
QUARTER = 0.25  # of the published effect: less than this above the margin counts as not reproduced


def judge_claims(
    claims: list[Claim],
    cells: dict[str, Cell],
    verdicts: bool,
    scale: str,
    file: str,
    planned: Iterable[PlannedClaim] = (),
    departures: Mapping[str, str] = MappingProxyType({}),
) -> list[Outcome]:
    """Judge every claim of a paper on its `cells`. At a scale without `verdicts`, effects are shown but not judged.

    The primary claims, `planned`, are judged on the seeds of their plan by its limits. All others are exploratory, with
    q values among themselves. `departures`: primary claim -> how its runs depart from the plan, so that it has no
    verdict. Raises UserError with `file` for a claim about an unknown cell or claim.
    """
    primary = {one.name: one for one in planned}
    found = [_measure(claim, cells, scale, file, primary.get(claim.claim)) for claim in claims]
    for i, one in enumerate(found):
        departure = departures.get(one.claim.claim)
        if departure and _is_undecided(one):
            found[i] = replace(one, reason=departure)
    if not verdicts:
        reason = f"the {scale} scale gives no verdict"
        return [
            replace(one, p_value=None, reason=reason) if _is_undecided(one) else one
            for one in found
        ]
    undecided = [i for i, one in enumerate(found) if _is_undecided(one)]
    tested = [i for i in undecided if found[i].role == EXPLORATORY and found[i].p_value is not None]
    q_values = compute_q_values([found[i].p_value for i in tested])
    for i, q_value in zip(tested, q_values, strict=True):
        found[i] = replace(found[i], q_value=q_value)
    by_name = {claim.claim: claim for claim in claims}
    for i in undecided:
        one = found[i]
        entry = primary.get(one.claim.claim)
        if entry:
            other = by_name.get(entry.entry.control.same_sign)
            effect = other and effects.compute_planned_effect(other, cells, entry.seeds, file)
            failed = effects.find_failed_control(one, entry, cells, effect)
        else:
            failed = effects.find_failed_floor(one, one.claim.floor, 0.0, cells)
        found[i] = replace(one, reason=failed) if failed else _decide(one, entry)
    verdict_of = {outcome.claim.claim: outcome.verdict for outcome in found}
    return [_apply_condition(outcome, verdict_of, file) for outcome in found]


def _is_undecided(outcome: Outcome) -> bool:
    return outcome.verdict == NO_VERDICT and not outcome.reason


def _measure(
    claim: Claim, cells: dict[str, Cell], scale: str, file: str, planned: PlannedClaim | None
) -> Outcome:
    """Measure the effect of a claim, without a verdict yet unless it can have none."""
    entry = planned.entry if planned else None
    sides = effects.select_sides(claim, cells, file, planned.seeds if planned else None)
    pairs = list(zip(*(side.cells for side in sides), strict=True))
    published = (entry and entry.published) or effects.find_published_effect(
        claim, pairs, cells, file
    )
    outcome = Outcome(claim, sides, published=published)
    if planned:
        n_planned, done = len(planned.seeds), min(side.complete_seeds for side in sides)
        outcome = replace(outcome, role=PRIMARY, plan=planned.file, smallest=planned.entry.smallest)
        outcome = replace(outcome, n_planned=n_planned, quantile=planned.plan.limit_quantile)
        if done < n_planned:
            return replace(outcome, n_seeds=done, reason=f"{done} of {n_planned} seeds")
    # One side may be a number that no seed changes, such as a control without any model; of a trend, none.
    allowed = {(MEASURED, MEASURED)}
    if claim.relation != "falls_with":
        allowed |= {(MEASURED, COMPUTED), (COMPUTED, MEASURED)}
    measured = [pair for pair in pairs if tuple(cell.status for cell in pair) in allowed]
    wanted = FEWEST_CELLS if claim.relation == "falls_with" else len(pairs)
    if len(measured) < wanted:
        withheld = [cell.note for pair in pairs for cell in pair if cell.status == WITHHELD]
        return replace(
            outcome, verdict=NOT_RUN, reason=withheld[0] if withheld else f"not measured at {scale}"
        )
    protocol = find_worst_protocol(*(cell.protocol for pair in measured for cell in pair))
    outcome = replace(outcome, protocol=protocol)
    if entry and entry.counts_successes:
        success = count_successes(sides, entry.threshold)
        outcome = replace(outcome, success=success, n_seeds=min(success.left_n, success.right_n))
    elif claim.measure == "success_rate":
        return replace(
            outcome, reason="a share of seeds that succeed has a verdict only in an analysis plan"
        )
    else:
        try:
            effect = effects.compute_effect(claim, measured)
        except effects.NoEffectError as error:
            return replace(outcome, reason=str(error))
        if planned and effect.n < len(planned.seeds):
            return replace(
                outcome,
                n_seeds=effect.n,
                reason=f"{effect.n} of {outcome.n_planned} seeds have a value",
            )
        quantile = outcome.quantile or QUANTILE
        interval = effect.compute_interval(quantile)
        outcome = replace(
            outcome, effect=effect, quantile=quantile, interval=interval, n_seeds=effect.n
        )
    if not entry and published is not None and published > 0 and claim.relation != "no_gain":
        outcome = replace(outcome, smallest=claim.margin + QUARTER * published)
    if protocol == "stand_in":
        return replace(outcome, reason="generated data")
    # A success rate is meaningful at 0% or 100% too.
    if claim.relation != "falls_with" and not outcome.success and (end := _common_end(measured)):
        return replace(
            outcome, reason=f"all seeds of both sides are at {end}: no difference could be seen"
        )
    return replace(outcome, p_value=compute_deciding_p_value(outcome) if outcome.effect else None)


def count_successes(sides: tuple[Side, Side], threshold: float) -> SuccessRates:
    """Count the seeds of each side that are above a threshold."""
    left, right = (
        [value > threshold for value in side.average_by_seed().values()] for side in sides
    )
    return SuccessRates(sum(left), len(left), sum(right), len(right))


def compute_deciding_p_value(outcome: Outcome) -> float | None:
    """Return the p-value by which either verdict is reached; None for a single seed.

    It is that of a two-sided t test against the bound that the effect is beyond: against the margin if it is above
    that, against the smallest effect of interest if it is below that, and the smaller of the two between them. At most
    one of the two verdicts can be wrong, since the margin is not above the smallest effect of interest.
    """
    margin, effect = outcome.claim.margin, outcome.effect
    smallest = margin if outcome.smallest is None else outcome.smallest
    if effect.value == margin == smallest:
        return effect.compute_p_value(margin)
    p_values = [effect.compute_p_value(margin)] if effect.value > margin else []
    p_values += [effect.compute_p_value(smallest)] if effect.value < smallest else []
    return None if effect.error is None else min(p_values)


def _decide(outcome: Outcome, planned: PlannedClaim | None) -> Outcome:
    """Decide on a measured claim whose controls hold, with the reason if one is needed."""
    reached = (
        decide_by_success(outcome, planned.entry)
        if outcome.success
        else decide_by_interval(outcome)
    )
    pairs = list(zip(*(side.cells for side in outcome.sides), strict=True))
    missing = sum(any(cell.status not in (MEASURED, COMPUTED) for cell in pair) for pair in pairs)
    reasons = [reached[1], f"{missing} of {len(pairs)} cells not run" if missing else ""]
    if planned and planned.entry.threshold is not None and not outcome.success:
        reasons.append(
            describe_successes(
                count_successes(outcome.sides, planned.entry.threshold), planned.entry.threshold
            )
        )
    # In small models several depths such as 25% are often the first block.
    depths = {
        (cell.selection.get("layer"), cell.block) for side in outcome.sides for cell in side.cells
    }
    named = sorted((depth, block) for depth, block in depths if isinstance(depth, str))
    reasons += [f"{depth} of the depth is block {block}" for depth, block in named]
    return replace(outcome, verdict=reached[0], reason="; ".join(filter(None, reasons)))


def decide_by_interval(outcome: Outcome) -> tuple[str, str]:
    """Return (verdict, reason) from the interval, the margin, the smallest effect of interest, and a q value."""
    if outcome.interval is None:
        return INCONCLUSIVE, "one seed has no interval"
    margin, (low, high) = outcome.claim.margin, outcome.interval
    # Where the paper prints no effect, the margin is the smallest effect of interest.
    smallest = margin if outcome.smallest is None else outcome.smallest
    discovered = outcome.role == PRIMARY or outcome.q_value <= FALSE_DISCOVERIES
    if low > margin and discovered:
        return REPRODUCED, "smaller than of interest" if high < smallest else ""
    if high < smallest and discovered:
        null = outcome.effect.null
        return NOT_REPRODUCED, describe_bound(outcome.published, margin, smallest, high, null)
    if low > margin or high < smallest:
        bound = "above the margin" if low > margin else "below what would be of interest"
        q_value = f"q is {outcome.q_value:.2g}, more than {FALSE_DISCOVERIES}"
        return (
            INCONCLUSIVE,
            f"the interval is {bound}, but {q_value}: among many claims this can be chance",
        )
    above, below = outcome.effect.value - margin, smallest - outcome.effect.value
    seeds = outcome.effect.estimate_seeds_to_decide(max(above, below), outcome.quantile)
    condition = ", if q allows" if outcome.role == EXPLORATORY else ""
    number = "more than 1,000" if seeds and seeds > 1000 else f"about {seeds}"
    return INCONCLUSIVE, f"{number} seeds would decide{condition}" if seeds else ""


def describe_bound(
    published: float | None, margin: float, smallest: float, high: float, null: float = 0.0
) -> str:
    """Return what `high` is below: `less than a quarter of the published effect`; empty for an unknown share.

    null: the effect if both sides are alike.
    """
    if high < null <= margin:
        return f"the whole interval is below {null:g}, opposite to the claim"
    if smallest == margin:
        return "the interval is below the margin"
    share = (smallest - margin) / (published - null) if published else 0
    for known, part in ((0.25, "a quarter of "), (0.5, "half of "), (1.0, "")):
        if abs(share - known) < 0.01:
            return f"less than {f'the margin of {margin:g} plus ' if margin != null else ''}{part}the published effect"
    return ""


def decide_by_success(outcome: Outcome, entry: PrimaryClaim) -> tuple[str, str]:
    """Return (verdict, reason) from success rates, by Fisher's exact test and the upper limit of left's rate."""
    rates = outcome.success
    said = describe_successes(rates, entry.threshold)
    small = rates.compute_upper_limit(outcome.quantile) < entry.smallest
    if rates.compute_fisher_p() <= 1 - outcome.quantile:
        return REPRODUCED, f"{said}; smaller than of interest" if small else said
    if small:
        return NOT_REPRODUCED, said
    return INCONCLUSIVE, said


def describe_successes(rates: SuccessRates, threshold: float) -> str:
    """Return how many seeds of each side are above a threshold."""
    return f"above {threshold:g}: {rates.left} of {rates.left_n} seeds against {rates.right} of {rates.right_n}"


def _apply_condition(outcome: Outcome, verdict_of: dict[str, str], file: str) -> Outcome:
    """Give no verdict on a missing gain unless the gain of the claim that it requires is reproduced."""
    given = outcome.claim.given
    if given is None:
        return outcome
    if given not in verdict_of:
        known = suggest_name(given, verdict_of)
        raise UserError(f"{file}: claim {outcome.claim.claim}: given: no claim '{given}'; {known}")
    if outcome.verdict != REPRODUCED or verdict_of[given] == REPRODUCED:
        return outcome
    gain = "has no verdict" if verdict_of[given] == NO_VERDICT else f"is {verdict_of[given]}"
    return replace(outcome, verdict=NO_VERDICT, reason=f"says nothing while {given} {gain}")


def _common_end(pairs: list[tuple[Cell, Cell]]) -> str:
    """Return the end of the scale (0% or 100%) at which all seeds of all cells are; empty if one is not."""
    cells = [cell for pair in pairs for cell in pair]
    values = {
        (value, cell.unit) for cell in cells for value in (cell.seeds.values() or [cell.computed])
    }
    return {((0.0, "percent"),): "0%", ((100.0, "percent"),): "100%"}.get(tuple(values), "")
