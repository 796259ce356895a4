"""The learning rate against values worked by hand from the paper's schedule."""

import pytest

from workflow_scripts.tasks.settings import Training
from workflow_scripts.training.loop import learning_rate
from workflow_scripts.training.schedule import constant, constant_then_linear, inverse_square_root


def training_settings(**given: object) -> Training:
    common = {"batch_tokens": 1, "betas": (0.9, 0.98), "adam_epsilon": 1e-8, "weight_decay": 0.0, "clip_norm": 0.0}
    validation = {"validate_every": 5, "validation": {"split": "valid", "metric": "exact_match"}}
    return Training(**common, **validation, log_every=5, torch_threads=1, **given)


@pytest.mark.parametrize(
    ("step", "rate"), [(1, 5e-4 / 4000), (1000, 1.25e-4), (4000, 5e-4), (16_000, 2.5e-4), (100_000, 1e-4)]
)
def test_it_rises_to_the_peak_and_falls_with_the_root(step, rate):
    assert inverse_square_root(step, 5e-4, 4000) == pytest.approx(rate, rel=1e-12)


def test_without_warm_up_it_starts_at_the_peak():
    assert [inverse_square_root(step, 1.0, 0) for step in (1, 4, 100)] == [1.0, 0.5, 0.1]


@pytest.mark.parametrize(("step", "rate"), [(1, 0.004), (250, 1.0), (500, 2.0), (501, 2.0), (15_000, 2.0)])
def test_a_constant_rate_stays_at_its_peak(step, rate):
    assert constant(step, 2.0, 500) == pytest.approx(rate, rel=1e-12)


@pytest.mark.parametrize(
    ("step", "rate"), [(250, 1.0), (500, 2.0), (10_501, 2.0), (12_751, 1.0), (14_551, 0.2), (15_000, 2 / 4500)]
)
def test_a_constant_rate_may_fall_to_0_at_the_end(step, rate):
    assert constant_then_linear(step, 2.0, 500, 4500, 15_000) == pytest.approx(rate, rel=1e-12)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ({"schedule": "constant"}, [0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ({"schedule": "constant_then_linear", "decay_steps": 4}, [0.5, 1.0, 1.0, 1.0, 1.0, 0.75, 0.5, 0.25]),
        ({"schedule": "linear"}, [0.0, 0.5, 1.0, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]),
    ],
)
def test_the_settings_choose_the_schedule(schedule, expected):
    settings = training_settings(max_steps=8, learning_rate=1.0, warmup_steps=2, **schedule)
    assert [learning_rate(settings, step) for step in range(1, 9)] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ({"schedule": "constant_then_linear"}, "give decay_steps with constant_then_linear"),
        ({"schedule": "constant", "decay_steps": 3}, "give decay_steps with constant_then_linear"),
        ({"schedule": "constant_then_linear", "decay_steps": 9}, "decay_steps is 9, more than max_steps 8"),
    ],
)
def test_a_fall_that_does_not_fit_is_refused(schedule, message):
    with pytest.raises(ValueError, match=message):
        training_settings(max_steps=8, learning_rate=1.0, warmup_steps=2, **schedule)
