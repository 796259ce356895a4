"""The coefficient of variation and its interval, against numbers worked out by hand and
simulations.
"""

import math

import numpy as np
import pytest
from scipy import stats

from workflow_scripts.interventions.answer_scores import compute_cv


def test_coefficient_of_variation_of_numbers_worked_out_by_hand():
    found = compute_cv([2.0, 4.0, 6.0])  # mean 4, variance (4 + 0 + 4) / 2
    assert found["cv"] == pytest.approx(0.5)
    assert found["cv_low"] < 0.5 and "cv_high" not in found  # three such runs set no upper bound
    assert compute_cv([5.0, 5.0])["cv"] == 0
    for undefined in ([], [1.0], [0.0, 0.0], [-1.0, 1.0]):
        assert compute_cv(undefined) == {}


def test_interval_of_a_small_cv_is_the_chi_square_one_of_the_deviation():
    found = compute_cv(1000 + np.array([-1.0, 0.5, 0.0, 0.3, -0.2, 0.4]))
    ends = stats.chi2.ppf([0.975, 0.025], 5)
    assert [found["cv_low"], found["cv_high"]] == pytest.approx(
        (found["cv"] * np.sqrt(5 / ends)).tolist(), rel=1e-5
    )


def test_interval_of_the_cv_is_nearly_the_exact_one():
    """Root n over the CV of a sample has a noncentral t distribution, with root n over the true CV
    in the middle.
    """
    found, root = compute_cv([51.0, 55.0, 58.0, 60.0, 66.0, 75.0]), math.sqrt(6)  # a CV of 0.14
    tails = [
        stats.nct.cdf(root / found["cv"], 5, root / found["cv_low"]),
        stats.nct.sf(root / found["cv"], 5, root / found["cv_high"]),
    ]
    assert tails == pytest.approx([0.025, 0.025], abs=2e-4)


@pytest.mark.parametrize("cv", [0.02, 0.1, 0.25])
def test_interval_of_the_cv_holds_the_truth_as_often_as_it_says(cv):
    runs = np.random.default_rng(1).normal(60, 60 * cv, size=(2000, 6))
    held = [(found := compute_cv(row))["cv_low"] <= cv <= found["cv_high"] for row in runs]
    assert np.mean(held) == pytest.approx(0.95, abs=0.02)
