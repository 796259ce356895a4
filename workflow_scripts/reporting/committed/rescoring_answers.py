"""Scores of a run under interventions from its answers, without its model."""

from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from workflow_scripts.evaluation.scores import ScoreKey
from workflow_scripts.interventions.answer_scores import METRIC, PREFIX, compute_cv

if TYPE_CHECKING:
    import pandas


class AnswerGroup(NamedTuple):
    """What the answers to draws of one intervention have in common.

    Columns that do not apply to it are NaN or None.
    """

    readout: str
    intervention: str
    layer: float
    pooling: str
    rate: float


def score_answers(answers: "pandas.DataFrame", split: str) -> dict[ScoreKey, float]:
    """Score the answers of a run under all its interventions, over draws the mean.

    answers: a row per item, readout, intervention and draw, with the columns of AnswerGroup,
    `intervention_seed`, `correct_before` and `correct`. The scores are percentages of right
    answers, of all items and of those that were right before, and the `cv` of the latter over
    draws. A percentage of no items is left out.
    """
    values: dict[ScoreKey, float] = {}
    for columns, draws in answers.groupby(list(AnswerGroup._fields), dropna=False):
        assert isinstance(columns, tuple)  # the values of the grouped columns
        group = AnswerGroup(*columns)
        own = draws.loc[draws["correct_before"]]
        metric = METRIC[group.readout]
        values[_make_key(group, split, metric, "all")] = fmean(_list_shares(draws))
        own_shares = _list_shares(own)
        if not own_shares:
            continue
        if group.intervention == "cap":
            values[_make_key(group, split, metric, "own_correct")] = fmean(own_shares)
            continue
        prefix = PREFIX[group.readout]
        kept = _make_key(group, split, f"{prefix}consistency", "own_correct")
        values[kept] = fmean(own_shares)
        for name, value in compute_cv(own_shares).items():
            values[kept._replace(metric=prefix + name)] = value
    return values


def _list_shares(answers: "pandas.DataFrame") -> list[float]:
    """List the percentage of right answers of each draw."""
    by_draw = answers.groupby("intervention_seed", dropna=False)
    return [100 * float(draw["correct"].to_numpy().mean()) for _, draw in by_draw]


def _make_key(group: AnswerGroup, split: str, metric: str, item_set: str) -> ScoreKey:
    """Name a score of a group; columns that do not apply to its intervention are None."""
    is_cap = group.intervention == "cap"
    return ScoreKey(
        split=split,
        subset="all",
        metric=metric,
        readout=group.readout,
        intervention=group.intervention,
        layer=int(group.layer) if is_cap else None,
        pooling=group.pooling if is_cap else None,
        rate=None if is_cap else group.rate,
        item_set=item_set,
    )
