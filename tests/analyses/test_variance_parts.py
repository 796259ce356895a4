"""Spread between trainings and between draws."""

import math
from pathlib import Path

import numpy as np
import pytest

from tests.analyses.small_runs import add_scores, name_run
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.analyses.variance_parts import analyse, split_variance
from workflow_scripts.common.plug_ins import NoOptions


def trained(
    folder: Path, seed: int, values: dict[tuple[float, int], float], variant: str = "ft"
) -> TrainedRun:
    """values: (rate, draw) -> ConsistSyn."""
    rows = [("consistency", value, *where) for where, value in values.items()]
    rows += [(metric, 1.0, 0.25, 1) for metric in ("exact_match", "constrained_consistency")]
    names = ("metric", "value", "rate", "intervention_seed")
    scores = [{"intervention": "synonyms", **dict(zip(names, row, strict=True))} for row in rows]
    return add_scores(
        name_run(folder, "idm", "gpt2-small", variant, seed), scores, "interventions/scores.csv"
    )


def test_the_parts_of_two_seeds_and_two_draws(tmp_path):
    runs = [
        trained(tmp_path, 1, {(0.25, 1): 60, (0.25, 2): 64}),
        trained(tmp_path, 2, {(0.25, 1): 70, (0.25, 2): 72}),
    ]
    scores = {row.metric: row for row in analyse(runs, NoOptions()).scores}
    # Within: variances 8 and 2, mean 5. Means of seeds 62 and 71: variance 40.5. What neither seeds
    # nor draws explain is 0.5 in each place, one degree of freedom: variance 1, half of it in 40.5.
    assert scores["sd_draws"].value == pytest.approx(math.sqrt(5))
    assert scores["sd_training_seeds"].value == pytest.approx(math.sqrt(40))
    assert [scores[name].n for name in ("sd_draws", "sd_training_seeds")] == [2, 2]
    assert all(
        row.unit == "points" and row.rate == 0.25 and row.seed is None for row in scores.values()
    )


def test_one_training_seed_says_nothing_of_training_seeds(tmp_path):
    scores = analyse([trained(tmp_path, 1, {(0.25, 1): 60, (0.25, 2): 64})], NoOptions()).scores
    assert [row.metric for row in scores] == ["sd_draws"]


def test_a_seed_without_a_draw_is_left_out(tmp_path):
    whole = {(0.25, 1): 60, (0.25, 2): 64, (0.4, 1): 50}
    runs = [trained(tmp_path, 1, whole), trained(tmp_path, 2, {(0.25, 1): 70})]
    (row,) = analyse(runs, NoOptions()).scores
    assert (row.metric, row.rate, row.n, row.value) == (
        "sd_draws",
        0.25,
        2,
        pytest.approx(math.sqrt(8)),
    )


def test_variants_are_kept_apart(tmp_path):
    draws = {(0.25, 1): 60, (0.25, 2): 64}
    runs = [trained(tmp_path, 1, draws, variant) for variant in ("ft", "carma")]
    values = {row.subset: row.value for row in analyse(runs, NoOptions()).scores}
    assert values == pytest.approx(
        {"gpt2-small ft": math.sqrt(8), "gpt2-small carma": math.sqrt(8)}
    )


def test_variances_are_found_again():
    generator = np.random.default_rng(3)
    values = (
        60 + generator.normal(0, 3, size=(20_000, 1)) + generator.normal(0, 2, size=(20_000, 6))
    )
    assert split_variance(values) == (pytest.approx(9, rel=0.05), pytest.approx(4, rel=0.05))
    assert split_variance(np.array([[1.0, 3.0], [3.0, 1.0]])) == (0.0, 2.0)
    assert split_variance(np.array([[1.0], [3.0]])) == (None, None)


def test_what_all_trainings_have_in_common_of_a_draw_is_not_taken_from_that_of_the_seeds():
    """Draws replace the same words on every training; a nested model would find 7.3 here, not 9."""
    generator = np.random.default_rng(5)
    between_seeds = []
    for _ in range(2000):
        seeds = generator.normal(0, 3, size=(6, 1))
        draws = generator.normal(0, 3, size=(1, 6))
        values = 60 + seeds + draws + generator.normal(0, 1, size=(6, 6))
        parts = split_variance(values)
        assert parts.between_seeds is not None
        between_seeds.append(parts.between_seeds)
    assert np.mean(between_seeds) == pytest.approx(9, rel=0.05)
