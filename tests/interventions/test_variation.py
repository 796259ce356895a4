"""How scores vary, against numbers worked out by hand and simulations."""

import math

import numpy as np
import pytest
from scipy import stats

from workflow_scripts.interventions.variation import compute_cv, make_cv_rows, split_variance


def test_coefficient_of_variation_of_numbers_worked_out_by_hand():
    result = compute_cv([2.0, 4.0, 6.0])  # mean 4, variance (4 + 0 + 4) / 2
    assert result.value == pytest.approx(0.5)
    assert result.low < 0.5 < result.high
    assert compute_cv([5.0, 5.0]).value == 0
    for undefined in ([], [1.0], [0.0, 0.0], [-1.0, 1.0]):
        assert compute_cv(undefined).value is None


def test_interval_of_a_small_cv_is_the_chi_square_one_of_the_deviation():
    runs = 1000 + np.array([-1.0, 0.5, 0.0, 0.3, -0.2, 0.4])
    result = compute_cv(runs)
    ends = stats.chi2.ppf([0.975, 0.025], 5)
    assert [result.low, result.high] == pytest.approx((result.value * np.sqrt(5 / ends)).tolist(), rel=1e-5)


def test_interval_of_the_cv_is_nearly_the_exact_one():
    """Root n over the CV of a sample has a noncentral t distribution, with root n over the true CV in the middle."""
    runs = np.array([51.0, 55.0, 58.0, 60.0, 66.0, 75.0])  # a CV of 0.14
    found = compute_cv(runs)
    root = math.sqrt(6)
    tails = [
        stats.nct.cdf(root / found.value, 5, root / found.low),
        stats.nct.sf(root / found.value, 5, root / found.high),
    ]
    assert tails == pytest.approx([0.025, 0.025], abs=2e-4)


@pytest.mark.parametrize("cv", [0.02, 0.1, 0.25])
def test_interval_of_the_cv_holds_the_truth_as_often_as_it_says(cv):
    runs = np.random.default_rng(1).normal(60, 60 * cv, size=(2000, 6))
    held = [(found := compute_cv(row)).low <= cv <= found.high for row in runs]
    assert np.mean(held) == pytest.approx(0.95, abs=0.02)


def test_a_cv_that_the_runs_do_not_bound():
    assert compute_cv([0.1, 0.1, 0.1, 0.1, 0.1, 9.0]).high == math.inf


def test_the_cv_is_written_with_its_interval_as_far_as_there_is_one():
    def written(values):
        rows = make_cv_rows("constrained_", values, rate=0.25)
        assert all((row["unit"], row["n"], row["rate"]) == ("ratio", len(values), 0.25) for row in rows)
        return {row["metric"].removeprefix("constrained_"): row["value"] for row in rows}

    spread = compute_cv([2.0, 4.0, 4.5, 5.0, 5.0, 6.0])
    expected = {"cv": spread.value, "cv_low": spread.low, "cv_high": spread.high}
    assert written([2.0, 4.0, 4.5, 5.0, 5.0, 6.0]) == expected
    assert written([0.1, 0.1, 0.1, 0.1, 0.1, 9.0]).keys() == {"cv", "cv_low"}
    assert written([1.0]) == {}


def test_variance_parts_are_found_again():
    generator = np.random.default_rng(3)
    values = 60 + generator.normal(0, 3, size=(20_000, 1)) + generator.normal(0, 2, size=(20_000, 6))
    between, within = split_variance(values)
    assert (between, within) == (pytest.approx(9, rel=0.05), pytest.approx(4, rel=0.05))
    assert split_variance([[1.0, 3.0], [3.0, 1.0]]) == (0.0, 2.0)
    assert split_variance([[1.0, 3.0]]) == (None, 2.0)
    assert split_variance([[1.0], [3.0]]) == (None, None)
