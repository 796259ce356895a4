"""Means and gains against numbers that are worked out by hand."""

import pytest

from tests.analyses.small_runs import add_scores, name_run
from workflow_scripts.analyses.mean_scores import analyse
from workflow_scripts.analyses.options.mean_scores import Options
from workflow_scripts.evaluation.scores import Score

MODELS = {"bert": ("BERT", "last"), "cat": ("CAT", "mix")}  # by method: series and readout
ONE = {"task": "a", "split": "test", "subset": "all", "metric": "accuracy"}
MEANS = {"both": [ONE | {"subset": "swap"}, ONE | {"task": "b", "metric": "pearson"}], "one": [ONE]}
OPTIONS = Options(means=MEANS)
WITH_GAINS = Options(means=MEANS, over={"CAT": ["BERT"]})


def run(folder, task, method, variant, seed, protocol="paper", **values):
    series, readout = MODELS[method]
    rows = []
    for name, value in values.items():
        metric, subset = name.split("_")
        row = {"split": "test", "metric": metric, "subset": subset}
        rows += [
            row | {"readout": readout, "value": value},
            row | {"readout": "another", "value": -1.0},
        ]
    return add_scores(
        name_run(folder, task, method, variant, seed, protocol, series=series, readout=readout),
        rows,
    )


@pytest.fixture
def runs(tmp_path):
    return [
        run(tmp_path, "a", "bert", "ft", 1, accuracy_swap=60.0, accuracy_all=70.0),
        run(tmp_path, "a", "bert", "ft", 2, accuracy_swap=64.0, accuracy_all=71.0),
        run(tmp_path, "b", "bert", "b-ft", 1, "reduced", pearson_all=20.0),
        run(tmp_path, "b", "bert", "b-ft", 2, pearson_all=10.0),
        run(tmp_path, "a", "cat", "mix", 1, accuracy_swap=70.0, accuracy_all=75.0),
        run(tmp_path, "a", "cat", "mix", 2, accuracy_swap=70.0, accuracy_all=80.0),
        run(tmp_path, "b", "cat", "mix", 1, pearson_all=30.0),
    ]


def by_key(found) -> dict[tuple, Score]:
    return {(row.item_set, row.method, row.seed): row for row in found.scores}


def test_means_by_seed(runs):
    rows = by_key(analyse(runs, OPTIONS))
    expected = {("both", "bert", 1): 40.0, ("both", "bert", 2): 37.0, ("both", "cat", 1): 50.0}
    expected |= {
        ("one", "bert", 1): 70.0,
        ("one", "bert", 2): 71.0,
        ("one", "cat", 1): 75.0,
        ("one", "cat", 2): 80.0,
    }
    assert {key: row.value for key, row in rows.items()} == expected
    bert = rows["both", "bert", 1]
    assert (bert.task, bert.variant, bert.n, bert.readout) == ("a", "ft", 2, "last")
    assert [getattr(bert, name) for name in ("metric", "unit", "protocol", "subset")] == [
        "mean",
        "percent",
        "reduced",
        "all",
    ]
    assert rows["one", "cat", 1].protocol == "paper"


def test_models_of_one_readout_name_none(tmp_path):
    row = {"split": "test", "metric": "exact_match", "value": 5.0}
    made = add_scores(
        name_run(tmp_path, "a", "lrf"), [row | {"subset": subset} for subset in ("all", "NP")]
    )
    means = {"m": [{"task": "a", "split": "test", "subset": "all", "metric": "exact_match"}]}
    (found,) = analyse([made], Options(means=means)).scores
    assert (found.value, found.readout, found.item_set) == (5.0, None, "m")


def test_gains_by_seed(runs):
    rows = by_key(analyse(runs, WITH_GAINS))
    expected = {("both", "cat", 1): 10.0, ("one", "cat", 1): 5.0, ("one", "cat", 2): 9.0}
    assert {key: row.value for key, row in rows.items()} == expected
    # No better than the worse of its two sides.
    assert rows["both", "cat", 1].protocol == "reduced"
    assert {(row.metric, row.unit, row.subset) for row in rows.values()} == {
        ("gain", "points", "over BERT")
    }


def test_what_lacks_a_score_has_no_mean_and_no_gain(runs):
    some = [made for made in runs if made.task == "a"]
    found = analyse(some, OPTIONS)
    assert {row.item_set for row in found.scores} == {"one"}
    assert found.notes == [
        f"both: not all of its scores are there for {name}" for name in ("BERT", "CAT")
    ]
    found = analyse(some, WITH_GAINS)
    assert found.notes == ["both: not all of its scores are there for CAT and BERT"]
