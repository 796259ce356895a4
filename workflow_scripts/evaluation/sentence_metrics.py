"""Metrics of predicted classes and scores.

An undefined metric is omitted, and its reason is returned.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Measured = dict[str, float]
Reasons = dict[str, str]


class ClassMetric(NamedTuple):
    """A metric of classes: how to compute it, and why it is undefined ("" if it is defined)."""

    compute: Callable[[], float]
    reason: str = ""


# Validation uses this value for an undefined metric: the lowest possible value of all these metrics
# (higher is better).
LOWEST_METRIC = -100.0


def compute_class_metrics(
    predicted: np.ndarray, likelihood: np.ndarray | None, label: np.ndarray
) -> tuple[Measured, Reasons]:
    """Return (metrics, reasons for omitted metrics) of predicted and right classes, both [N].

    `accuracy` is in percent, `matthews` is Matthews's correlation coefficient times 100. Given the
    `likelihood` [N] of class 1 (two classes), also returns in percent: `accuracy_label_0` on the
    items of class 0, `f1` of class 1, `auc`.
    """
    from sklearn.metrics import f1_score, matthews_corrcoef, roc_auc_score

    one_class = ""
    if len(np.unique(label)) < 2:
        one_class = "all items have one class"
    one_answer = ""
    if len(np.unique(predicted)) < 2:
        one_answer = "all predictions are one class"
    metrics = {
        "accuracy": ClassMetric(lambda: (predicted == label).mean()),
        "matthews": ClassMetric(
            lambda: matthews_corrcoef(label, predicted), one_class or one_answer
        ),
    }
    if likelihood is not None:
        is_zero = label == 0
        no_zero = ""
        if not is_zero.any():
            no_zero = "no item has class 0"
        no_one = ""
        if not (label == 1).any() and not (predicted == 1).any():
            no_one = "no item has class 1, and none is predicted"
        metrics["accuracy_label_0"] = ClassMetric(lambda: (predicted[is_zero] == 0).mean(), no_zero)
        metrics["f1"] = ClassMetric(lambda: f1_score(label, predicted), no_one)
        metrics["auc"] = ClassMetric(lambda: roc_auc_score(label, likelihood), one_class)
    values = {}
    reasons = {}
    for name, metric in metrics.items():
        if metric.reason:
            reasons[name] = metric.reason
        else:
            values[name] = 100 * float(metric.compute())
    return values, reasons


def compute_correlations(predicted: np.ndarray, label: np.ndarray) -> tuple[Measured, Reasons]:
    """Return (correlations, reasons if omitted) of predicted and right scores, both [N].

    `pearson` and `spearman` are Pearson's and Spearman's correlation times 100.
    """
    from scipy.stats import pearsonr, spearmanr

    reason = find_reason_without_correlation(predicted, label)
    if reason:
        return {}, {"pearson": reason, "spearman": reason}
    pearson: Any = pearsonr(predicted, label)
    spearman: Any = spearmanr(predicted, label)
    values = {
        "pearson": 100 * float(pearson.statistic),
        "spearman": 100 * float(spearman.statistic),
    }
    return values, {}


def find_reason_without_correlation(predicted: np.ndarray, label: np.ndarray) -> str:
    """Find why predicted and right scores [N] have no correlation; "" if they have one."""
    if len(label) < 2:
        return "one item has no correlation"
    if np.ptp(label) == 0:
        return "all items have one score"
    # The correlation of cosines that differ only by rounding would measure rounding errors.
    if np.ptp(predicted) <= 1e-6 * max(1.0, np.abs(predicted).max()):
        return "all predictions are equal"
    return ""
