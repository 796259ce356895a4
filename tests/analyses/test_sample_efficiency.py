"""The mean gain from more data is that of the differences of neighbours."""

import numpy as np
import pytest

from tests.analyses.small_runs import add_scores, name_run
from workflow_scripts.analyses.options.sample_efficiency import Options
from workflow_scripts.analyses.sample_efficiency import analyse
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as

TASKS = ["a-10pc", "a-30pc", "a-50pc"]
VALUES = {"a-10pc": 60.0, "a-30pc": 71.0, "a-50pc": 65.0}


def run(folder, task, value, split="test"):
    rows = [
        ("all", "mix", split, value),
        ("all", "constant", split, 50.0),
        ("some", "mix", split, 1.0),
    ]
    rows.append(("all", "mix", "other", 2.0))
    names = ("subset", "readout", "split", "value")
    scores = [{"metric": "accuracy", **dict(zip(names, row, strict=True))} for row in rows]
    return add_scores(name_run(folder, task, "cat", "mix"), scores)


def test_mean_of_neighbours(tmp_path):
    runs = [run(tmp_path, task, VALUES[task]) for task in TASKS[::-1]]
    (row,) = analyse(runs, Options(sizes={"A": TASKS})).scores
    assert row.value == pytest.approx(np.diff(list(VALUES.values())).mean())
    assert (row.task, row.readout, row.n, row.unit) == ("a-50pc", "mix", 2, "points")


def test_several_readouts_come_in_the_order_of_the_scores(tmp_path):
    """Not in that of a set, which differs from process to process."""
    readouts = ["mix", "cont", "comp", "last", "first", "best"]
    runs = []
    for task, value in (("a-10pc", 1.0), ("a-50pc", 3.0)):
        columns = {"subset": "all", "split": "test", "metric": "accuracy"}
        scores = [{**columns, "readout": name, "value": value} for name in readouts]
        runs.append(add_scores(name_run(tmp_path, task, "cat", "mix"), scores))
    rows = analyse(runs, Options(sizes={"A": ["a-10pc", "a-50pc"]})).scores
    assert [row.readout for row in rows] == readouts


def test_another_split_without_the_sizes_between(tmp_path):
    runs = [
        run(tmp_path, task, VALUES[task], split="in_distribution") for task in ("a-10pc", "a-50pc")
    ]
    (row,) = analyse(runs, Options(sizes={"A": TASKS}, split={"A": "in_distribution"})).scores
    assert row.value == pytest.approx(2.5)


def test_an_end_that_is_missing_is_noted(tmp_path):
    analysis = analyse(
        [run(tmp_path, "a-10pc", 60.0), run(tmp_path, "a-30pc", 61.0)], Options(sizes={"A": TASKS})
    )
    assert not analysis.scores and analysis.notes == ["a-10pc/cat/mix/seed-1: not run on a-50pc"]


def test_one_size_is_refused():
    with pytest.raises(UserError, match=r"key 'sizes\.A' is \['a'\]; .* at least 2 items"):
        parse_as(Options, {"sizes": {"A": ["a"]}}, "displays.yaml")
