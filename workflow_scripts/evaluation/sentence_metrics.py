"""Metrics of predicted classes and scores. An undefined metric is left out, with a reason."""

import numpy as np

Measured = dict[str, float]
Reasons = dict[str, str]

# Greater is better; what a validation takes for a measure that is not defined: the least that any of them can be.
LEAST = -100.0


def class_metrics(predicted: np.ndarray, likelihood: np.ndarray | None, label: np.ndarray) -> tuple[Measured, Reasons]:
    """Return (metrics, reasons for omitted ones) of the classes predicted [N] and right [N].

    accuracy: percent. matthews: Matthews's correlation coefficient times 100. For two classes also accuracy_label_0 on
    the items of class 0, f1 of class 1, and auc by the `likelihood` [N] of class 1, all in percent.
    """
    from sklearn.metrics import f1_score, matthews_corrcoef, roc_auc_score

    found, absent = {"accuracy": 100 * float((predicted == label).mean())}, {}
    both = len(np.unique(label)) > 1
    if both and len(np.unique(predicted)) > 1:
        found["matthews"] = 100 * float(matthews_corrcoef(label, predicted))
    else:
        absent["matthews"] = "all items have one class" if not both else "all predictions are one class"
    if likelihood is None:
        return found, absent
    zero = label == 0
    if zero.any():
        found["accuracy_label_0"] = 100 * float((predicted[zero] == 0).mean())
    else:
        absent["accuracy_label_0"] = "no item has class 0"
    if (label == 1).any() or (predicted == 1).any():
        found["f1"] = 100 * float(f1_score(label, predicted))
    else:
        absent["f1"] = "no item has class 1, and none is predicted"
    if both:
        found["auc"] = 100 * float(roc_auc_score(label, likelihood))
    else:
        absent["auc"] = "all items have one class"
    return found, absent


def score_metrics(predicted: np.ndarray, label: np.ndarray) -> tuple[Measured, Reasons]:
    """Return (pearson and spearman times 100, reasons for omitted ones) of the numbers predicted [N] and right [N]."""
    from scipy.stats import pearsonr, spearmanr

    if len(label) < 2:
        reason = "one item has no correlation"
    elif np.ptp(label) == 0:
        reason = "all items have one score"
    # Cosines that differ by rounding alone have a correlation of rounding errors.
    elif np.ptp(predicted) <= 1e-6 * max(1.0, np.abs(predicted).max()):
        reason = "all predictions are equal"
    else:
        measures = {"pearson": pearsonr, "spearman": spearmanr}
        return {name: 100 * float(measure(predicted, label).statistic) for name, measure in measures.items()}, {}
    return {}, dict.fromkeys(("pearson", "spearman"), reason)
