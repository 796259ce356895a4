"""Parts of the spread of ConsistSyn: how much is due to the training seed, and how much to the draw of synonyms.

One-way analysis of variance with random effects: training seed s and draw d give mu + a_s + e_sd. The standard
deviations of a (between trained models) and of e (between draws on one model) are in points of percent.
"""

import math
from typing import Any

import numpy as np
import pandas

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, group_runs
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.evaluation.scores import make_scores, read_scores


def analyse(runs: list[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Compute `sd_training_seeds` and `sd_draws` (points) for each task, method and variant (column subset) and rate.

    n is the number of training seeds, or of draws of each seed. A score needs at least two.
    """
    merge_options(options)
    found = AnalysisResult()
    for (task, method, variant), members in group_runs(runs, "task", "method", "variant"):
        paths = [run.folder / "interventions/scores.csv" for run in members]
        rows = pandas.DataFrame([row for path in paths for row in read_scores(path)])
        for rate, table in rows[rows["metric"] == "consistency"].groupby("rate", sort=False):
            # Only the seeds with a score for every draw.
            values = (
                table.pivot(index="seed", columns="intervention_seed", values="value")
                .dropna()
                .to_numpy()
            )
            seeds, draws = (
                part if part is None else math.sqrt(part) for part in split_variance(values)
            )
            deviations = {"sd_training_seeds": (seeds, "points", len(values))}
            deviations["sd_draws"] = draws, "points", values.shape[1]
            columns = {
                "task": task,
                "subset": f"{method} {variant}",
                "rate": rate,
                "protocol": members[0].protocol,
            }
            found.scores += make_scores(columns, deviations)
    return found


def split_variance(values: np.ndarray) -> tuple[float | None, float | None]:
    """Return the variance between training seeds, and between synonym seeds of one training, of `values` [seeds, runs].

    The latter is the mean of the variances within a seed, the former the excess of the variance of the seeds' means
    over its share of that (at least 0). None if fewer than two values inform it.
    """
    seeds, runs = values.shape
    within = float(values.var(axis=1, ddof=1).mean()) if runs > 1 else None
    if seeds < 2 or within is None:
        return None, within
    return max(0.0, float(values.mean(axis=1).var(ddof=1)) - within / runs), within
