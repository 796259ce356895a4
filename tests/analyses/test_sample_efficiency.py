"""The mean gain from more data is that of the differences of neighbours."""

import numpy as np
import pytest

from workflow_scripts.analyses.sample_efficiency import analyse
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.errors import UserError
from workflow_scripts.evaluation.scores import write_scores

TASKS = ["a-10pc", "a-30pc", "a-50pc"]
VALUES = {"a-10pc": 60.0, "a-30pc": 71.0, "a-50pc": 65.0}


def run(folder, task, value, seed=1, split="test"):
    made = TrainedRun(task, "cat", "mix", seed, "reduced", folder / f"{task}-{seed}", folder)
    (made.folder / "eval").mkdir(parents=True)
    row = {**made.columns, "split": split, "metric": "accuracy", "unit": "percent", "n": 9, "protocol": "reduced"}
    rows = [
        row | {"subset": "all", "readout": "mix", "value": value},
        row | {"subset": "all", "readout": "constant", "value": 50.0},
        row | {"subset": "some", "readout": "mix", "value": 1.0},
        row | {"subset": "all", "readout": "mix", "value": 2.0, "split": "other"},
    ]
    write_scores(made.folder / "eval/scores.csv", rows)
    return made


def test_mean_of_neighbours(tmp_path):
    runs = [run(tmp_path, task, VALUES[task]) for task in TASKS[::-1]]
    (row,) = analyse(runs, {"sizes": {"A": TASKS}}).scores
    assert row["value"] == pytest.approx(np.diff(list(VALUES.values())).mean())
    assert (row["task"], row["readout"], row["n"], row["unit"]) == ("a-50pc", "mix", 2, "points")


def test_another_split(tmp_path):
    runs = [run(tmp_path, task, VALUES[task], split="in_distribution") for task in TASKS]
    (row,) = analyse(runs, {"sizes": {"A": TASKS}, "split": {"A": "in_distribution"}}).scores
    assert row["value"] == pytest.approx(2.5)


def test_the_sizes_between_do_not_count(tmp_path):
    (row,) = analyse([run(tmp_path, "a-10pc", 60.0), run(tmp_path, "a-50pc", 61.0)], {"sizes": {"A": TASKS}}).scores
    assert row["value"] == 0.5


def test_an_end_that_is_missing_is_noted(tmp_path):
    analysis = analyse([run(tmp_path, "a-10pc", 60.0), run(tmp_path, "a-30pc", 61.0)], {"sizes": {"A": TASKS}})
    assert not analysis.scores and analysis.notes == ["a-10pc/cat/mix/seed-1: not run on a-50pc"]


def test_one_size_is_refused():
    with pytest.raises(UserError, match=r"option sizes\.A has 1 tasks; a gain needs two"):
        analyse([], {"sizes": {"A": ["a"]}})
