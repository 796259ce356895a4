"""Comparison of variants on the items that all of them answered right before an intervention.

ConsistSyn and CAP score each model on its own right items, so two models are scored on different items. Here the items
are those that all given variants of one task, method and seed answered right before; the scores are the shares of them
that are still right under each intervention. Without such items the only score is their number, 0.

A CV over draws comes with `cv_noise`: the CV of draws in which each of the n items stays right independently, with the
mean share p. The share of a draw then has variance p (1 - p) / n, so its CV is sqrt((1 - p) / (p n)).
"""

import math
from typing import Any

import pandas
import pyarrow.parquet as pq

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, group_runs
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.interventions.intervene import METRIC, PREFIX, compute_cv

WHERE = ["readout", "intervention", "layer", "pooling", "rate", "intervention_seed"]


def analyse(runs: list[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Score the item set `common_correct` for each readout.

    Metrics: `items`, their number; `exact_match` under CAP; `consistency`, `cv` (`cv_low` to `cv_high`) and `cv_noise`
    under synonyms. For the readout `labels` they have the names of the interventions' scores. A CV that is undefined,
    or 0 and so without a logarithm, gets a note.
    """
    merge_options(options)
    found = AnalysisResult()
    for _, variants in group_runs(runs, "task", "method", "seed"):
        if len(variants) < 2:
            found.notes.append(f"{variants[0]}: no other variant of this seed to share items with")
            continue
        answers = pandas.concat(
            [read_answers(run).assign(variant=run.variant) for run in variants], ignore_index=True
        )
        for run in variants:
            _score(run, answers, found)
    return found


def read_answers(run: TrainedRun) -> pandas.DataFrame:
    """Read the answers of a run under its interventions, a row each. Raises UserError if there are none."""
    path = run.folder / "interventions/answers.parquet"
    if not path.is_file():
        raise UserError(
            f"{path} does not exist; name the intervention of {run} under `runs` in displays.yaml"
        )
    return pq.read_table(path).to_pandas()


def _score(run: TrainedRun, answers: pandas.DataFrame, found: AnalysisResult) -> None:
    """Add the rows and notes of a run; `answers` are those of all variants of its task, method and seed."""
    right = answers.groupby(["readout", "item"])["correct_before"].all()
    shared = right.index[right]
    own = answers[answers["variant"] == run.variant]
    own = own[pandas.MultiIndex.from_frame(own[["readout", "item"]]).isin(shared)]
    columns = {"split": "test", "item_set": "common_correct"}
    draws: dict[tuple[str, float], list[float]] = {}
    sizes = {}
    for readout in sorted(answers["readout"].unique()):
        count = sizes[readout] = int((shared.get_level_values("readout") == readout).sum())
        found.scores += run.make_scores(
            {"items": (count, "items", count)}, readout=readout, **columns
        )
        if not count:
            found.notes.append(f"{run}: no common item by {readout}")
    for where, correct in own.groupby(WHERE, dropna=False)["correct"]:
        known = {
            name: value for name, value in zip(WHERE, where, strict=True) if not pandas.isna(value)
        }
        known |= {
            name: int(known[name]) for name in ("layer", "intervention_seed") if name in known
        }
        readout, synonyms = known["readout"], known["intervention"] == "synonyms"
        metric = f"{PREFIX[readout]}consistency" if synonyms else METRIC[readout]
        value = 100 * float(correct.mean())
        found.scores += run.make_scores(
            {metric: (value, "percent", len(correct))}, **columns, **known
        )
        if synonyms:
            draws.setdefault((readout, known["rate"]), []).append(value)
    for (readout, rate), values in draws.items():
        spread, share = compute_cv(values), sum(values) / len(values) / 100
        scores = {
            PREFIX[readout] + name: (value, "ratio", len(values)) for name, value in spread.items()
        }
        if not spread.get("cv"):
            why = "CV 0, no logarithm" if spread else "no CV"
            found.notes.append(
                f"{run}: {why} over {len(values)} draws at rate {rate:g} by {readout}, mean {share:.1%}"
            )
        if share > 0:
            noise = math.sqrt((1 - share) / (share * sizes[readout]))
            scores[f"{PREFIX[readout]}cv_noise"] = noise, "ratio", sizes[readout]
        where = {"intervention": "synonyms", "readout": readout, "rate": rate}
        found.scores += run.make_scores(scores, **columns, **where)
