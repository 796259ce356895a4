"""Variation of a score between samples of synonyms and between trainings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class CvInterval:
    """A measure of spread with its 95% interval; None if undefined, inf if the data set no bound."""

    value: float | None
    low: float | None
    high: float | None


def compute_cv(values: Sequence[float]) -> CvInterval:
    """CV of Eqn 13 over `values` [runs]: standard deviation (divided by n - 1) over mean, with an interval.

    Interval: McKay's (1932) as modified by Vangel (1996, The American Statistician 50:21), for independent, normal runs
    and a CV under about a third. None for fewer than two runs or a mean that is not positive.
    """
    runs = np.asarray(values, dtype=float)
    n = len(runs)
    if n < 2 or not runs.mean() > 0:
        return CvInterval(None, None, None)
    value = float(runs.std(ddof=1) / runs.mean())
    quantiles = stats.chi2.ppf([(1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2], n - 1).tolist()
    below = [((quantile + 2) / n - 1) * value**2 + quantile / (n - 1) for quantile in quantiles]
    low, high = (value / math.sqrt(part) if part > 0 else math.inf for part in below)
    return CvInterval(value, low, high)


def make_cv_rows(prefix: str, values: Sequence[float], **where: Any) -> list[dict[str, Any]]:
    """Return score rows `cv`, `cv_low` and `cv_high` over `values` [runs], each with `where`; none if undefined."""
    spread = compute_cv(values)
    found = {"cv": spread.value, "cv_low": spread.low, "cv_high": spread.high}
    return [
        {"metric": prefix + name, "value": value, "unit": "ratio", "n": len(values), **where}
        for name, value in found.items()
        if value is not None and math.isfinite(value)
    ]


def split_variance(values: np.ndarray) -> tuple[float | None, float | None]:
    """Return the variance between training seeds, and between synonym seeds of one training, of `values` [seeds, runs].

    One-way analysis of variance with random effects: the mean of the variances within a seed, and the excess of the
    variance of the seeds' means over its share of that (at least 0). None if fewer than two values inform it.
    """
    table = np.asarray(values, dtype=float)
    seeds, runs = table.shape
    within = float(table.var(axis=1, ddof=1).mean()) if runs > 1 else None
    if seeds < 2 or within is None:
        return None, within
    return max(0.0, float(table.mean(axis=1).var(ddof=1)) - within / runs), within
