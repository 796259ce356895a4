"""Constant answers to prompts and source sentences, counted by hand."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.reporting.reference import rows_of
from workflow_scripts.analyses.constant_answers import analyse
from workflow_scripts.analyses.options.constant_answers import Options
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, write_json


@pytest.fixture
def run(tmp_path: Path) -> TrainedRun:
    """Ten test prompts, nine of them answered; `cut` is most frequent in training, `close` in the
    test set.
    """
    data, folder = tmp_path / "data", tmp_path / "run"
    data.mkdir()
    (folder / "eval").mkdir(parents=True)
    answers = ["close"] * 3 + ["cut"] * 2 + ["ad"] * 2 + ["roll", "fall", "two words"]
    for split, labels in (("train", ["cut"] * 4 + ["close"] * 2 + ["ad"]), ("test", answers)):
        table = {"item": [f"{split}-{i}" for i in range(len(labels))], "label": labels}
        pq.write_table(pa.table(table), data / f"{split}.parquet")
    items = [f"test-{i}" for i in range(9)]
    predictions = {
        "split": ["test"] * 18 + ["valid"],
        "item": [*items, *items, "valid-0"],
        "prediction": ["x"] * 19,
    }
    pq.write_table(pa.table(predictions), folder / "eval/predictions.parquet")
    return TrainedRun("idm", "gpt2-small", "ft", 1, "reduced", folder, data)


def test_both_constant_answers_are_scored_on_the_prompts_that_the_model_answered(run: TrainedRun):
    analysis = analyse([run, run], Options())
    found = {row.readout: (row.value, row.n, row.metric, row.task) for row in analysis.scores}
    assert found == {
        "constant": (pytest.approx(200 / 9), 9, "exact_match", "idm"),
        "best_constant": (pytest.approx(300 / 9), 9, "exact_match", "idm"),
    }
    assert analysis.notes == ["idm, test, constant: cut", "idm, test, best_constant: close"]
    assert all(row.method is None and row.seed is None for row in analysis.scores)


def test_of_source_sentences_all_are_answered_on_each_split(tmp_path: Path):
    """Without predictions. `a` and `b` are equally frequent in training."""
    targets = {
        "train": ["b", "b", "a", "a", "c"],
        "in_distribution": ["b"],
        "test": ["c", "c", "a", "d"],
    }
    for split, texts in targets.items():
        sources = [f"{split} {number}" for number in range(len(texts))]
        table = pa.table({"source": sources, "target": texts})
        pq.write_table(table, tmp_path / f"{split}.parquet")
    run = TrainedRun("scan", "lrf", "default", 1, "reduced", tmp_path / "run", tmp_path)
    analysis = analyse([run], Options(splits=["test", "in_distribution"]))
    assert [(row.split, row.readout, row.value, row.n) for row in analysis.scores] == [
        ("test", "constant", 25, 4),
        ("test", "best_constant", 50, 4),
        ("in_distribution", "constant", 0, 1),
        ("in_distribution", "best_constant", 100, 1),
    ]
    assert analysis.notes == [
        "scan, test, constant: a",
        "scan, test, best_constant: c",
        "scan, in_distribution, constant: a",
        "scan, in_distribution, best_constant: b",
    ]


def test_without_predictions_it_is_one_line(run: TrainedRun):
    (run.folder / "eval/predictions.parquet").unlink()
    with pytest.raises(
        UserError,
        match=r"predictions\.parquet does not exist; evaluate idm/gpt2-small/ft/seed-1 first",
    ):
        analyse([run], Options())


def test_a_split_that_was_not_evaluated_is_named(run: TrainedRun):
    table = pq.read_table(run.data / "test.parquet")
    pq.write_table(table, run.data / "later.parquet")
    with pytest.raises(
        UserError,
        match=r"displays\.yaml: idm/gpt2-small/ft/seed-1 has no predictions of the split 'later'",
    ):
        analyse([run], Options(splits=["test", "later"]))


@pytest.mark.parametrize("harm", ["cut", "changed"])
def test_damaged_and_changed_predictions_are_refused(run: TrainedRun, harm: str):
    """They must be the file whose sha256 evaluation wrote next to it."""
    file = run.files.evaluation.predictions
    write_json(run.files.evaluation.manifest, {"files": {file.name: hash_file(file)}})
    assert analyse([run], Options()).scores
    if harm == "cut":
        file.write_bytes(file.read_bytes()[:100])
    else:
        pq.write_table(pq.read_table(file).slice(1), file)
    with pytest.raises(UserError, match=r"predictions\.parquet does not match its checksum"):
        analyse([run], Options())


def test_the_floor_of_the_plan_is_below_the_best_constant_answer_on_idm():
    """The plan has 0.2%; NOTES and the claim say so."""
    found = {
        (row["task"], row["readout"]): float(row["value"])
        for row in rows_of("analyses.csv")
        if row["analysis"] == "constant-answers"
    }
    assert found["idm", "best_constant"] == pytest.approx(0.9) and found[
        "idm", "constant"
    ] == pytest.approx(0.5)
    # Every fine-tuned model is above it, on each seed.
    scores = [
        float(row["value"])
        for row in rows_of("scores.csv")
        if (row["task"], row["metric"], row["intervention"], row["split"])
        == ("idm", "exact_match", "", "test")
        and row["variant"] in ("ft", "carma")
        and int(row["seed"]) > 100
        and row["subset"] == "all"
    ]
    assert len(scores) == 72 and min(scores) > 0.9
    (claim,) = (row for row in rows_of("claims.csv") if row["claim"] == "accuracy-idm-six")
    assert "floor, 0.2%" in claim["caveat"] and "0.9%" in claim["caveat"]
