"""The gain of the best of k validations, against every set of k and against draws."""

from itertools import combinations

import numpy as np
import pytest

from tests.analyses.small_runs import name_run
from workflow_scripts.analyses.choice_of_checkpoint import analyse, compute_expected_maximum
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_json
from workflow_scripts.training.history import write_history

# Updates 10 to 100: the first two are of the beginning, the last two of the falling rate.
VALUES = [1.0, 2.0, 40.0, 10.0, 10.0, 63.0, 0.0, 19.0, 70.0, 66.0]


def run(folder, values=VALUES, seed=1, decay_steps=20):
    made = name_run(folder, "scan", "plain", seed=seed)
    made.folder.mkdir()
    training = {"max_steps": 10 * len(values)} | ({"decay_steps": decay_steps} if decay_steps else {})
    write_json(made.folder / "run.json", {"spec": {"training": training}})
    history = [(10 * step, "valid_exact_match", value) for step, value in enumerate(values, start=1)]
    others = [(step, name, 99.0) for step, *_ in history for name in ("loss", "valid_in_distribution_exact_match")]
    write_history(made.folder / "training.csv", sorted([*history, *others]))
    return made


@pytest.mark.parametrize("values", [[3.0], [5.0, 1.0], [2.0, 2.0, 7.0, 0.0, 4.5], list(range(9))])
def test_the_expected_maximum_is_the_mean_over_all_sets(values):
    for k in range(1, len(values) + 1):
        every = [max(chosen) for chosen in combinations(values, k)]
        assert compute_expected_maximum(np.array(values), k) == pytest.approx(np.mean(every)), k


def test_scores_are_of_all_validations_and_gains_of_those_at_the_constant_rate(tmp_path):
    found = analyse([run(tmp_path)], {"after": 0.2, "draws": [2, 99]})
    values = {row["metric"]: (row["value"], row["n"], row["unit"]) for row in found.scores}
    draws = VALUES[2:8]
    mean = np.mean(draws)
    assert values["validation_best"] == (70, 10, "percent") and values["validation_last"] == (66, 1, "percent")
    assert values["validation_mean"] == (pytest.approx(mean), 6, "percent")
    assert values["gain_best_of_all"] == (pytest.approx(63 - mean), 6, "points")
    pairs = np.mean([max(pair) for pair in combinations(draws, 2)])
    assert values["gain_best_of_2"] == (pytest.approx(pairs - mean), 6, "points")
    assert len(values) == len(found.scores) == 5
    gains = found.files["gains"]
    assert gains["k"].tolist() == [1, 2, 3, 4, 5, 6] and gains["expected_maximum"].is_monotonic_increasing
    assert gains["gain"].iloc[0] == pytest.approx(0) and gains["expected_maximum"].iloc[-1] == 63


def test_without_a_constant_rate_the_draws_end_with_the_training(tmp_path):
    (_, _, mean, _) = analyse([run(tmp_path, decay_steps=0)], {}).scores
    assert (mean["metric"], mean["value"], mean["n"]) == ("validation_mean", pytest.approx(np.mean(VALUES[2:])), 8)


def test_a_run_with_one_draw_has_no_gain(tmp_path):
    runs = [run(tmp_path, VALUES[:3]), run(tmp_path, VALUES, seed=2)]
    found = analyse(runs, {"after": 0.0, "draws": []})
    assert found.notes == ["scan/plain/default/seed-1: 1 validations between updates 0 and 10; no gain"]
    assert {row["metric"] for row in found.scores if row["seed"] == 1} == {"validation_best", "validation_last"}
    assert set(found.files["gains"]["seed"]) == {2}


def test_a_name_that_no_validation_has_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"training.csv has no validation called valid_f1; correct .* `name`"):
        analyse([run(tmp_path)], {"name": "valid_f1"})
