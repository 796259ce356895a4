"""Measures of classes and scores against their definitions, and where they are not defined."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.evaluation.sentence_metrics import compute_class_metrics, compute_correlations

# label, predicted, likelihood in fifths
classes = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 5)), min_size=1, max_size=30
)


@given(classes)
def test_two_classes(items):
    label, predicted, fifths = (np.array(column) for column in zip(*items, strict=True))
    found, absent = compute_class_metrics(predicted, fifths / 5, label)
    assert found.keys().isdisjoint(absent)
    assert found.keys() | absent.keys() == {"accuracy", "accuracy_label_0", "f1", "auc", "matthews"}
    tp, tn, fp, fn = (
        int(((label == a) & (predicted == b)).sum()) for a, b in ((1, 1), (0, 0), (0, 1), (1, 0))
    )
    assert found["accuracy"] == pytest.approx(100 * (tp + tn) / len(items))
    if tn + fp:
        assert found["accuracy_label_0"] == pytest.approx(100 * tn / (tn + fp))
    if tp + fp + fn:
        assert found["f1"] == pytest.approx(100 * 2 * tp / (2 * tp + fp + fn))
    under_root = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    if under_root:
        assert found["matthews"] == pytest.approx(100 * (tp * tn - fp * fn) / under_root**0.5)
    else:
        assert "matthews" in absent
    if tp + fn and tn + fp:
        # The share of pairs, one of each class, that the likelihood puts in order; a tie is half a
        # pair.
        ordered = [(a > b) + (a == b) / 2 for a in fifths[label == 1] for b in fifths[label == 0]]
        assert found["auc"] == pytest.approx(100 * np.mean(ordered))
    else:
        assert absent["auc"] == "all items have one class"


def test_three_classes_have_no_measures_of_two():
    found, absent = compute_class_metrics(np.array([0, 1, 2, 1]), None, np.array([0, 1, 2, 2]))
    assert found["accuracy"] == 75 and set(found) == {"accuracy", "matthews"} and not absent


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=20))
def test_correlations(items):
    predicted, label = (np.array(column, float) for column in zip(*items, strict=True))
    found, absent = compute_correlations(predicted, label)
    if len(set(predicted)) == 1 or len(set(label)) == 1:
        assert not found and set(absent) == {"pearson", "spearman"}
    else:
        assert found["pearson"] == pytest.approx(
            100 * np.corrcoef(predicted, label)[0, 1], abs=1e-6
        )
        ranks = [[(np.sum(v < x) + np.sum(v <= x) + 1) / 2 for x in v] for v in (predicted, label)]
        assert found["spearman"] == pytest.approx(100 * np.corrcoef(*ranks)[0, 1], abs=1e-6)


def test_rounding_is_no_correlation():
    predicted = np.float32(0.9) + np.array([0, 6e-8, 0, 6e-8], np.float32)
    reasons = dict.fromkeys(("pearson", "spearman"), "all predictions are equal")
    assert compute_correlations(predicted, np.arange(4.0)) == ({}, reasons)
