"""Audit the printed numbers of a paper: differences of scores and ratios of spreads.

The paper prints the mean over runs of ConsistSyn (percent) and its CV = SD / mean, so the SD is CV times the mean. If
both sides have n runs from normal distributions of one SD, 95% of the ratios of the SDs are between the square roots
of F(0.025; n - 1, n - 1) and F(0.975; n - 1, n - 1). A ratio of CVs is treated as one of SDs: the means hardly differ.
"""

import math
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.evaluation.published import Key, Published
from workflow_scripts.evaluation.scores import make_scores

LEVEL = 0.05  # two-sided
PROTOCOL = "paper"  # the numbers are the paper's own at every scale


def analyse(published: dict[Key, Published], options: dict[str, Any]) -> AnalysisResult:
    """Return the scores `cv_ratio_*` and `difference_*`.

    options:
        displays: task -> the table with its numbers.
        rates: prefix of columns -> rate of replaced words, e.g. "25%" -> 0.25.
        models: prefixes of rows.
        versions: the endings of the two rows that are compared, e.g. [CARMA, FT].
        runs: how many runs each printed number is from.
        misprinted: [display, model, prefix of the rate] of cells whose CV is a misprint.
    """
    given = merge_options(
        options, displays={}, rates={}, models=[], versions=["CARMA", "FT"], runs=6, misprinted=[]
    )
    pairs = list_compared_models(published, given)
    if not pairs:
        raise UserError(
            "displays.yaml: the audit finds no cell with both versions in published.csv; see its options"
        )
    return AnalysisResult(score_spreads(pairs, given["runs"]))


def list_compared_models(
    published: dict[Key, Published], given: dict[str, Any]
) -> list[dict[str, Any]]:
    """List the difference and the ratio (none of a misprint) of both versions' cells."""
    found = []
    places = product(given["displays"].items(), given["rates"].items(), given["models"])
    for (task, display), (prefix, rate), model in places:
        names = product((("CS", "consistency"), ("CV", "cv")), given["versions"])
        keys = [
            (display, f"{model} {version}", f"{prefix} {name}", metric)
            for (name, metric), version in names
        ]
        cells = [published.get(key) for key in keys]
        if None in cells:
            continue
        score, other_score, cv, other_cv = (cell.value for cell in cells)
        misprinted = [display, model, prefix] in given["misprinted"]
        ratio = None if misprinted else cv / other_cv
        found.append(
            {"task": task, "rate": rate, "difference": score - other_score, "ratio": ratio}
        )
    return found


def compute_null_interval(runs: int) -> tuple[float, float]:
    """Compute the 95% interval of the ratio of two standard deviations over `runs` runs each if the true ratio is 1."""
    low, high = stats.f.ppf([LEVEL / 2, 1 - LEVEL / 2], runs - 1, runs - 1)
    return math.sqrt(low), math.sqrt(high)


def score_spreads(pairs: list[dict[str, Any]], runs: int) -> list[dict]:
    """Average ratios of CVs (geometric mean) and differences of scores by task and rate, by task, and over all."""
    low, high = compute_null_interval(runs)
    scores = []
    groups = dict.fromkeys(
        [(pair["task"], pair["rate"]) for pair in pairs] + [(pair["task"], None) for pair in pairs]
    )
    for task, rate in [*groups, ("all", None)]:
        chosen = [
            pair for pair in pairs if task in (pair["task"], "all") and rate in (pair["rate"], None)
        ]
        ratios = [pair["ratio"] for pair in chosen if pair["ratio"] is not None]
        logs = np.log(ratios)
        differences = np.array([pair["difference"] for pair in chosen])
        found = {
            "cv_ratio_count": (len(ratios), "cells", len(chosen)),
            "cv_ratio_mean": (np.exp(logs.mean()), "ratio", len(chosen)),
            "cv_ratio_t": (compute_t_value(logs), "t", len(chosen)),
            "cv_ratio_inside": (
                sum(low <= ratio <= high for ratio in ratios),
                "cells",
                len(chosen),
            ),
            "difference_mean": (differences.mean(), "points", len(chosen)),
            "difference_t": (compute_t_value(differences), "t", len(chosen)),
        }
        where = {
            "task": task,
            "rate": rate,
            "subset": "all" if rate is None else None,
            "protocol": PROTOCOL,
        }
        scores += make_scores(where, found)
    ends = {"cv_ratio_null_low": (low, "ratio", runs), "cv_ratio_null_high": (high, "ratio", runs)}
    return scores + make_scores({"task": "all", "subset": None, "protocol": PROTOCOL}, ends)


def compute_t_value(values: np.ndarray) -> float | None:
    """Compute Student's t of the mean of `values` [N] against 0; None for fewer than two values."""
    return (
        values.mean() / (values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    )
