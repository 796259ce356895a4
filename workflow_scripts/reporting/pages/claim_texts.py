"""Texts about claims for the first page of the report."""

from workflow_scripts.config.display_schema import Claim
from workflow_scripts.reporting.claims.effects import Outcome, get_margin
from workflow_scripts.reporting.claims.verdicts import PRIMARY
from workflow_scripts.reporting.tables.layout import choose_decimals, format_number, use_non_breaking_spaces


def make_claim_texts(judged: list[Outcome]) -> list[dict]:
    """Return the texts about the claims of one paper: primary first, our controls last."""
    order = sorted(judged, key=lambda outcome: (outcome.role != PRIMARY, outcome.claim.kind == "control"))
    return [_claim_texts(outcome) for outcome in order]


def format_criterion(claim: Claim) -> str:
    """Format the criterion of a claim: `more than 25 points`."""
    unit = "point" if (abs(claim.at_least), claim.unit) == (1, "points") else claim.unit
    return f"more than {get_margin(claim):g} {unit}".replace("-", "−")


def format_comparison(claim: Claim) -> str:
    """Format the comparison of a claim: `table1, JUMP: SQ-Transformer less Transformer`."""
    if isinstance(claim.left, list):
        return f"mean over {len(claim.left)} pairs: {_compared(claim, claim.left[0], claim.right[0])}, and so on"
    return _compared(claim, claim.left, claim.right)


def _compared(claim: Claim, left_cell: str, right_cell: str | float) -> str:
    if not isinstance(right_cell, str):
        return f"{', '.join(left_cell.split('/')[:3])} less {right_cell:g}"
    left, right = (side.split("/")[:3] for side in (left_cell, right_cell))
    pairs = list(zip(left, right, strict=True))
    common = ", ".join(one for one, other in pairs if one == other != "*")
    sides = [", ".join(pair[side] for pair in pairs if pair[0] != pair[1]) for side in (0, 1)]
    if claim.relation in ("less", "no_gain"):
        sides.reverse()
    text = (" against " if claim.relation == "falls_with" else " less ").join(sides)
    return f"{common}: {text}" if common else text


def _claim_texts(outcome: Outcome) -> dict:
    claim, effect = outcome.claim, outcome.effect
    low, high = outcome.interval or (None, None)
    decimals = choose_decimals(claim.unit, low, high)
    details, shown = [], ""
    if effect or outcome.success:
        value = effect.value if effect else outcome.success.difference
        shown = f"{format_number(value, decimals, signed=True)} {claim.unit}"
    if low is not None:
        details.append(use_non_breaking_spaces(f"{format_number(low, decimals)} to {format_number(high, decimals)}"))
    if outcome.n_seeds and (effect or outcome.success):
        sides = "" if claim.relation == "falls_with" else " a side"
        details.append(f"{outcome.n_seeds} seed{'s' if outcome.n_seeds > 1 else ''}{sides}")
    if outcome.q_value is not None:
        details.append(f"p {format_p_value(outcome.p_value)}, q {format_p_value(outcome.q_value)}")
    if outcome.smallest is not None and (effect or outcome.success):
        details.append(f"smallest effect of interest {outcome.smallest:.3g}")
    published = ""
    if outcome.published is not None:
        published = format_number(outcome.published, choose_decimals(claim.unit), signed=True)
        published += ", contradicts the claim" if outcome.printed == "contradict" else ""
    reason = "; ".join(filter(None, (outcome.protocol and f"protocol {outcome.protocol}", outcome.reason)))
    texts = {"published": published, "effect": shown, "details": details, "verdict": outcome.verdict, "reason": reason}
    texts |= {"primary": outcome.role == PRIMARY, "control": claim.kind == "control"}
    texts |= {"asked": format_criterion(claim), "compared": format_comparison(claim)}
    return claim.model_dump(include={"statement", "quote", "caveat", "source"}) | texts


def format_p_value(p_value: float) -> str:
    """Format a p value with three decimals, never as 0."""
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"
