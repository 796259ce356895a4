"""Parts of the spread of ConsistSyn: how much is due to the training seed, and how much to the draw of synonyms.

One-way analysis of variance with random effects: training seed s and draw d give mu + a_s + e_sd. The standard
deviations of a (between trained models) and of e (between draws on one model) are in points of percent.
"""

import math
from itertools import groupby
from typing import Any

import numpy as np
import pandas

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.options import merge_options
from workflow_scripts.evaluation.scores import read_scores
from workflow_scripts.interventions.variation import split_variance


def analyse(runs: list[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Compute `sd_training_seeds` and `sd_draws` (points) for each task, method and variant (column subset) and rate.

    n is the number of training seeds, or of draws of each seed. A score needs at least two.
    """
    merge_options(options)
    found = AnalysisResult()
    for (task, method, variant), group in groupby(sorted(runs, key=_variant), key=_variant):
        members = list(group)
        for rate, values in read_consistency(members).items():
            between, within = split_variance(values)
            columns = {"task": task, "subset": f"{method} {variant}", "rate": rate, "unit": "points"}
            columns["protocol"] = members[0].protocol
            parts = (("sd_training_seeds", between, len(values)), ("sd_draws", within, values.shape[1]))
            found.scores += [
                columns | {"metric": metric, "value": math.sqrt(part), "n": n}
                for metric, part, n in parts
                if part is not None
            ]
    return found


def read_consistency(runs: list[TrainedRun]) -> dict[float, np.ndarray]:
    """Return rate -> ConsistSyn [training seeds, draws] in percent, for the seeds with a score for every draw."""
    rows = pandas.DataFrame([row for run in runs for row in read_scores(run.folder / "interventions/scores.csv")])
    by_rate = rows[rows["metric"] == "consistency"].groupby("rate", sort=False)
    return {
        rate: table.pivot(index="seed", columns="intervention_seed", values="value").dropna().to_numpy()
        for rate, table in by_rate
    }


def _variant(run: TrainedRun) -> tuple[str, str, str]:
    return run.task, run.method, run.variant
