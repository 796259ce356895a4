"""Statistics against brute force, scipy, hand-worked examples and simulation."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from workflow_scripts.reporting.statistics import (
    association,
    bootstrap_over_examples,
    difference_from_constant,
    holm,
    independent_difference,
    kendall_tau,
    paired_difference,
    summarise,
    welch_half_width,
)

VALUES = st.lists(st.floats(0, 100, allow_nan=False).map(lambda x: round(x, 2)), min_size=2, max_size=5)


def brute_force_p(left, right):
    """Twice the smaller tail over every way of handing the pooled values to the two sides."""
    pooled, size = [*left, *right], len(left)
    observed = sum(left) / size - sum(right) / len(right)
    below = above = total = 0
    for chosen in itertools.combinations(range(len(pooled)), size):
        a = [pooled[i] for i in chosen]
        b = [pooled[i] for i in range(len(pooled)) if i not in chosen]
        difference = sum(a) / len(a) - sum(b) / len(b)
        below += difference <= observed + 1e-9
        above += difference >= observed - 1e-9
        total += 1
    return min(1.0, 2 * min(below, above) / total)


def test_summary_by_hand():
    # 1, 2, 3, 6: mean 3, squares of deviations 4 + 1 + 0 + 9 = 14, variance 14/3; t(0.975, 3) = 3.182446
    summary = summarise([1, 2, 3, 6])
    assert summary.mean == 3
    assert summary.std == pytest.approx(math.sqrt(14 / 3))
    assert summary.high - summary.mean == pytest.approx(3.182446 * math.sqrt(14 / 3) / 2, rel=1e-6)
    assert summary.low == pytest.approx(6 - summary.high)


def test_one_seed_has_no_interval():
    summary = summarise([42.0])
    assert (summary.mean, summary.std, summary.low, summary.high) == (42.0, None, None, None)


@pytest.mark.filterwarnings("ignore:Precision loss")  # of scipy, where one side hardly varies
@given(VALUES, VALUES)
@settings(max_examples=60)
def test_welch_interval_is_scipys(left, right):
    if np.var(left) + np.var(right) < 0.1:
        return
    effect = independent_difference(left, right)
    expected = stats.ttest_ind(left, right, equal_var=False).confidence_interval(0.95)
    assert effect.low == pytest.approx(expected.low, abs=1e-6)
    assert effect.high == pytest.approx(expected.high, abs=1e-6)


@given(VALUES, VALUES)
@example([0.0, 1.0, 15.0, 0.12], [0.0, 8.0, 1.12, 7.12])  # sums that are equal but for rounding
@settings(max_examples=40)
def test_permutation_p_is_brute_force(left, right):
    effect = independent_difference(left, right)
    assert effect.p_value == pytest.approx(brute_force_p(left, right), abs=1e-9)
    assert effect.smallest_p <= effect.p_value + 1e-12


def test_three_against_three_cannot_go_under_a_tenth():
    effect = independent_difference([98, 99, 100], [1, 2, 3])
    assert effect.p_value == pytest.approx(0.1)
    assert effect.smallest_p == pytest.approx(0.1)
    assert independent_difference([1] * 5, [0] * 5).smallest_p == pytest.approx(2 / 252)


def test_no_spread_gives_an_interval_without_width():
    effect = independent_difference([100, 100, 100], [60, 60])
    assert (effect.value, effect.low, effect.high) == (40, 40, 40)


def test_a_single_seed_on_one_side_gives_neither_interval_nor_p():
    effect = independent_difference([100, 99], [60])
    assert (effect.value, effect.low, effect.high, effect.p_value) == (39.5, None, None, None)


def test_welch_covers_the_truth():
    generator = np.random.default_rng(1)
    left, right = generator.normal(0, 1, (4000, 5)), generator.normal(0, 8, (4000, 5))
    covered = sum(
        abs(a.mean() - b.mean()) <= welch_half_width(a.std(ddof=1), 5, b.std(ddof=1), 5)
        for a, b in zip(left, right, strict=True)
    )
    assert 0.935 <= covered / 4000 <= 0.965  # 95%, standard error 0.34%


def test_t_interval_covers_the_truth():
    draws = np.random.default_rng(2).normal(50, 10, (4000, 3))
    covered = sum(summary.low <= 50 <= summary.high for summary in map(summarise, draws))
    assert 0.935 <= covered / 4000 <= 0.965


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=2, max_size=6))
@settings(max_examples=40)
def test_paired_interval_is_scipys_and_p_is_brute_force(pairs):
    left, right = np.round(np.array(pairs), 2).T
    effect, differences = paired_difference(left, right), left - right
    if differences.std() > 1e-6:
        expected = stats.ttest_rel(left, right).confidence_interval(0.95)
        assert (effect.low, effect.high) == pytest.approx((expected.low, expected.high), abs=1e-6)
    means = [float(np.mean(differences * signs)) for signs in itertools.product((1, -1), repeat=len(differences))]
    tails = [np.mean([sign * mean >= sign * effect.value - 1e-9 for mean in means]) for sign in (1, -1)]
    assert effect.p_value == pytest.approx(min(1.0, 2 * min(tails)), abs=1e-9)


@given(st.lists(st.floats(0, 100), min_size=2, max_size=6), st.floats(0, 100))
@settings(max_examples=40)
def test_difference_from_a_constant_is_the_one_sample_test(values, constant):
    values, constant = np.round(values, 2), round(constant, 2)
    effect, turned = (difference_from_constant(values, constant, side) for side in (True, False))
    assert effect.value == pytest.approx(values.mean() - constant)
    assert (turned.value, turned.low, turned.high) == pytest.approx((-effect.value, -effect.high, -effect.low))
    assert turned.p_value == pytest.approx(effect.p_value)
    if values.std() > 1e-6:
        expected = stats.ttest_1samp(values, constant).confidence_interval(0.95)
        found = (effect.low + constant, effect.high + constant)
        assert found == pytest.approx((expected.low, expected.high), abs=1e-6)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=7))
def test_kendall_tau_is_scipys(pairs):
    left, right = np.array(pairs, dtype=float).T
    expected = stats.kendalltau(left, right).statistic
    assert kendall_tau(left, right) == pytest.approx(0.0 if math.isnan(expected) else expected)


def test_association_by_brute_force():
    left = np.array([[0.9, 0.5, 0.2, 0.1], [0.7, 0.8, 0.1, 0.2]])
    right = np.array([[4.0, 15.0, 100.0, 100.0], [3.0, 20.0, 99.0, 100.0]])
    effect = association(left, right)
    taus = [stats.kendalltau(a, b).statistic for a, b in zip(left, right, strict=True)]
    assert effect.value == pytest.approx(np.mean(taus))
    interval = stats.ttest_1samp(taus, 0).confidence_interval(0.95)
    assert (effect.low, effect.high) == pytest.approx((interval.low, interval.high))
    orders = list(itertools.permutations(range(4)))
    by_seed = [
        [stats.kendalltau(a, b[list(order)]).statistic for order in orders] for a, b in zip(left, right, strict=True)
    ]
    means = [sum(pair) / 2 for pair in itertools.product(*by_seed)]
    tails = [np.mean([sign * mean >= sign * effect.value - 1e-9 for mean in means]) for sign in (1, -1)]
    assert effect.p_value == pytest.approx(min(1.0, 2 * min(tails)))


def test_association_of_one_seed_and_four_cells_cannot_be_significant():
    effect = association(np.array([[4.0, 3, 2, 1]]), np.array([[1.0, 2, 3, 4]]))
    assert effect.value == pytest.approx(-1)
    assert (effect.low, effect.high) == (None, None)
    assert effect.p_value == pytest.approx(2 / 24) == pytest.approx(effect.smallest_p)


def test_association_draws_orders_where_there_are_too_many():
    left, right = np.tile([4.0, 3, 2, 1], (5, 1)), np.tile([1.0, 2, 3, 4], (5, 1))
    assert association(left, right).p_value < 1e-3
    assert association(left, right) == association(left, right)
    shuffled = np.random.default_rng(0).permuted(right, axis=1)
    assert association(left, shuffled).p_value > 0.05


def test_holm_by_hand():
    # Sorted: .005 * 4 = .02, .01 * 3 = .03, .03 * 2 = .06, .04 * 1 = .04, which may not fall below .06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.7, 0.6]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.randoms())
def test_holm_keeps_the_order_and_lies_between_p_and_bonferroni(p_values, random):
    corrected = holm(p_values)
    for p_value, after in zip(p_values, corrected, strict=True):
        assert p_value <= after + 1e-12
        assert after <= min(1.0, p_value * len(p_values)) + 1e-12
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    assert [corrected[i] for i in order] == sorted(corrected)
    random.shuffle(order)
    assert holm([p_values[i] for i in order]) == pytest.approx([corrected[i] for i in order])


def test_bootstrap_agrees_with_a_slow_loop():
    generator = np.random.default_rng(3)
    left, right = generator.random((3, 150)) < 0.60, generator.random((2, 150)) < 0.55
    difference = left.mean(0) - right.mean(0)
    draws = 4000
    slow = sum(difference[generator.integers(0, 150, 150)].mean() <= 1e-9 for _ in range(draws)) / draws
    not_better, not_worse = bootstrap_over_examples(left.astype(float), right.astype(float))
    assert 0.005 < slow < 0.5
    assert not_better == pytest.approx(slow, abs=4 * math.sqrt(slow * (1 - slow) / draws))
    assert not_better + not_worse >= 1  # ties count against either side


def test_bootstrap_is_repeatable_and_never_zero():
    ones, zeros = np.ones((1, 50)), np.zeros((1, 50))
    assert bootstrap_over_examples(ones, zeros) == bootstrap_over_examples(ones, zeros) == (1 / 10_001, 1.0)
    assert bootstrap_over_examples(ones, ones) == (1.0, 1.0)
