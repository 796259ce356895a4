"""Audit the printed numbers of a paper: ratios of spreads, runs that a claim needs, numbers that are printed twice.

The paper prints the mean over runs of ConsistSyn (percent) and its CV = SD / mean, so the SD is CV times the mean. If
both sides have n runs from normal distributions of one SD, 95% of the ratios of the SDs are between the square roots
of F(0.025; n - 1, n - 1) and F(0.975; n - 1, n - 1). A ratio of CVs is treated as one of SDs: the means hardly differ.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Callable
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pandas
from scipy import stats

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.evaluation.published import Key, Published
from workflow_scripts.evaluation.scores import make_scores

NEEDED = ("runs_needed_score", "runs_needed_cv")
LEVEL, POWER = 0.05, 0.8  # two-sided
PROTOCOL = "paper"  # the numbers are the paper's own at every scale


def analyse(published: dict[Key, Published], options: dict[str, Any]) -> AnalysisResult:
    """Return the scores `cv_ratio_*`, `difference_*`, `runs_needed_*` and `pairs_*`; table printed_twice.

    options:
        displays: task -> the table with its numbers.
        rates: prefix of columns -> rate of replaced words, e.g. "25%" -> 0.25.
        models: prefixes of rows.
        versions: the endings of the two rows that are compared, e.g. [CARMA, FT].
        runs: how many runs each printed number is from.
        misprinted: [display, model, prefix of the rate] of cells whose CV is a misprint.
        twice: name -> pairs of cells that print the same number; `*` is any text, the same on both sides.
    """
    given = merge_options(
        options, displays={}, rates={}, models=[], versions=["CARMA", "FT"], runs=6, misprinted=[], twice={}
    )
    pairs = list_compared_models(published, given)
    if not pairs:
        raise UserError("displays.yaml: the audit finds no cell with both versions in published.csv; see its options")
    scores, repeated = score_spreads(pairs, given["runs"]), []
    for pair in pairs:
        where = {"task": pair["task"], "rate": pair["rate"], "subset": pair["model"], "protocol": PROTOCOL}
        scores += make_scores(where, {metric: (pair[metric], "runs", 1) for metric in NEEDED})
    for name, patterns in given["twice"].items():
        rows = [row for left, right in patterns for row in compare_repeated_numbers(published, left, right)]
        counts = {"pairs_compared": len(rows), "pairs_differing": sum(not row["agree"] for row in rows)}
        values = {metric: (count, "pairs", len(rows)) for metric, count in counts.items()}
        scores += make_scores({"task": "all", "subset": name, "protocol": PROTOCOL}, values)
        repeated += [{"where": name, **row} for row in rows]
    return AnalysisResult(scores, {"printed_twice": pandas.DataFrame(repeated)})


def list_compared_models(published: dict[Key, Published], given: dict[str, Any]) -> list[dict[str, Any]]:
    """List difference and ratio (none of a misprint) of both versions' cells, and the runs that would show them."""
    found = []
    places = product(given["displays"].items(), given["rates"].items(), given["models"])
    for (task, display), (prefix, rate), model in places:
        names = product((("CS", "consistency"), ("CV", "cv")), given["versions"])
        keys = [(display, f"{model} {version}", f"{prefix} {name}", metric) for (name, metric), version in names]
        cells = [published.get(key) for key in keys]
        if None in cells:
            continue
        score, other_score, cv, other_cv = (cell.value for cell in cells)
        pair = {"model": model, "task": task, "rate": rate, "difference": score - other_score}
        pair |= dict.fromkeys(["ratio", *NEEDED])
        if [display, model, prefix] not in given["misprinted"]:
            pair["ratio"] = cv / other_cv
            deviations = (cv * score, other_cv * other_score)  # over runs, in points
            pair["runs_needed_score"] = count_runs_for_difference(pair["difference"], *deviations)
            pair["runs_needed_cv"] = count_runs_for_ratio(pair["ratio"])
        found.append(pair)
    return found


def compute_null_interval(runs: int) -> tuple[float, float]:
    """Compute the 95% interval of the ratio of two standard deviations over `runs` runs each if the true ratio is 1."""
    low, high = stats.f.ppf([LEVEL / 2, 1 - LEVEL / 2], runs - 1, runs - 1)
    return math.sqrt(low), math.sqrt(high)


def score_spreads(pairs: list[dict[str, Any]], runs: int) -> list[dict]:
    """Average ratios of CVs (geometric mean) and differences of scores by task and rate, by task, and over all."""
    low, high = compute_null_interval(runs)
    scores = []
    groups = dict.fromkeys([(pair["task"], pair["rate"]) for pair in pairs] + [(pair["task"], None) for pair in pairs])
    for task, rate in [*groups, ("all", None)]:
        chosen = [pair for pair in pairs if task in (pair["task"], "all") and rate in (pair["rate"], None)]
        ratios = [pair["ratio"] for pair in chosen if pair["ratio"] is not None]
        logs = np.log(ratios)
        differences = np.array([pair["difference"] for pair in chosen])
        found = {
            "cv_ratio_count": (len(ratios), "cells", len(chosen)),
            "cv_ratio_mean": (np.exp(logs.mean()), "ratio", len(chosen)),
            "cv_ratio_t": (compute_t_value(logs), "t", len(chosen)),
            "cv_ratio_inside": (sum(low <= ratio <= high for ratio in ratios), "cells", len(chosen)),
            "difference_mean": (differences.mean(), "points", len(chosen)),
            "difference_t": (compute_t_value(differences), "t", len(chosen)),
        }
        where = {"task": task, "rate": rate, "subset": "all" if rate is None else None, "protocol": PROTOCOL}
        scores += make_scores(where, found)
    ends = {"cv_ratio_null_low": (low, "ratio", runs), "cv_ratio_null_high": (high, "ratio", runs)}
    return scores + make_scores({"task": "all", "subset": None, "protocol": PROTOCOL}, ends)


def compute_t_value(values: np.ndarray) -> float | None:
    """Compute Student's t of the mean of `values` [N] against 0; None for fewer than two values."""
    return values.mean() / (values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None


def count_runs_for_difference(difference: float, std: float, other_std: float) -> int | None:
    """Count the runs of each side with which a pooled two-sided t test at 5% finds a true `difference` in 80% of cases.

    The runs are independent and normal with these standard deviations. None if there is no difference.
    """
    if difference == 0:
        return None
    effect = abs(difference) / math.sqrt((std**2 + other_std**2) / 2)

    def power(runs: int) -> float:
        freedom, shift = 2 * runs - 2, effect * math.sqrt(runs / 2)
        critical = stats.t.ppf(1 - LEVEL / 2, freedom)
        return float(stats.nct.sf(critical, freedom, shift) + stats.nct.cdf(-critical, freedom, shift))

    def normal_power(runs: int) -> float:
        # A t test needs z^2 / 4, about one, more runs than a test with known deviations (Guenther 1981).
        critical = stats.norm.ppf(1 - LEVEL / 2)
        shift = effect * math.sqrt((runs - critical**2 / 4) / 2)
        return float(stats.norm.sf(critical - shift) + stats.norm.cdf(-critical - shift))

    # The noncentral t is slow and inaccurate for many thousands of degrees of freedom.
    needed = find_smallest_count(normal_power)
    return find_smallest_count(power, 1000) if needed is not None and needed < 500 else needed


def count_runs_for_ratio(ratio: float) -> int | None:
    """Count the runs of each side with which a two-sided F test at 5% finds a true `ratio` of SDs in 80% of cases."""

    def power(runs: int) -> float:
        low, high = stats.f.ppf([LEVEL / 2, 1 - LEVEL / 2], runs - 1, runs - 1) / ratio**2
        return float(stats.f.cdf(low, runs - 1, runs - 1) + stats.f.sf(high, runs - 1, runs - 1))

    return None if ratio == 1 else find_smallest_count(power)


def find_smallest_count(power: Callable[[int], float], most: int = 10**9) -> int | None:
    """Find the smallest number of runs, from 2 to `most`, with 80% power; `power` must increase with the runs."""
    found = bisect_left(range(most + 1), POWER, lo=2, key=power)
    return found if found <= most else None


def compare_repeated_numbers(published: dict[Key, Published], left: str, right: str) -> list[dict]:
    """Compare the cells of `left` with those of `right`: both numbers, and whether one rounds to the other."""
    shape = re.compile(re.escape(left).replace(r"\*", "([^/]+)"))
    rows = []
    for key, one in published.items():
        match = shape.fullmatch("/".join(key))
        if not match:
            continue
        at = right.replace("*", match[1]) if "*" in right else right
        other = published.get(tuple(at.split("/")))
        if other is None or one.value is None or other.value is None:
            continue
        step = max(compute_printed_step(one), compute_printed_step(other))
        # Half a step, and a little for numbers that floating point cannot hold.
        agree = abs(one.value - other.value) <= step / 2 * (1 + 1e-6)
        here = {"cell": "/".join(key), "printed": one.printed, "value": one.value}
        there = {"other_cell": at, "other_printed": other.printed, "other_value": other.value}
        rows.append(here | there | {"agree": agree})
    return rows


def compute_printed_step(number: Published) -> float:
    """Compute the size of the last printed digit, in the unit: 0.01 for 56.31, or for 0.5631 if the unit is percent."""
    digits = Decimal(re.search(r"\d+(?:\.\d+)?", number.printed)[0])
    scale = 100 if number.value and math.isclose(abs(number.value), 100 * float(digits)) else 1
    return scale * 10.0 ** int(digits.as_tuple().exponent)
