"""The bootstrap over examples, from predictions.parquet."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.reporting.made_up import write_run
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_json
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.evaluation.statistics import Effect
from workflow_scripts.reporting.evidence.selected_scores import ScoreSelection
from workflow_scripts.reporting.tables import item_bootstrap
from workflow_scripts.reporting.tables.cells import Cell
from workflow_scripts.reporting.tables.item_bootstrap import (
    ExampleTest,
    compare_with,
    read_correctness,
)


def cell(
    row, method, seeds=(1, 2), protocol="reduced", subset="all", metric="exact_match", values=None
):
    selection = ScoreSelection(
        task="cogs", method=method, variant="a", split="test", subset=subset, metric=metric
    )
    values = dict(
        zip(seeds, values or {"plain": (39.0, 41.0), "new": (69.0, 71.0)}[method], strict=False)
    )
    return Cell(
        "p",
        "d",
        row,
        subset,
        metric,
        "percent",
        2,
        "measured",
        "",
        None,
        selection,
        seeds=values,
        protocol=protocol,
    )


@pytest.fixture
def results(tmp_path):
    for method, accuracy in (("plain", 40), ("new", 70)):
        for seed in (1, 2):
            write_run(tmp_path, Run("cogs", method, "a", seed), accuracy, ["prim", "cp", "pp"], 100)
    write_json(tmp_path / "data/cogs/dataset.json", {"subset_groups": {"deep": ["cp", "pp"]}})
    return tmp_path


def test_better_and_worse_than_the_baseline(results):
    cells = [cell("Plain", "plain"), cell("New", "new"), cell("Same", "plain")]
    tests = compare_with("Plain", cells, ScaleFolder(results))
    assert tests.keys() == {"d/New/all/exact_match", "d/Same/all/exact_match"}
    assert (tests[cells[1].key].outcome, tests[cells[1].key].examples) == ("better", 300)
    assert tests[cells[2].key].outcome == ""
    assert (
        compare_with("New", cells, ScaleFolder(results))["d/Plain/all/exact_match"].outcome
        == "worse"
    )


def test_what_is_not_tested(results):
    baseline = cell("Plain", "plain")
    others = [cell("New", "new", protocol="stand_in"), cell("BLEU", "new", metric="bleu")]
    others.append(cell("Other column", "new", subset="cp"))
    assert compare_with("Plain", [baseline, *others], ScaleFolder(results)) == {}
    assert compare_with("Nobody", [baseline, cell("New", "new")], ScaleFolder(results)) == {}


def test_a_difference_over_examples_alone_is_no_difference(results):
    baseline, tests = cell("Plain", "plain"), {}
    for name, values in (
        ("Seeds differ", (30.0, 110.0)),
        ("One seed", (70.0,)),
        ("Both", (69.0, 71.0)),
    ):
        other = cell(name, "new", seeds=(1, 2)[: len(values)], values=values)
        tests[name] = compare_with("Plain", [baseline, other], ScaleFolder(results))[other.key]
    assert {test.over_examples for test in tests.values()} == {"better"}
    assert [test.outcome for test in tests.values()] == ["", "", "better"]


def test_the_same_start_pairs_the_seeds(results):
    cells = [
        replace(cell("Plain", "plain"), weights="parent"),
        replace(cell("New", "new"), weights="parent"),
    ]
    assert (
        "within seeds"
        in compare_with("Plain", cells, ScaleFolder(results))[cells[1].key].over_seeds.method
    )
    cells[1] = replace(cells[1], weights="other")
    assert (
        "independent"
        in compare_with("Plain", cells, ScaleFolder(results))[cells[1].key].over_seeds.method
    )


@pytest.mark.parametrize(("subset", "examples"), [("all", 300), ("cp", 100), ("deep", 200)])
def test_subsets_and_groups_of_subsets(results, subset, examples):
    found = read_correctness(ScaleFolder(results), cell("New", "new", subset=subset))
    assert found.shape == (2, examples)
    assert set(np.unique(found)) == {0.0, 1.0}


def test_examples_are_those_of_the_checkpoint_that_the_cell_is_of(results):
    write_run(results, Run("cogs", "kept", "a", 1), 40, ["prim"], 300, readouts={"last": 90.0})
    own = cell("Kept", "kept", seeds=(1,), values=(40.0,))
    last = replace(own, selection=replace(own.selection, readout="last"))
    first, second = (
        read_correctness(ScaleFolder(results), own),
        read_correctness(ScaleFolder(results), last),
    )
    assert first.shape == second.shape == (1, 300) and first.mean() < 0.5 and second.mean() > 0.8


def test_examples_of_seeds_are_paired_by_their_row_not_by_their_place_in_the_file(results):
    in_order = read_correctness(ScaleFolder(results), cell("New", "new"))
    file = ScaleFolder(results).run(Run("cogs", "new", "a", 2)).evaluation.predictions
    table = pq.read_table(file)
    assert 0 < in_order[1].mean() < 1
    pq.write_table(table.take(list(range(len(table)))[::-1]), file)
    item_bootstrap._read_predictions.cache_clear()
    assert np.array_equal(read_correctness(ScaleFolder(results), cell("New", "new")), in_order)


def test_unknown_subsets_and_unlike_data_are_refused(results):
    with pytest.raises(
        UserError, match=r"predictions.parquet has no examples of split test, subset typo"
    ):
        read_correctness(ScaleFolder(results), cell("New", "new", subset="typo"))
    write_run(results, Run("cogs", "new", "a", 3), 70, ["prim"], 7)
    cells = [cell("Plain", "plain"), cell("New", "new", seeds=(3,))]
    with pytest.raises(UserError, match=r"7 examples against 300 of Plain"):
        compare_with("Plain", cells, ScaleFolder(results))


def test_missing_and_broken_predictions_are_named(results):
    with pytest.raises(
        UserError, match=r"seed-9/eval/predictions.parquet does not exist; pass an existing file"
    ):
        read_correctness(ScaleFolder(results), cell("New", "new", seeds=(9,)))
    (results / "runs/cogs/new/a/seed-1/eval/predictions.parquet").write_bytes(b"not this")
    with pytest.raises(UserError, match=r"seed-1/eval/predictions.parquet is no Parquet file"):
        read_correctness(ScaleFolder(results), cell("New", "new", seeds=(1,)))


def test_the_papers_level():
    up, down = Effect(2.0, 0.1, 2.0, 3, ""), Effect(-2.0, 0.1, 2.0, 3, "")
    assert ExampleTest(0.0099, 1.0, 9, up).outcome == "better"
    assert ExampleTest(0.01, 0.99, 9, up).outcome == ""
    assert ExampleTest(1.0, 0.0001, 9, down).outcome == "worse"
    assert (
        ExampleTest(1.0, 0.0001, 9, up).outcome == ExampleTest(0.0001, 1.0, 9, down).outcome == ""
    )
