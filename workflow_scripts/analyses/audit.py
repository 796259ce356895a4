"""Audit the printed numbers of a paper: differences of scores and ratios of spreads.

The paper prints the mean over runs of ConsistSyn (percent) and its CV = SD / mean, so the SD is CV
times the mean. If both sides have n runs from normal distributions of one SD, 95% of the ratios of
the SDs are between the square roots of F(0.025; n - 1, n - 1) and F(0.975; n - 1, n - 1). A ratio
of CVs is treated as one of SDs: the means hardly differ.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy import stats

from workflow_scripts.analyses.options.audit import Options
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.common.errors import UserError
from workflow_scripts.evaluation.published_numbers import Key, Published
from workflow_scripts.evaluation.scores import Score, make_scores

LEVEL = 0.05  # two-sided
PROTOCOL = "paper"  # the numbers are the paper's own at every scale


@dataclass(frozen=True)
class CellPair:
    """A printed cell of both versions of a model.

    difference: of the scores, in points. cv_ratio: of the CVs; None if one of them is a misprint.
    """

    task: str
    rate: float
    difference: float
    cv_ratio: float | None


def analyse(published: dict[Key, Published], options: Options) -> AnalysisResult:
    """Return the scores `cv_ratio_*` and `difference_*`."""
    pairs = list(find_cell_pairs(published, options))
    if not pairs:
        raise UserError(
            "displays.yaml: the audit finds no cell with both versions in published.csv; "
            "see its options"
        )
    return AnalysisResult(score_spreads(pairs, options.runs))


def find_cell_pairs(published: dict[Key, Published], options: Options) -> Iterator[CellPair]:
    """Yield the cells that `published` has for both versions."""
    displays = options.displays.items()
    rates = options.rates.items()
    for (task, display), (prefix, rate), model in product(displays, rates, options.models):
        rows = [f"{model} {version}" for version in options.versions]
        consistency = [
            find_value(published, Key(display, row, f"{prefix} CS", "consistency")) for row in rows
        ]
        cv = [find_value(published, Key(display, row, f"{prefix} CV", "cv")) for row in rows]
        first, second = consistency
        first_cv, second_cv = cv
        if first is None or second is None or first_cv is None or second_cv is None:
            continue
        cv_ratio = None
        if (display, model, prefix) not in options.misprinted:
            cv_ratio = first_cv / second_cv
        yield CellPair(task, rate, first - second, cv_ratio)


def find_value(published: dict[Key, Published], key: Key) -> float | None:
    """Return the printed number of a cell; None if there is none, or if it is a bound or words."""
    if key not in published:
        return None
    return published[key].value


def compute_null_interval(runs: int) -> tuple[float, float]:
    """Compute the 95% interval of the ratio of two SDs if the true one is 1, over `runs` each."""
    low, high = stats.f.ppf([LEVEL / 2, 1 - LEVEL / 2], runs - 1, runs - 1)
    return math.sqrt(low), math.sqrt(high)


def score_spreads(pairs: Sequence[CellPair], runs: int) -> list[Score]:
    """Average ratios of CVs (geometric mean) and differences of scores.

    Rows are first by task and rate, then by task, then over all.
    """
    low, high = compute_null_interval(runs)
    scores = []
    for task, rate in list_groups(pairs):
        group = [pair for pair in pairs if is_in_group(pair, task, rate)]
        n = len(group)
        ratios = [pair.cv_ratio for pair in group if pair.cv_ratio is not None]
        inside = sum(low <= ratio <= high for ratio in ratios)
        logs = np.log(ratios)
        differences = np.array([pair.difference for pair in group])
        columns = {"task": task, "rate": rate, "subset": None, "protocol": PROTOCOL}
        if rate is None:
            columns["subset"] = "all"
        values = {
            "cv_ratio_count": (len(ratios), "cells", n),
            "difference_mean": (differences.mean(), "points", n),
            "difference_t": (compute_t_value(differences), "t", n),
        }
        if ratios:
            values |= {
                "cv_ratio_mean": (np.exp(logs.mean()), "ratio", len(ratios)),
                "cv_ratio_t": (compute_t_value(logs), "t", len(ratios)),
                "cv_ratio_inside": (inside, "cells", len(ratios)),
            }
        scores += make_scores(columns, values)
    ends = {
        "cv_ratio_null_low": (low, "ratio", runs),
        "cv_ratio_null_high": (high, "ratio", runs),
    }
    scores += make_scores({"task": "all", "subset": None, "protocol": PROTOCOL}, ends)
    return scores


def list_groups(pairs: Sequence[CellPair]) -> list[tuple[str, float | None]]:
    """List (task, rate) of the groups that are averaged; a rate of None means all rates."""
    by_rate = [(pair.task, pair.rate) for pair in pairs]
    by_task = [(pair.task, None) for pair in pairs]
    return [*dict.fromkeys(by_rate + by_task), ("all", None)]


def is_in_group(pair: CellPair, task: str, rate: float | None) -> bool:
    """Return whether a cell is in the group of this task ("all": any) and rate (None: any)."""
    if task not in (pair.task, "all"):
        return False
    return rate in (pair.rate, None)


def compute_t_value(values: np.ndarray) -> float | None:
    """Compute Student's t of the mean of `values` [N] against 0; None for fewer than two values."""
    if len(values) < 2:
        return None
    return values.mean() / (values.std(ddof=1) / math.sqrt(len(values)))
