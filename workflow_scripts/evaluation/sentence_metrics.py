"""Metrics of predicted classes and scores. An undefined metric is omitted, and its reason is returned."""

import numpy as np

Measured = dict[str, float]
Reasons = dict[str, str]

# Validation uses this value for an undefined metric: the lowest possible value of all these metrics (higher is better).
LOWEST_METRIC = -100.0


def compute_class_metrics(
    predicted: np.ndarray, likelihood: np.ndarray | None, label: np.ndarray
) -> tuple[Measured, Reasons]:
    """Return (metrics, reasons for omitted metrics) of the predicted and the right classes, both [N].

    `accuracy` is in percent, `matthews` is Matthews's correlation coefficient times 100. Given the `likelihood` [N] of
    class 1 (two classes), also returns in percent: `accuracy_label_0` on the items of class 0, `f1` of class 1, `auc`.
    """
    from sklearn.metrics import f1_score, matthews_corrcoef, roc_auc_score

    one_class = "" if len(np.unique(label)) > 1 else "all items have one class"
    one_answer = "" if len(np.unique(predicted)) > 1 else "all predictions are one class"
    measures = {  # name -> (why it is undefined, the measure)
        "accuracy": ("", lambda: (predicted == label).mean()),
        "matthews": (one_class or one_answer, lambda: matthews_corrcoef(label, predicted)),
    }
    if likelihood is not None:
        no_zero = "" if (label == 0).any() else "no item has class 0"
        no_one = (
            ""
            if (label == 1).any() or (predicted == 1).any()
            else "no item has class 1, and none is predicted"
        )
        measures["accuracy_label_0"] = no_zero, lambda: (predicted[label == 0] == 0).mean()
        measures["f1"] = no_one, lambda: f1_score(label, predicted)
        measures["auc"] = one_class, lambda: roc_auc_score(label, likelihood)
    found = {
        name: 100 * float(measure()) for name, (reason, measure) in measures.items() if not reason
    }
    return found, {name: reason for name, (reason, _) in measures.items() if reason}


def compute_correlations(predicted: np.ndarray, label: np.ndarray) -> tuple[Measured, Reasons]:
    """Return (Pearson's and Spearman's correlation times 100, reasons if omitted) of predicted and right scores [N]."""
    from scipy.stats import pearsonr, spearmanr

    if len(label) < 2:
        reason = "one item has no correlation"
    elif np.ptp(label) == 0:
        reason = "all items have one score"
    # The correlation of cosines that differ only by rounding would measure rounding errors.
    elif np.ptp(predicted) <= 1e-6 * max(1.0, np.abs(predicted).max()):
        reason = "all predictions are equal"
    else:
        measures = {"pearson": pearsonr, "spearman": spearmanr}
        return {
            name: 100 * float(measure(predicted, label).statistic)
            for name, measure in measures.items()
        }, {}
    return {}, dict.fromkeys(("pearson", "spearman"), reason)
