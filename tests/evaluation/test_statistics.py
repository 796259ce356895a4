"""Statistics against scipy or, where they are scipy's, the definition; hand-worked examples and
simulation.
"""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from workflow_scripts.evaluation.statistics import (
    SuccessRates,
    bootstrap_over_examples,
    compare_independent,
    compare_paired,
    compare_with_constant,
    compute_kendall_tau,
    compute_q_values,
    measure_association,
    measure_superiority,
    summarise_seeds,
)

VALUES = st.lists(
    st.floats(0, 100, allow_nan=False).map(lambda x: round(x, 2)), min_size=2, max_size=5
)


def test_summary_by_hand():
    # 1, 2, 3, 6: mean 3, squares of deviations 4 + 1 + 0 + 9 = 14, variance 14/3; t(0.975, 3) =
    # 3.182446
    summary = summarise_seeds([1, 2, 3, 6])
    assert summary.mean == 3
    assert summary.std == pytest.approx(math.sqrt(14 / 3))
    assert summary.high - summary.mean == pytest.approx(3.182446 * math.sqrt(14 / 3) / 2, rel=1e-6)
    assert summary.low == pytest.approx(6 - summary.high)


def test_a_single_seed_gives_neither_interval_nor_p():
    summary = summarise_seeds([42.0])
    assert (summary.mean, summary.std, summary.low, summary.high) == (42.0, None, None, None)
    effect = compare_independent([100, 99], [60])
    assert (effect.value, effect.low, effect.high, effect.compute_p_value()) == (
        39.5,
        None,
        None,
        None,
    )


@pytest.mark.filterwarnings("ignore:Precision loss")  # of scipy, where one side hardly varies
@given(VALUES, VALUES, st.floats(-5, 5), st.sampled_from([0.975, 0.9875]))
@settings(max_examples=60)
def test_welch_is_scipys(left, right, margin, quantile):
    if np.var(left) + np.var(right) < 0.1:
        return
    effect = compare_independent(left, right)
    oracle = stats.ttest_ind(np.array(left) - margin, right, equal_var=False)
    expected = oracle.confidence_interval(2 * quantile - 1)
    assert effect.compute_interval(quantile) == pytest.approx(
        (expected.low + margin, expected.high + margin), abs=1e-6
    )
    assert effect.compute_p_value(margin) == pytest.approx(oracle.pvalue, abs=1e-9)


def test_no_spread_gives_an_interval_without_width():
    effect = compare_independent([100, 100, 100], [60, 60])
    assert (effect.value, effect.low, effect.high) == (40, 40, 40)
    assert (effect.compute_p_value(0), effect.compute_p_value(40)) == (0, 1)


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=2, max_size=6),
    st.floats(-5, 5),
)
@settings(max_examples=40)
def test_paired_t_is_scipys(pairs, margin):
    left, right = np.round(np.array(pairs), 2).T
    effect = compare_paired(left, right)
    if (left - right).std() > 1e-6:
        oracle = stats.ttest_rel(left - margin, right)
        low, high = oracle.confidence_interval(0.975)
        assert effect.compute_interval(0.9875) == pytest.approx(
            (low + margin, high + margin), abs=1e-6
        )
        assert effect.compute_p_value(margin) == pytest.approx(oracle.pvalue, abs=1e-9)


@given(st.lists(st.floats(0, 100), min_size=2, max_size=6), st.floats(0, 100))
@settings(max_examples=40)
def test_difference_from_a_constant_is_the_one_sample_test(values, constant):
    values, constant = np.round(values, 2), round(constant, 2)
    effect, turned = (compare_with_constant(values, constant, side) for side in (True, False))
    assert effect.value == pytest.approx(values.mean() - constant)
    assert (turned.value, turned.low, turned.high) == pytest.approx(
        (-effect.value, -effect.high, -effect.low)
    )
    if values.std() > 1e-6:
        oracle = stats.ttest_1samp(values, constant)
        expected = oracle.confidence_interval(0.95)
        found = (effect.low + constant, effect.high + constant)
        assert found == pytest.approx((expected.low, expected.high), abs=1e-6)
        assert effect.compute_p_value() == pytest.approx(oracle.pvalue, abs=1e-9)


@pytest.mark.parametrize("n", [4, 6, 9])
@pytest.mark.parametrize("deviation", [1.0, 8.0])
def test_each_end_of_an_interval_errs_as_often_as_its_quantile_says(n, deviation):
    """Whatever the spread of the other side: so a claim is wrongly reproduced, or wrongly not, in
    1.25% at most.
    """
    generator, quantile, trials = np.random.default_rng(n), 0.9875, 4000
    independent = paired = 0
    sides = (generator.normal(0, spread, (trials, n)) for spread in (1, deviation))
    for left, right in zip(*sides, strict=True):
        independent += compare_independent(left, right).compute_interval(quantile)[0] > 0
        paired += compare_paired(left, right).compute_interval(quantile)[0] > 0
    for errors in (independent, paired):
        assert errors / trials == pytest.approx(0.0125, abs=0.007)  # four standard errors


def test_the_seeds_that_would_decide_give_the_power_that_they_promise():
    generator, trials = np.random.default_rng(5), 2000
    pilot = compare_paired(np.array([0.2, 1.8, 0.4, 1.6]), np.zeros(4))  # mean 1, deviation 0.83
    n = pilot.estimate_seeds_to_decide(1.0)
    deviation = pilot.error * 2
    draws = generator.normal(1.0, deviation, (trials, n))
    decided = np.mean([compare_with_constant(row, 0.0).low > 0 for row in draws])
    assert n == 8 and 0.76 < decided < 0.9
    assert (
        pilot.estimate_seeds_to_decide(0.0) is None and pilot.estimate_seeds_to_decide(100.0) == 5
    )
    assert compare_with_constant([1.0], 0.0).estimate_seeds_to_decide(1.0) is None


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=7))
def test_kendall_tau_counts_pairs(pairs):
    """(pairs in the same order - pairs in the opposite order) / sqrt(pairs untied on the left * on
    the right).
    """
    same = opposite = left_untied = right_untied = 0
    for (left, right), (other_left, other_right) in combinations(pairs, 2):
        product = (left - other_left) * (right - other_right)
        same += product > 0
        opposite += product < 0
        left_untied += left != other_left
        right_untied += right != other_right
    untied = left_untied * right_untied
    expected = (same - opposite) / math.sqrt(untied) if untied else 0.0
    left, right = np.array(pairs, dtype=float).T
    assert compute_kendall_tau(left, right) == pytest.approx(expected)
    both = compute_kendall_tau(np.stack([left, right]), np.stack([right, right]))
    assert both == pytest.approx([expected, float(right_untied > 0)])


def test_association_is_the_mean_tau_over_seeds():
    left = np.array([[0.9, 0.5, 0.2, 0.1], [0.7, 0.8, 0.1, 0.2]])
    right = np.array([[4.0, 15.0, 100.0, 100.0], [3.0, 20.0, 99.0, 100.0]])
    effect = measure_association(left, right)
    taus = [stats.kendalltau(a, b).statistic for a, b in zip(left, right, strict=True)]
    assert effect.value == pytest.approx(np.mean(taus))
    oracle = stats.ttest_1samp(taus, 0)
    interval = oracle.confidence_interval(0.95)
    assert (effect.low, effect.high) == pytest.approx((interval.low, interval.high))
    assert (-effect).compute_p_value() == pytest.approx(oracle.pvalue)


def test_the_p_value_of_superiority_by_hand():
    """All four pairs are in favour of left, and no seed's rank varies.

    N = 1, so V(1/2) = 1/4 (1 + 1/3 + 1/3) / 4 = 5/48, with 2 + 2 - 2 degrees of freedom. V(3/4) =
    3/16 (1 + (1/4) / (5/4) + (3/4) / (7/4)) / 4 = 3/16 (57/35) / 4.
    """
    effect = measure_superiority([3, 4], [1, 2])
    assert effect.value == 1
    for margin, variance in ((0.5, 5 / 48), (0.75, 3 / 16 * 57 / 35 / 4)):
        expected = 2 * stats.t.sf((1 - margin) / math.sqrt(variance), 2)
        assert effect.compute_p_value(margin) == pytest.approx(expected)
    assert (effect.compute_p_value(0.0), effect.compute_p_value(1.0)) == (0, 1)
    assert measure_superiority([3, 4], [1]).compute_p_value() is None


@given(VALUES, VALUES, st.floats(0.02, 0.98))
@settings(max_examples=60)
def test_the_p_value_of_superiority_is_that_at_which_its_interval_ends(left, right, margin):
    """A margin is the limit of the interval of confidence 1 - p."""
    effect = measure_superiority(left, right)
    p_value = effect.compute_p_value(margin)
    assert (-effect).compute_p_value(1 - margin) == pytest.approx(p_value)
    assert 0 <= p_value <= 1
    if not 1e-6 < p_value < 0.99:
        return
    narrower, wider = (effect.compute_interval(1 - share * p_value / 2) for share in (1.01, 0.99))
    assert not narrower[0] <= margin <= narrower[1]
    assert wider[0] <= margin <= wider[1]


@given(st.integers(1, 12), st.integers(1, 12), st.data(), st.sampled_from([0.95, 0.9833]))
def test_fisher_counts_ways_and_the_limit_is_that_of_a_binomial_test(
    left_n, right_n, data, quantile
):
    left, right = data.draw(st.integers(0, left_n)), data.draw(st.integers(0, right_n))
    rates = SuccessRates(left, left_n, right, right_n)
    successes = left + right
    ways = [
        math.comb(left_n, k) * math.comb(right_n, successes - k)
        for k in range(left, min(left_n, successes) + 1)
    ]
    assert rates.compute_fisher_p() == pytest.approx(
        sum(ways) / math.comb(left_n + right_n, successes)
    )
    limit = stats.binomtest(left, left_n, alternative="less").proportion_ci(quantile, "exact").high
    assert rates.compute_upper_limit(quantile) == pytest.approx(limit)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_a_q_value_is_the_lowest_rate_at_which_benjamini_and_hochberg_reject(p_values):
    """At a rate of r, they reject the tests up to the largest k with p_(k) <= r k / n: first at r =
    p_(k) n / k.
    """
    ranked, n = sorted(p_values), len(p_values)
    rates = [p * n / rank for rank, p in enumerate(ranked, 1)]
    expected = [min([1.0, *rates[ranked.index(p) :]]) for p in p_values]
    assert compute_q_values(p_values) == pytest.approx(expected)


def test_bootstrap_agrees_with_a_slow_loop():
    generator = np.random.default_rng(3)
    left, right = generator.random((3, 150)) < 0.60, generator.random((2, 150)) < 0.55
    difference = left.mean(0) - right.mean(0)
    draws = 4000
    slow = (
        sum(difference[generator.integers(0, 150, 150)].mean() <= 1e-9 for _ in range(draws))
        / draws
    )
    not_better, not_worse = bootstrap_over_examples(left.astype(float), right.astype(float))
    assert 0.005 < slow < 0.5
    assert not_better == pytest.approx(slow, abs=4 * math.sqrt(slow * (1 - slow) / draws))
    assert not_better + not_worse >= 1  # ties count against either side


def test_bootstrap_is_repeatable_and_never_zero():
    ones, zeros = np.ones((1, 50)), np.zeros((1, 50))
    assert (
        bootstrap_over_examples(ones, zeros)
        == bootstrap_over_examples(ones, zeros)
        == (1 / 10_001, 1.0)
    )
    assert bootstrap_over_examples(ones, ones) == (1.0, 1.0)
