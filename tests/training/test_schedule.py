"""The learning rate against values worked by hand from the paper's schedule."""

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.training.optimiser import compute_learning_rate
from workflow_scripts.training.settings import Training


def training_settings(**given: object) -> Training:
    common = {
        "batch_tokens": 1,
        "betas": (0.9, 0.98),
        "adam_epsilon": 1e-8,
        "weight_decay": 0.0,
        "clip_norm": 0.0,
    }
    validation = {"validate_every": 5, "validation": {"split": "valid", "metric": "exact_match"}}
    return Training(**common, **validation, log_every=5, torch_threads=1, **given)


WARM_UP = {"learning_rate": 2.0, "warmup_steps": 500, "max_steps": 15_000}
ROOT = {"learning_rate": 5e-4, "warmup_steps": 4000, "max_steps": 100_000}
FALLING = {"schedule": "constant_then_linear", "decay_steps": 4500}


@pytest.mark.parametrize(
    ("given", "rates"),
    [
        (ROOT, {1: 5e-4 / 4000, 1000: 1.25e-4, 4000: 5e-4, 16_000: 2.5e-4, 100_000: 1e-4}),
        ({"learning_rate": 1.0, "warmup_steps": 0, "max_steps": 100}, {1: 1.0, 4: 0.5, 100: 0.1}),
        (WARM_UP | {"schedule": "constant"}, {1: 0.004, 250: 1.0, 500: 2.0, 501: 2.0, 15_000: 2.0}),
        (
            WARM_UP | FALLING,
            {250: 1.0, 500: 2.0, 10_501: 2.0, 12_751: 1.0, 14_551: 0.2, 15_000: 2 / 4500},
        ),
        (
            {"schedule": "linear", "learning_rate": 1.0, "warmup_steps": 2, "max_steps": 8},
            {1: 0.0, 2: 0.5, 3: 1.0, 4: 5 / 6, 5: 4 / 6, 8: 1 / 6},
        ),
    ],
)
def test_the_rate_is_that_of_the_schedule(given, rates):
    settings = training_settings(**given)
    assert {step: compute_learning_rate(settings, step) for step in rates} == pytest.approx(
        rates, rel=1e-12
    )


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ({"schedule": "constant_then_linear"}, "give decay_steps with constant_then_linear"),
        ({"schedule": "constant", "decay_steps": 3}, "give decay_steps with constant_then_linear"),
        (
            {"schedule": "constant_then_linear", "decay_steps": 9},
            "decay_steps is 9, more than max_steps 8",
        ),
    ],
)
def test_a_fall_that_does_not_fit_is_refused(schedule, message):
    with pytest.raises(ValueError, match=message):
        training_settings(max_steps=8, learning_rate=1.0, warmup_steps=2, **schedule)


@pytest.mark.parametrize(
    "lengths", [{}, {"max_steps": 8, "epochs": 2}, {"max_steps": None, "epochs": None}]
)
def test_either_steps_or_epochs_are_given(lengths):
    with pytest.raises(ValueError, match="give one of the two"):
        training_settings(learning_rate=1.0, warmup_steps=2, **lengths)


def test_epochs_are_steps_of_the_data_at_hand():
    """Three epochs of four batches: a warm-up of a quarter, then linear to 0 over the other nine
    steps.
    """
    epochs = {
        "epochs": 3,
        "warmup_fraction": 0.25,
        "warmup_steps": 500,
        "schedule": "linear",
        "learning_rate": 1.0,
    }
    settings = training_settings(**epochs).count_steps(4)
    assert (settings.max_steps, settings.epochs, settings.warmup, settings.validate_every) == (
        12,
        None,
        3,
        5,
    )
    found = [compute_learning_rate(settings, step) for step in range(1, 13)]
    assert found == pytest.approx([0, 1 / 3, 2 / 3, *(n / 9 for n in range(9, 0, -1))])
    assert settings.count_steps(7) == settings  # steps stay steps


def test_validation_at_the_end_of_each_epoch():
    common = {"warmup_steps": 0, "learning_rate": 1.0}
    given = [training_settings(**common, **length) for length in ({"epochs": 3}, {"max_steps": 10})]
    by_epoch = [
        each.model_copy(update={"validate_every": "epoch"}).count_steps(4) for each in given
    ]
    assert [(each.max_steps, each.validate_every) for each in by_epoch] == [(12, 4), (10, 4)]


def test_a_fall_that_is_longer_than_the_epochs_is_one_line():
    settings = training_settings(
        epochs=2, learning_rate=1.0, warmup_steps=0, **FALLING | {"decay_steps": 9}
    )
    assert settings.count_steps(5).max_steps == 10
    with pytest.raises(
        UserError, match="decay_steps is 9, more than the 8 steps of 2 epochs; lower it"
    ):
        settings.count_steps(4)
