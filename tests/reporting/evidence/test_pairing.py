"""Who is paired with whom, and the gains that are formed by it."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import VariantKey
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.evidence.pairing import (
    compute_difference,
    compute_gains,
    get_initial_weights,
)

ROOT = Path(__file__).parents[3]
VALUES = st.floats(-100, 100).map(lambda value: round(value, 3))


@pytest.mark.parametrize("scale", ["demo", "small", "full"])
def test_fine_tuned_models_of_one_parent_start_from_the_same_weights(scale):
    def weights(*variant):
        return get_initial_weights(load_catalogue(ROOT), VariantKey(*variant), scale)

    ours = weights("idm", "gpt2-small", "ft")
    assert weights("idm", "gpt2-small", "carma") == ours == weights("idm", "gpt2-small", "ft@start")
    assert len({ours, weights("idm", "llama-small", "ft"), weights("idm", "gpt2-large", "ft")}) == 3
    # Scores of given weights have the initial weights of the training that made them.
    bird = weights("bird", "cat", "comp@paws")
    assert (
        bird
        == weights("bird", "cat", "mix@paws")
        == weights("paws", "cat", "mix")
        == weights("bird", "cat", "mix@start")
    )
    assert bird != weights("bird", "bert", "ft@paws")
    # Random weights: equal for the same runs only.
    plain = weights("scan-jump-x2", "transformer", "default")
    assert (
        plain
        == "scan-jump-x2/transformer/default"
        != weights("scan-jump-x2", "sq-transformer", "sal")
    )


@given(st.dictionaries(st.integers(0, 9), st.tuples(VALUES, VALUES), min_size=2))
def test_the_paired_difference_is_scipys_and_that_of_the_gains(pairs):
    left, right = ({seed: pair[side] for seed, pair in pairs.items()} for side in (0, 1))
    effect = compute_difference(left, right, paired=True)
    rows = np.array(list(pairs.values()))
    assert effect.value == pytest.approx((rows[:, 0] - rows[:, 1]).mean(), abs=1e-9)
    if np.ptp(rows[:, 0] - rows[:, 1]) > 1e-6:
        interval = stats.ttest_rel(rows[:, 0], rows[:, 1]).confidence_interval(0.95)
        assert (effect.low, effect.high) == pytest.approx((interval.low, interval.high), abs=1e-6)
    assert np.mean(list(compute_gains(left, right, relative=False).values())) == pytest.approx(
        effect.value, abs=1e-9
    )


def test_paired_sides_are_compared_on_the_seeds_that_they_share():
    left, right = {1: 5.0, 2: 7.0, 3: 9.0}, {2: 5.0, 3: 8.0, 4: 100.0}
    effect = compute_difference(left, right, paired=True)
    assert (effect.value, effect.n) == (1.5, 2)
    assert compute_difference(left, right, paired=False).value == pytest.approx(7 - 113 / 3)
    with pytest.raises(UserError, match="share no seed; run the same seeds of both"):
        compute_difference(left, {8: 1.0, 9: 2.0}, paired=True)


def test_relative_gains_are_the_papers_normalised_improvement():
    # Section 5.2: Llama-3B, 62.86 against 62.22; the paper rounds to one digit.
    assert compute_gains({1: 62.86}, {1: 62.22}, relative=True)[1] == pytest.approx(
        1.0286, abs=1e-4
    )
    assert compute_gains({1: 50.0}, {1: 0.0}, relative=True) == {}
