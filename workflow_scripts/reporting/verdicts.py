"""From the cells of a claim to its effect, and from the interval of the effect to a verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workflow_scripts.checking import nearest
from workflow_scripts.errors import UserError
from workflow_scripts.protocols import worst_protocol
from workflow_scripts.reporting.cells import COMPUTED, MEASURED, Cell
from workflow_scripts.reporting.pairing import difference
from workflow_scripts.reporting.spec import Claim, stars
from workflow_scripts.reporting.statistics import (
    Effect,
    association,
    difference_from_constant,
    holm,
    kendall_tau,
    welch_half_width,
)

REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE = "reproduced", "not reproduced", "inconclusive"
NO_VERDICT = "no verdict"  # measured, but on made-up data, or at a scale whose numbers may not decide
NOT_RUN = "not run"  # not measured
FEWEST_CELLS = 3  # of a trend: two cells only say that one is above the other


@dataclass(frozen=True)
class Outcome:
    """A claim judged: `effect` is None when a side was not measured, `p_holm` when the claim bears no verdict."""

    claim: Claim
    verdict: str
    protocol: str = ""
    effect: Effect | None = None
    published: tuple[float, float | None] | None = None  # the same effect in the paper's numbers, half its 95% interval
    p_holm: float | None = None
    reason: str = ""


def judge(claims: Sequence[Claim], cells: dict[str, Cell], verdicts: bool, scale: str, file: str) -> list[Outcome]:
    """Judge every claim of a paper on its `cells` by key. At a scale without `verdicts` effects are shown, not judged.

    p values are corrected by Holm over the claims of the paper that bear a verdict. Raises UserError naming `file`
    for a claim about a cell or given a claim that does not exist, or whose two sides are paired and share no seed.
    """
    outcomes = [_outcome(claim, cells, verdicts, scale, file) for claim in claims]
    verdict_of = {outcome.claim.claim: outcome.verdict for outcome in outcomes}
    outcomes = [_on_condition(outcome, verdict_of, file) for outcome in outcomes]
    judged = [i for i, outcome in enumerate(outcomes) if outcome.verdict not in (NO_VERDICT, NOT_RUN)]
    tested = [i for i in judged if outcomes[i].effect.p_value is not None]
    for i, corrected in zip(tested, holm([outcomes[i].effect.p_value for i in tested]), strict=True):
        outcomes[i] = replace(outcomes[i], p_holm=corrected)
    return outcomes


def _outcome(claim: Claim, cells: dict[str, Cell], verdicts: bool, scale: str, file: str) -> Outcome:
    lefts, rights = (_matching(side, cells, claim, file) for side in (claim.left, claim.right))
    pairs = [(left, rights[key]) for key, left in lefts.items() if key in rights]
    published = _published_effect(claim, pairs)
    # One side may be a number that no seed changes, such as a control without any model; of a trend, none.
    sides = {(MEASURED, MEASURED)}
    if claim.relation != "falls_with":
        sides |= {(MEASURED, COMPUTED), (COMPUTED, MEASURED)}
    measured = [pair for pair in pairs if tuple(cell.status for cell in pair) in sides]
    if len(measured) < (FEWEST_CELLS if claim.relation == "falls_with" else 1):
        return Outcome(claim, NOT_RUN, published=published, reason=f"not measured at {scale}")
    protocol = worst_protocol(*(cell.protocol for pair in measured for cell in pair))
    effect = _effect(claim, measured, file)
    outcome = Outcome(claim, NO_VERDICT, protocol, effect, published)
    if protocol == "stand_in":
        return replace(outcome, reason="made-up data")
    if not verdicts:
        return replace(outcome, reason=f"the {scale} scale bears no verdict")
    if claim.relation != "falls_with" and (end := _common_end(measured[0])):
        return replace(outcome, verdict=INCONCLUSIVE, reason=f"both sides at {end}: no gain could be seen")
    missing = len(pairs) - len(measured)
    reasons = [
        "one seed has no interval" if effect.low is None else "",
        f"{missing} of {len(pairs)} cells not run" if missing else "",
        *_depths(measured),
    ]
    return replace(outcome, verdict=verdict(claim, effect), reason="; ".join(filter(None, reasons)))


def _on_condition(outcome: Outcome, verdict_of: dict[str, str], file: str) -> Outcome:
    """Where nothing works nothing gains: that a gain is absent says something only where it should have been there."""
    given = outcome.claim.given
    if given is None:
        return outcome
    if given not in verdict_of:
        raise UserError(f"{file}: claim {outcome.claim.claim}: given: no claim '{given}'; {nearest(given, verdict_of)}")
    if outcome.verdict != REPRODUCED or verdict_of[given] == REPRODUCED:
        return outcome
    gain = "has no verdict" if verdict_of[given] == NO_VERDICT else f"is {verdict_of[given]}"
    return replace(outcome, verdict=INCONCLUSIVE, reason=f"says nothing while {given} {gain}")


def _depths(pairs: list[tuple[Cell, Cell]]) -> list[str]:
    """What a depth such as 25% came to: in small models that is often the first block, as other depths are."""
    found = {(cell.selection.get("layer"), cell.block) for pair in pairs for cell in pair}
    named = sorted((depth, block) for depth, block in found if isinstance(depth, str))
    return [f"{depth} of the depth is block {block}" for depth, block in named]


def _common_end(pair: tuple[Cell, Cell]) -> str:
    """The end of the scale at which every seed of both cells is, of scores in percent; empty where one is not."""
    values = {(value, cell.unit) for cell in pair for value in (cell.seeds.values() or [cell.computed])}
    return {((0.0, "percent"),): "0%", ((100.0, "percent"),): "100%"}.get(tuple(values), "")


def verdict(claim: Claim, effect: Effect) -> str:
    """Whether the 95% interval of the effect lies beyond the claim's margin, wholly short of it, or across it."""
    if effect.low is None:
        return INCONCLUSIVE
    low, high = effect.low, effect.high
    if claim.relation in ("less", "falls_with"):
        low, high = -high, -low
    beyond, short = low > claim.at_least, high <= claim.at_least
    if claim.relation == "no_gain":
        beyond, short = short, beyond
    return REPRODUCED if beyond else NOT_REPRODUCED if short else INCONCLUSIVE


def _effect(claim: Claim, pairs: list[tuple[Cell, Cell]], file: str) -> Effect:
    if claim.relation == "falls_with":
        seeds = sorted(set.intersection(*(set(cell.seeds) for pair in pairs for cell in pair)))
        if not seeds:
            raise UserError(f"{file}: claim {claim.claim}: its cells share no seed; run the same seeds in all of them")
        left, right = (np.array([[pair[side].seeds[seed] for pair in pairs] for seed in seeds]) for side in (0, 1))
        return association(left, right)
    left, right = pairs[0]
    if not (left.seeds and right.seeds):
        constant = next(cell.computed for cell in pairs[0] if cell.status == COMPUTED)
        return difference_from_constant(
            list((left.seeds or right.seeds).values()), constant, constant_right=bool(left.seeds)
        )
    try:
        return difference(left.seeds, right.seeds, paired=left.weights == right.weights != "")
    except UserError as error:
        raise UserError(f"{file}: claim {claim.claim}: its two sides {error}") from error


def _published_effect(claim: Claim, pairs: list[tuple[Cell, Cell]]) -> tuple[float, float | None] | None:
    """(effect, half of Welch's interval) in the paper's numbers; None where it does not print those that it takes."""
    numbers = [(left.published, right.published) for left, right in pairs]
    if any(number is None or number.value is None for pair in numbers for number in pair):
        return None
    if claim.relation == "falls_with":
        left, right = (np.array([pair[side].value for pair in numbers]) for side in (0, 1))
        return float(kendall_tau(left, right)), None
    left, right = numbers[0]
    half = None
    if None not in (left.std, right.std) and min(left.n_seeds or 0, right.n_seeds or 0) > 1:
        half = welch_half_width(left.std, left.n_seeds, right.std, right.n_seeds)
    return left.value - right.value, half


def _matching(pattern: str | float, cells: dict[str, Cell], claim: Claim, file: str) -> dict[str, Cell]:
    """The cells of a claim's side by what `*` stands for in its place; a side without `*` is one cell, or a number,
    which is like a cell that no run changes."""
    if not isinstance(pattern, str):
        (other,) = _matching(claim.left, cells, claim, file).values()
        return {"": replace(other, status=COMPUTED, computed=pattern, published=None, seeds={}, weights="")}
    if pattern.split("/").count("*") != (claim.relation == "falls_with"):
        raise UserError(f"{file}: claim {claim.claim}: '*' in {pattern}; only falls_with has it, once on either side")
    found = {"".join(names): cell for key, cell in cells.items() if (names := stars(pattern, key)) is not None}
    if not found:
        raise UserError(f"{file}: claim {claim.claim}: there is no cell {pattern} in displays.yaml")
    return found
