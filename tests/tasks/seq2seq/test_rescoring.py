"""Scores from kept outputs are those of the evaluation, and other outputs are refused."""

import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.training.toy import run_main
from workflow_scripts.tasks.seq2seq.rescoring import score_predictions
from workflow_scripts.tasks.seq2seq.settings import Seq2SeqEvaluation

METRICS = {"exact_match", "structure_match", "bleu"}


@pytest.fixture(scope="module")
def scored(trained, tmp_path_factory) -> Path:
    """A folder with data/, whose subsets are a group, and eval/."""
    folder = tmp_path_factory.mktemp("rescored")
    shutil.copytree(trained / "data", folder / "data")
    settings = make_settings().model_dump(exclude_defaults=True)
    places = {"run_dir": trained / "out", "data": folder / "data", "out": folder / "eval"}
    assert run_main("evaluate", settings=settings, **places) == 0
    return folder


def make_settings(joined: str = "text") -> Seq2SeqEvaluation:
    return Seq2SeqEvaluation(
        splits=["test"],
        beam=1,
        max_length=12,
        batch_tokens=60,
        joined=joined,
        same_word="[A-Z]+",
        measures={"bleu": {"bleu": {"tokenize": "char"}}},
    )


def read_predictions(folder: Path) -> pa.Table:
    return pq.read_table(folder / "eval/predictions.parquet")


def rescore(
    folder: Path, predictions: pa.Table, metrics: set[str] = METRICS, joined: str = "text"
) -> dict[tuple[str, str], float]:
    """(subset, metric) -> value."""
    settings = make_settings(joined)
    rows = score_predictions(predictions, folder / "data", "test", settings, metrics)
    return {(row.subset, row.metric): row.value for row in rows}


def read_scores(folder: Path) -> dict[tuple[str, str], float]:
    scores = pd.read_csv(folder / "eval/scores.csv")
    chosen = scores[scores["metric"].isin(METRICS)]
    return chosen.set_index(["subset", "metric"])["value"].to_dict()


def test_scores_by_prepared_data_are_those_of_the_evaluation(scored):
    expected = read_scores(scored)
    assert {metric for _, metric in expected} == METRICS
    assert {subset for subset, _ in expected} >= {"all", "both", "short", "long"}
    predictions = read_predictions(scored)
    assert rescore(scored, predictions) == pytest.approx(expected, abs=1e-12)
    backwards = predictions.take(list(range(len(predictions)))[::-1])
    assert rescore(scored, backwards) == pytest.approx(expected, abs=1e-12)


def test_only_measures_that_are_asked_for_are_computed(scored):
    found = rescore(scored, read_predictions(scored), {"exact_match"})
    expected = {key: value for key, value in read_scores(scored).items() if key[1] == "exact_match"}
    assert found == pytest.approx(expected, abs=1e-12)


def test_targets_without_their_data_have_exact_match_of_tokens_alone(scored, tmp_path):
    """As an export keeps them: dataset.json, which says how outputs are joined, is not there."""
    (tmp_path / "data").mkdir()
    shutil.copy(scored / "data/test.parquet", tmp_path / "data/test.parquet")
    predictions = read_predictions(scored)
    assert rescore(tmp_path, predictions) == {}
    targets = pd.read_parquet(scored / "data/test.parquet")
    right = predictions["prediction"].to_pandas() == targets["target"]
    found = rescore(tmp_path, predictions, {"exact_match"}, joined="tokens")
    assert found["all", "exact_match"] == pytest.approx(100 * right.mean())
    assert found["short", "exact_match"] == pytest.approx(
        100 * right[targets["subset"] == "short"].mean()
    )


def test_outputs_for_other_rows_are_refused(scored):
    predictions = read_predictions(scored)
    rows = len(predictions)
    wrong = {
        "repeated": pa.concat_tables([predictions, predictions.slice(0, 1)]),
        "repeated instead of another": pa.concat_tables(
            [predictions.slice(1), predictions.slice(1, 1)]
        ),
        "missing": predictions.slice(1),
        "none": predictions.slice(0, 0),
    }
    for table in wrong.values():
        with pytest.raises(ValueError, match=f"not those of the {rows} rows of test"):
            rescore(scored, table)
