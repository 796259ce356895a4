"""Comparison of variants on the items that all of them answered right before an intervention.

ConsistSyn and CAP score each model on its own right items, so two models are scored on different
items. Here the items are those that all given variants of one task, method and seed answered right
before; the scores are the shares of them that are still right under each intervention. Without such
items the only score is their number, 0.

A CV over draws comes with `cv_noise`: the CV of draws in which each of the n items stays right
independently, with the mean share p. The share of a draw then has variance p (1 - p) / n, so its CV
is sqrt((1 - p) / (p n)).
"""

import math
from typing import Any, NamedTuple

import pandas

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, group_runs
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.parquet_files import read_parquet
from workflow_scripts.common.plug_ins import NoOptions
from workflow_scripts.interventions.answer_scores import METRIC, PREFIX, compute_cv

INTERVENTION = ["readout", "intervention", "layer", "pooling", "rate", "intervention_seed"]
ITEM_SET = {"split": "test", "item_set": "common_correct"}


class DrawGroup(NamedTuple):
    """What the draws of synonyms have in common, over which a CV is computed."""

    readout: str
    rate: float


def analyse(runs: list[TrainedRun], options: NoOptions) -> AnalysisResult:
    """Score the item set `common_correct` for each readout.

    Metrics: `items`, their number; `exact_match` under CAP; `consistency`, `cv` (`cv_low` to
    `cv_high`) and `cv_noise` under synonyms. For the readout `labels` they have the names of the
    interventions' scores. A CV that is undefined, or 0 and so without a logarithm, gets a note.
    """
    result = AnalysisResult()
    for _, variants in group_runs(runs, "task", "method", "seed"):
        if len(variants) < 2:
            result.notes.append(f"{variants[0]}: no other variant of this seed to share items with")
            continue
        tables = [read_answers(run).assign(variant=run.variant) for run in variants]
        answers = pandas.concat(tables, ignore_index=True)
        for run in variants:
            _score_run(run, answers, result)
    return result


def read_answers(run: TrainedRun) -> pandas.DataFrame:
    """Read the answers of a run under its interventions, a row each.

    Raises UserError if they are missing, damaged or changed.
    """
    path = run.files.interventions.answers
    if not path.is_file():
        raise UserError(
            f"{path} does not exist; name the intervention of {run} under `runs` in displays.yaml"
        )
    return read_parquet(path).to_pandas()


def _score_run(run: TrainedRun, answers: pandas.DataFrame, result: AnalysisResult) -> None:
    """Add the rows and notes of a run.

    `answers` are those of all variants of its task, method and seed.
    """
    right = answers.groupby(["readout", "item"])["correct_before"].all()
    shared = right.index[right.to_numpy()]
    item_counts = {}
    for readout in sorted(answers["readout"].unique()):
        count = int((shared.get_level_values("readout") == readout).sum())
        item_counts[readout] = count
        values = {"items": (count, "items", count)}
        result.scores += run.make_scores(values, readout=readout, **ITEM_SET)
        if not count:
            result.notes.append(f"{run}: no common item by {readout}")

    own = answers.loc[answers["variant"] == run.variant]
    own = own.loc[pandas.MultiIndex.from_frame(own.loc[:, ["readout", "item"]]).isin(shared)]
    shares_of: dict[DrawGroup, list[float]] = {}
    for key, group in own.groupby(INTERVENTION, dropna=False):
        correct = group["correct"].to_numpy()
        columns = _name_intervention(key)
        readout = columns["readout"]
        share = 100 * float(correct.mean())
        metric = METRIC[readout]
        if columns["intervention"] == "synonyms":
            metric = f"{PREFIX[readout]}consistency"
            shares_of.setdefault(DrawGroup(readout, columns["rate"]), []).append(share)
        values = {metric: (share, "percent", len(correct))}
        result.scores += run.make_scores(values, **ITEM_SET, **columns)

    for draws, shares in shares_of.items():
        _score_spread(run, draws, shares, item_counts[draws.readout], result)


def _name_intervention(key: Any) -> dict[str, Any]:
    """Return the columns of an intervention that apply to it; whole numbers became floats."""
    columns = {}
    for name, value in zip(INTERVENTION, key, strict=True):
        if pandas.isna(value):
            continue
        columns[name] = int(value) if name in ("layer", "intervention_seed") else value
    return columns


def _score_spread(
    run: TrainedRun, draws: DrawGroup, shares: list[float], item_count: int, result: AnalysisResult
) -> None:
    """Add the CV over draws, and the CV of noise; `shares` in percent [draws]."""
    prefix = PREFIX[draws.readout]
    spread = compute_cv(shares)
    mean = sum(shares) / len(shares) / 100
    if not spread.get("cv"):
        problem = "CV 0, no logarithm" if spread else "no CV"
        result.notes.append(
            f"{run}: {problem} over {len(shares)} draws at rate {draws.rate:g} "
            f"by {draws.readout}, mean {mean:.1%}"
        )
    scores = {}
    for name, value in spread.items():
        scores[prefix + name] = (value, "ratio", len(shares))
    if mean > 0:
        noise = math.sqrt((1 - mean) / (mean * item_count))
        scores[f"{prefix}cv_noise"] = (noise, "ratio", item_count)
    columns = {"intervention": "synonyms", "readout": draws.readout, "rate": draws.rate}
    result.scores += run.make_scores(scores, **ITEM_SET, **columns)
