"""Scores from kept predictions are those of the evaluation, and other predictions are refused."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.training.sentence_toy import sentence_spec, write_encoder, write_pairs
from tests.training.toy import run_main
from workflow_scripts.tasks.sentence_prediction.rescoring import score_predictions
from workflow_scripts.tasks.settings import Evaluation

SETTINGS = Evaluation(splits=["test"], batch_tokens=512)


@pytest.fixture(scope="module", params=["classes", "scores"])
def scored(request, tmp_path_factory) -> Path:
    """A folder with data/ and eval/: a short training, scored on its test split."""
    folder = tmp_path_factory.mktemp("rescored")
    has_scores = request.param == "scores"
    metric = "pearson" if has_scores else "accuracy"
    data = write_pairs(folder / "data", scores=has_scores)
    spec = sentence_spec(steps=50, training={"validation": {"split": "valid", "metric": metric}})
    places = {"init": write_encoder(folder / "init"), "state": folder / "state"}
    assert run_main("train", spec=spec, data=data, out=folder / "run", **places) == 0
    settings = SETTINGS.model_dump()
    assert (
        run_main(
            "evaluate", run_dir=folder / "run", data=data, out=folder / "eval", settings=settings
        )
        == 0
    )
    return folder


def read_predictions(folder: Path) -> pa.Table:
    return pq.read_table(folder / "eval/predictions.parquet")


def rescore(folder: Path, predictions: pa.Table) -> dict[tuple[str, str], float]:
    """(subset, metric) -> value."""
    rows = score_predictions(predictions, folder / "data", "test", SETTINGS, frozenset())
    return {(row.subset, row.metric): row.value for row in rows}


def test_scores_are_those_of_the_evaluation(scored):
    scores = pd.read_csv(scored / "eval/scores.csv").query("metric != 'zero_states'")
    expected = scores.set_index(["subset", "metric"])["value"].to_dict()
    assert {subset for subset, _ in expected} == {"all", "long"}
    assert rescore(scored, read_predictions(scored)) == pytest.approx(expected, abs=1e-12)


def test_the_order_of_predictions_and_their_own_subsets_do_not_matter(scored):
    predictions = read_predictions(scored)
    backwards = predictions.take(list(range(len(predictions)))[::-1])
    subset = backwards.column_names.index("subset")
    renamed = backwards.set_column(subset, "subset", pa.array(["long"] * len(backwards)))
    expected = rescore(scored, predictions)
    assert rescore(scored, renamed) == pytest.approx(expected, abs=1e-12)


def test_predictions_of_other_items_are_refused(scored):
    predictions = read_predictions(scored)
    item = predictions.column_names.index("item")
    others = pc.binary_join_element_wise("x", predictions["item"], "")
    wrong = {
        "repeated": pa.concat_tables([predictions, predictions.slice(0, 1)]),
        "repeated instead of another": pa.concat_tables(
            [predictions.slice(1), predictions.slice(1, 1)]
        ),
        "missing": predictions.slice(1),
        "none": predictions.slice(0, 0),
        "others": predictions.set_column(item, "item", others),
    }
    for table in wrong.values():
        with pytest.raises(ValueError, match="not those of the 60 items of test"):
            rescore(scored, table)
