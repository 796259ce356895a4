"""The learning rate against values worked by hand from the paper's schedule."""

import pytest

from workflow_scripts.training.schedule import inverse_square_root


@pytest.mark.parametrize(
    ("step", "rate"), [(1, 5e-4 / 4000), (1000, 1.25e-4), (4000, 5e-4), (16_000, 2.5e-4), (100_000, 1e-4)]
)
def test_it_rises_to_the_peak_and_falls_with_the_root(step, rate):
    assert inverse_square_root(step, 5e-4, 4000) == pytest.approx(rate, rel=1e-12)


def test_without_warm_up_it_starts_at_the_peak():
    assert [inverse_square_root(step, 1.0, 0) for step in (1, 4, 100)] == [1.0, 0.5, 0.1]
