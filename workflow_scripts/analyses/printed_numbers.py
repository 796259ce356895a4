"""What a paper's printed numbers say: spread against spread, the runs that a claim needs, numbers printed twice.

The paper prints, per model, task and rate of replaced words, the mean over runs of a score (ConsistSyn, percent) and
its coefficient of variation CV = SD / mean, so the standard deviation over runs is CV times the score. With n runs a
side, drawn from normal distributions of one SD, the ratio of two SDs lies in 95% of all cases between
sqrt(F(0.025; n - 1, n - 1)) and sqrt(F(0.975; n - 1, n - 1)); a ratio of CVs is taken for one of SDs, since the means
hardly differ.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pandas
from scipy import stats

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.options import merge_options
from workflow_scripts.evaluation.published import Key, Published

LEVEL, POWER = 0.05, 0.8  # two-sided
MOST_RUNS = 10**9  # more than this many runs are no number of runs


@dataclass(frozen=True)
class ComparedModels:
    """The two compared models in one cell of the paper: scores in percent, CVs as ratios (None for misprints)."""

    model: str
    task: str
    rate: float
    score: float
    other_score: float
    cv: float | None
    other_cv: float | None

    @property
    def ratio(self) -> float | None:
        """Of the two CVs."""
        return None if self.cv is None else self.cv / self.other_cv

    @property
    def difference(self) -> float:
        """Of the two scores, in points."""
        return self.score - self.other_score

    @cached_property
    def needed(self) -> dict[str, int | None]:
        """Runs a side that would show the printed difference of scores, and of CVs; None where no number would."""
        if self.cv is None:
            return {"runs_needed_score": None, "runs_needed_cv": None}
        deviations = (self.cv * self.score, self.other_cv * self.other_score)  # over runs, in points
        return {
            "runs_needed_score": count_runs_for_difference(self.difference, *deviations),
            "runs_needed_cv": count_runs_for_ratio(self.ratio),
        }


def audit(
    published: dict[Key, Published], given: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, pandas.DataFrame]]:
    """Rows of scores.csv (`cv_ratio_*`, `difference_*`, `runs_needed_*`, `pairs_*`); tables cv_ratios, printed_twice.

    options:
        displays: task -> the table that prints it.
        rates: columns' prefix -> rate of replaced words, e.g. "25%" -> 0.25.
        models: rows' prefixes; versions: the endings of the two rows that are compared, e.g. [CARMA, FT].
        runs: runs behind each printed number.
        misprinted: [display, model, prefix of the rate] of cells whose CV is a misprint.
        twice: name -> pairs of cells that print one number; `*` stands for the same text on both sides.
    """
    options = merge_options(
        given, displays={}, rates={}, models=[], versions=["CARMA", "FT"], runs=6, misprinted=[], twice={}
    )
    pairs = list_compared_models(published, options)
    if not pairs:
        raise UserError("displays.yaml: the audit finds no cell with both versions in published.csv; see its options")
    scores = score_spreads(pairs, options["runs"]) + score_needed_runs(pairs)
    compared = []
    for name, patterns in options["twice"].items():
        rows = [
            {"where": name, **row}
            for left, right in patterns
            for row in compare_repeated_numbers(published, left, right)
        ]
        differ = sum(not row["agree"] for row in rows)
        scores += [_score("all", "pairs_compared", len(rows), "pairs", len(rows), subset=name)]
        scores += [_score("all", "pairs_differing", differ, "pairs", len(rows), subset=name)]
        compared += rows
    low, high = compute_null_interval(options["runs"])
    ratios = [
        {name: getattr(pair, name) for name in ("model", "task", "rate", "ratio", "difference")}
        | {"low": low, "high": high, "p_value": compute_ratio_p_value(pair.ratio, options["runs"])}
        | pair.needed
        for pair in pairs
    ]
    return scores, {"cv_ratios": pandas.DataFrame(ratios), "printed_twice": pandas.DataFrame(compared)}


def list_compared_models(published: dict[Key, Published], options: dict[str, Any]) -> list[ComparedModels]:
    """The cells that print score and CV of both versions."""
    misprints = {tuple(cell) for cell in options["misprinted"]}
    pairs = []
    for task, display in options["displays"].items():
        for prefix, rate in options["rates"].items():
            for model in options["models"]:
                cells = [
                    published.get((display, f"{model} {version}", f"{prefix} {name}", metric))
                    for name, metric in (("CS", "consistency"), ("CV", "cv"))
                    for version in options["versions"]
                ]
                if None not in cells:
                    *scores, cv, other_cv = (cell.value for cell in cells)
                    misprinted = (display, model, prefix) in misprints
                    pairs.append(
                        ComparedModels(model, task, rate, *scores, *((None, None) if misprinted else (cv, other_cv)))
                    )
    return pairs


def compute_null_interval(runs: int) -> tuple[float, float]:
    """The middle 95% of the ratio of two standard deviations over `runs` runs each, when there is no difference."""
    low, high = stats.f.ppf([LEVEL / 2, 1 - LEVEL / 2], runs - 1, runs - 1)
    return math.sqrt(low), math.sqrt(high)


def compute_ratio_p_value(ratio: float | None, runs: int) -> float | None:
    """Two-sided p of the F test that two standard deviations over `runs` runs each, of this ratio, are equal."""
    if ratio is None:
        return None
    tail = stats.f.cdf(ratio**2, runs - 1, runs - 1)
    return float(2 * min(tail, 1 - tail))


def score_spreads(pairs: list[ComparedModels], runs: int) -> list[dict]:
    """By task and rate, by task, and over all: the geometric mean of CV ratios, and the mean difference of scores."""
    low, high = compute_null_interval(runs)
    scores = []
    groups = dict.fromkeys([(pair.task, pair.rate) for pair in pairs] + [(pair.task, None) for pair in pairs])
    for task, rate in [*groups, ("all", None)]:
        chosen = [pair for pair in pairs if task in (pair.task, "all") and rate in (pair.rate, None)]
        ratios = [pair.ratio for pair in chosen if pair.ratio is not None]
        logs = np.log(ratios)
        differences = np.array([pair.difference for pair in chosen])
        found = {
            "cv_ratio_count": (len(ratios), "cells"),
            "cv_ratio_mean": (float(np.exp(logs.mean())), "ratio"),
            "cv_ratio_t": (compute_t_value(logs), "t"),
            "cv_ratio_inside": (sum(low <= ratio <= high for ratio in ratios), "cells"),
            "difference_mean": (float(differences.mean()), "points"),
            "difference_t": (compute_t_value(differences), "t"),
        }
        for metric, (value, unit) in found.items():
            subset = "all" if rate is None else None
            if value is not None:
                scores.append(_score(task, metric, value, unit, len(chosen), rate=rate, subset=subset))
    scores.append(_score("all", "cv_ratio_null_low", low, "ratio", runs))
    scores.append(_score("all", "cv_ratio_null_high", high, "ratio", runs))
    return scores


def compute_t_value(values: np.ndarray) -> float | None:
    """Student's t of the mean of `values` [N] against 0; None for fewer than two of them."""
    if len(values) < 2:
        return None
    return float(values.mean() / (values.std(ddof=1) / math.sqrt(len(values))))


def score_needed_runs(pairs: list[ComparedModels]) -> list[dict]:
    """By model, task and rate: runs a side that would show the printed difference of scores, and of CVs."""
    scores = []
    for pair in pairs:
        for metric, count in pair.needed.items():
            if count is not None:  # no number of runs shows that two equal numbers differ
                scores.append(_score(pair.task, metric, count, "runs", 1, rate=pair.rate, subset=pair.model))
    return scores


def count_runs_for_difference(difference: float, std: float, other_std: float) -> int | None:
    """Least runs a side with which a two-sided t test at 5% finds a true `difference` in 80% of all cases.

    Two independent sides of normal runs with these standard deviations; the test pools them (equal numbers of runs a
    side). None when there is no difference.
    """
    pooled = math.sqrt((std**2 + other_std**2) / 2)

    def power(runs: int) -> float:
        freedom, shift = 2 * runs - 2, abs(difference) / (pooled * math.sqrt(2 / runs))
        critical = stats.t.ppf(1 - LEVEL / 2, freedom)
        return float(stats.nct.sf(critical, freedom, shift) + stats.nct.cdf(-critical, freedom, shift))

    def normal_power(runs: int) -> float:
        # A t test takes z^2 / 4, about one, more runs than if the deviation were known (Guenther 1981).
        critical = stats.norm.ppf(1 - LEVEL / 2)
        shift = abs(difference) / (pooled * math.sqrt(2 / (runs - critical**2 / 4)))
        return float(stats.norm.sf(critical - shift) + stats.norm.cdf(-critical - shift))

    if difference == 0:
        return None
    # The noncentral t is slow and unsteady for many thousands of degrees of freedom.
    needed = find_smallest_count(normal_power)
    return find_smallest_count(power) if needed is not None and needed < 500 else needed


def count_runs_for_ratio(ratio: float) -> int | None:
    """Least runs a side with which a two-sided F test at 5% finds a true `ratio` of deviations in 80% of all cases."""

    def power(runs: int) -> float:
        low, high = stats.f.ppf([LEVEL / 2, 1 - LEVEL / 2], runs - 1, runs - 1) / ratio**2
        return float(stats.f.cdf(low, runs - 1, runs - 1) + stats.f.sf(high, runs - 1, runs - 1))

    return None if ratio == 1 else find_smallest_count(power)


def find_smallest_count(power: Callable[[int], float]) -> int | None:
    """The least number of runs, 2 or more, whose power reaches 80%; it must rise with the runs."""
    high = 2
    while power(high) < POWER:
        high *= 2
        if high > MOST_RUNS:
            return None
    low = high // 2 + 1 if high > 2 else 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= POWER else (middle + 1, high)
    return low


def compare_repeated_numbers(published: dict[Key, Published], left: str, right: str) -> list[dict]:
    """The cells of `left` that also stand under `right`: both numbers, and whether one rounds to the other."""
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
        rows.append(
            here | {"other_cell": at, "other_printed": other.printed, "other_value": other.value, "agree": agree}
        )
    return rows


def compute_printed_step(number: Published) -> float:
    """The last printed digit of a number, in its unit: 0.01 for 56.31, also for 0.5631 that is meant as percent."""
    digits = Decimal(re.search(r"\d+(?:\.\d+)?", number.printed)[0])
    scale = 100 if number.value and math.isclose(abs(number.value), 100 * float(digits)) else 1
    return scale * 10.0 ** int(digits.as_tuple().exponent)


def _score(task: str, metric: str, value: float, unit: str, n: int, **columns: Any) -> dict[str, Any]:
    """One row of scores.csv: numbers of the paper itself, whatever the scale."""
    return {"task": task, "metric": metric, "value": float(value), "unit": unit, "n": n, "protocol": "paper", **columns}
