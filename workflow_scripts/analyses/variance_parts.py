"""Parts of the spread of ConsistSyn: that of training seeds, and that of draws of synonyms.

Two-way analysis of variance with random effects: training seed s and draw d give
mu + a_s + b_d + e_sd. All trainings have the same draws, with the same words replaced. The standard
deviations of a (between trained models) and of b + e (between draws on one model) are in points of
percent.
"""

import math
from typing import NamedTuple

import numpy as np
import pandas

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, group_runs
from workflow_scripts.common.plug_ins import NoOptions
from workflow_scripts.evaluation.scores import Score, make_scores, read_scores


def analyse(runs: list[TrainedRun], options: NoOptions) -> AnalysisResult:
    """Compute `sd_training_seeds` and `sd_draws` (points) for each task, method, variant and rate.

    Method and variant are in the column subset.
    n is the number of training seeds, or of draws of each seed. A score needs at least two.
    """
    result = AnalysisResult()
    for (task, method, variant), members in group_runs(runs, "task", "method", "variant"):
        scores: list[Score] = []
        for run in members:
            scores += read_scores(run.files.interventions.scores)
        table_of_scores = pandas.DataFrame(scores)
        consistency = table_of_scores[table_of_scores["metric"] == "consistency"]
        for rate, table in consistency.groupby("rate", sort=False):
            # Only the seeds with a score for every draw.
            by_draw = table.pivot(index="seed", columns="intervention_seed", values="value")
            values = by_draw.dropna().to_numpy()
            seeds, draws = values.shape
            parts = split_variance(values)
            deviations = {
                "sd_training_seeds": (_take_root(parts.between_seeds), "points", seeds),
                "sd_draws": (_take_root(parts.between_draws), "points", draws),
            }
            columns = {
                "task": task,
                "subset": f"{method} {variant}",
                "rate": rate,
                "protocol": members[0].protocol,
            }
            result.scores += make_scores(columns, deviations)
    return result


class VarianceParts(NamedTuple):
    """Variance between training seeds, and between draws on one training; None if unknown."""

    between_seeds: float | None
    between_draws: float | None


def split_variance(values: np.ndarray) -> VarianceParts:
    """Split the variance of `values` [seeds, draws].

    The part between draws is the mean of the variances within a seed. The part between seeds is the
    variance of the seeds' means, less what e adds to it (at least 0): what draws share is in all of
    these means alike. None if fewer than two values inform it.
    """
    seeds, draws = values.shape
    if draws < 2:
        return VarianceParts(None, None)
    between_draws = float(values.var(axis=1, ddof=1).mean())
    if seeds < 2:
        return VarianceParts(None, between_draws)
    means_of_seeds = values.mean(axis=1)
    means_of_draws = values.mean(axis=0)
    residuals = values - means_of_seeds[:, None] - means_of_draws + values.mean()
    residual_variance = float((residuals**2).sum()) / ((seeds - 1) * (draws - 1))
    of_means = float(means_of_seeds.var(ddof=1))
    return VarianceParts(max(0.0, of_means - residual_variance / draws), between_draws)


def _take_root(variance: float | None) -> float | None:
    if variance is None:
        return None
    return math.sqrt(variance)
