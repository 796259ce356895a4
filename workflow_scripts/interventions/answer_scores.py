"""Scores of the answers under interventions: shares that are right, and their variation."""

import math
from collections.abc import Sequence

import numpy as np

from workflow_scripts.evaluation.statistics import QUANTILE

# By readout: the name of the share of right answers, as in an evaluation, and the prefix of other
# metrics.
METRIC = {"vocabulary": "exact_match", "labels": "constrained"}
PREFIX = {"vocabulary": "", "labels": "constrained_"}


def score_share(right: np.ndarray) -> tuple[float | None, str, int]:
    """Return (percentage, its unit, n) of `right` [n] bool; the percentage is None for n = 0."""
    if not len(right):
        return None, "percent", 0
    return 100 * float(right.mean()), "percent", len(right)


def compute_cv(values: Sequence[float]) -> dict[str, float]:
    """Compute `cv` of Eqn 13 over `values` [runs], with its 95% interval.

    It is the standard deviation (divided by n - 1) over the mean. Interval `cv_low` to `cv_high`:
    McKay's (1932) as modified by Vangel (1996, The American Statistician 50:21), for independent,
    normal runs and a CV under about a third; there is no `cv_high` if the data set no upper bound.
    Empty for fewer than two runs or a mean that is not positive.
    """
    from scipy import stats  # slow to import

    runs = np.asarray(values, dtype=float)
    n = len(runs)
    if n < 2 or not runs.mean() > 0:
        return {}
    cv = float(runs.std(ddof=1) / runs.mean())
    spread = {"cv": cv}
    for name, probability in (("cv_low", QUANTILE), ("cv_high", 1 - QUANTILE)):
        quantile = float(stats.chi2.ppf(probability, n - 1))
        squared_divisor = ((quantile + 2) / n - 1) * cv**2 + quantile / (n - 1)
        if squared_divisor > 0:
            spread[name] = cv / math.sqrt(squared_divisor)
    return spread
