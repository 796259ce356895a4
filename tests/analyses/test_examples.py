"""Single pairs of a paper, found in the data whatever their spelling, with what runs say of them."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.preparing import prepare_data, write_data
from workflow_scripts.analyses.examples import analyse
from workflow_scripts.analyses.options.examples import Options
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets import bird

ITEMS = {
    "Safety officer": ["Safety officer", "Security guard"],
    "Water body": ["Water body", "Body water"],
}
ITEMS["Elsewhere"] = ["No such", "pair"]


@pytest.fixture
def run(tmp_path, mirror):
    made = prepare_data(bird, {"set": "all"}, {"bird/BiRD.txt": mirror / "bird/BiRD.txt"})
    spec = {
        "task": "bird",
        "prepare": bird.__name__,
        "options": {},
        "sources": [],
        "protocol": "paper",
    }
    write_data(made, spec, tmp_path / "data")
    table = {
        "item": ["safety officer/security guard", "water body/body water", "other"],
        "split": ["test"] * 3,
    }
    table |= {"readout": ["mix"] * 3, "prediction": [0.25, 0.5, 0.75]}
    (tmp_path / "run/eval").mkdir(parents=True)
    pq.write_table(pa.table(table), tmp_path / "run/eval/predictions.parquet")
    return TrainedRun("bird", "cat", "mix@paws", 3, "paper", tmp_path / "run", tmp_path / "data")


def test_pairs_of_table_1(run):
    analysis = analyse([run], Options(items=ITEMS))
    said = {(row.metric, row.subset): row for row in analysis.scores}
    # The human scores that the paper prints.
    assert (
        said["label", "Safety officer"].value == 0.881
        and said["label", "Water body"].value == 0.381
    )
    assert said["prediction", "Safety officer"].value == 0.25
    expected = {"value": 0.5, "seed": 3, "readout": "mix", "unit": "score"}
    assert said["prediction", "Water body"].has(expected)
    assert said["label", "Water body"].seed is None and len(said) == 4
    assert analysis.notes == ["bird has no pair 'Elsewhere'"]


def test_a_run_that_is_not_evaluated_is_named(run):
    (run.folder / "eval/predictions.parquet").unlink()
    with pytest.raises(
        UserError, match=r"predictions\.parquet does not exist; evaluate bird/cat/mix@paws/seed-3"
    ):
        analyse([run], Options(items=ITEMS))
