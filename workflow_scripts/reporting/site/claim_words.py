"""What a claim compares, in words, and the effect of each pair of cells that it is a mean over."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from workflow_scripts.reporting.claims.claim_rows import CHANCE
from workflow_scripts.reporting.claims.transforms import TRANSFORMS_BY_UNIT, Transform
from workflow_scripts.reporting.site.measured_claims import (
    KEY_PARTS,
    ROW_PART,
    ComparedCell,
    MeasuredClaim,
)

WORDS = re.compile(r"[^ ,]+")
UNDER_CAP = "under CAP, the pooling of each word's tokens"


@dataclass(frozen=True)
class MetricWords:
    """A metric and what it measures, with its unit.

    meaning: such as `percent of outputs that are right as a whole`.
    """

    name: str
    meaning: str


@dataclass(frozen=True)
class PairEffect:
    """The effect of one pair of cells, in the claimed direction; None without a measurement.

    name: what both cells are about, such as a model. left, right: means over seeds.
    """

    name: str
    left: float | None
    right: float | None
    effect: float | None
    published: float | None


def name_sides(claim: MeasuredClaim) -> tuple[str, str]:
    """Name the left and the right side by what tells them apart.

    Several cells of a side are named by the words that they share and the other side has not.
    """
    left, right = _split_cells(claim)
    if claim.row.relation == "falls_with":
        return _name_row(claim.row.left), _name_row(claim.row.right)
    return _name_side(left, right), _name_side(right, left)


def describe_comparison(claim: MeasuredClaim, success: str = "") -> str:
    """Say what the effect is: `CARMA − FT, mean of 6 differences`.

    success: what a seed that has succeeded is, where seeds are counted; `above 50` if not given.
    """
    row = claim.row
    left, right = map(_format_name, name_sides(claim))
    if row.relation == "falls_with":
        return f"how far {left} falls while {right} rises: −(Kendall’s τ)"
    better, other = right, left
    if row.relation == "greater":
        better, other = left, right
    threshold = claim.planned.entry.threshold if claim.planned else None
    if row.unit == CHANCE:
        text = f"the chance that a seed of {better} is above one of {other}"
    elif threshold is not None:
        text = f"the share of seeds {success or f'above {threshold:g}'}, {better} − {other}"
    elif row.unit == "log ratio":
        text = f"ln({better} / {other})"
    elif row.unit == "log odds":
        text = f"log odds of {better} − log odds of {other}"
    else:
        text = f"{better} − {other}"
    n_pairs = len(list_pairs(claim))
    if n_pairs > 1:
        text += f", mean of {n_pairs} differences"
    return text


def explain_metrics(claim: MeasuredClaim, meanings: Mapping[str, str]) -> list[MetricWords]:
    """Say what the metrics of the cells measure, each once."""
    return list(dict.fromkeys(_explain_metric(cell, meanings) for cell in claim.cells))


def _explain_metric(cell: ComparedCell, meanings: Mapping[str, str]) -> MetricWords:
    """Say what the metric of a cell measures, also under CAP and on the items of an item set.

    One without an entry under `meanings` in catalogue/metrics.yaml has its name with spaces.
    """
    meaning = meanings.get(cell.metric, cell.metric.replace("_", " "))
    if cell.intervention == "cap" and cell.item_set == "all":
        meaning += f" {UNDER_CAP}"
    elif cell.intervention == "cap":
        meaning = f"percent of right answers that stay right {UNDER_CAP}"
    if cell.item_set == "common_correct":
        meaning += ", on the items that all compared models had right before"
    if cell.is_gain:
        meaning = f"gain in the {meaning}"
    return MetricWords(cell.metric, meaning)


def list_pairs(claim: MeasuredClaim) -> list[tuple[ComparedCell, ComparedCell]]:
    """List the cells that are compared with each other; none if the sides have unequal numbers."""
    left, right = _split_cells(claim)
    if len(left) != len(right):
        return []
    return list(zip(left, right, strict=True))


def list_pair_effects(claim: MeasuredClaim) -> list[PairEffect]:
    """Compute the effect of each pair of a claim that is a mean over several.

    None of other claims, of trends, and before the last planned seed is run.
    """
    pairs = list_pairs(claim)
    if len(pairs) < 2 or claim.row.relation == "falls_with" or claim.row.effect is None:
        return []
    transform = TRANSFORMS_BY_UNIT.get(claim.row.unit, float)
    sign = 1 if claim.row.relation == "greater" else -1
    effects = []
    for left, right in pairs:
        ours = _compute_difference(_average(left, transform), _average(right, transform), sign)
        published = None
        if left.published is not None and right.published is not None:
            published = _compute_difference(
                transform(left.published), transform(right.published), sign
            )
        name = _name_pair(left, right)
        effects.append(PairEffect(name, left.mean, right.mean, ours, published))
    return effects


def _average(cell: ComparedCell, transform: Transform) -> float | None:
    """Return the mean of the transformed values of a cell; None if it has none."""
    transformed = [transform(value) for value in cell.values.values()]
    values = [value for value in transformed if value is not None]
    return fmean(values) if values else None


def _compute_difference(left: float | None, right: float | None, sign: int) -> float | None:
    """Return the difference with this sign; None if a side has no number."""
    if left is None or right is None:
        return None
    return sign * (left - right)


def _format_name(name: str) -> str:
    """Quote a name with a comma or a leading dash, which a formula would seem to end or begin."""
    if "," in name or name.startswith("-"):
        return f"“{name}”"
    return name


def _split_cells(claim: MeasuredClaim) -> tuple[list[ComparedCell], list[ComparedCell]]:
    """Return the cells of the left and of the right side."""
    left = [cell for cell in claim.cells if cell.side == "left"]
    right = [cell for cell in claim.cells if cell.side == "right"]
    return left, right


def _name_row(key: str) -> str:
    """Name a side by the row of its key."""
    if key.count("/") != KEY_PARTS - 1:
        return key
    return key.split("/")[ROW_PART]


def _name_side(own: Sequence[ComparedCell], other: Sequence[ComparedCell]) -> str:
    """Name a side by its cell, or by what its cells share and those of the other side do not."""
    if len(own) == 1:
        return own[0].label
    shared = _share_words(cell.label for cell in own)
    elsewhere = _share_words(cell.label for cell in other)
    words = [word for word in shared if word not in elsewhere]
    return " ".join(words) or f"{len(own)} cells"


def _share_words(labels: Iterable[str]) -> list[str]:
    """Return the words that all labels have, in the order of the first."""
    lists = [WORDS.findall(label) for label in labels]
    if not lists:
        return []
    return [word for word in lists[0] if all(word in words for words in lists[1:])]


def _name_pair(left: ComparedCell, right: ComparedCell) -> str:
    """Name a pair by the words that both labels have; without any, by both labels."""
    words_of_right = WORDS.findall(right.label)
    parts = []
    for part in left.label.split(", "):
        words = [word for word in part.split(" ") if word in words_of_right]
        parts.append(" ".join(words))
    name = ", ".join(filter(None, parts))
    return name or f"{left.label}, {right.label}"
