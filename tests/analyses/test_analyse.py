import csv
import json
from pathlib import Path

import pytest

from tests.analyses.small_runs import ROOT, add_run
from tests.provenance.fields import FIELDS
from tests.training.toy import assert_one_error, flip_bit
from workflow_scripts.__main__ import main
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.evaluation.scores import read_scores

RUNS = ["scan-jump-x2/transformer/default/seed-1", "scan-jump-x2/sq-transformer/sal/seed-1"]


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def call(results: Path, analysis: str, *more: str) -> int:
    out = results / "analyses/sq_transformer" / analysis
    where = ["--scale", "demo", "--results", str(results), "--out", str(out)]
    return main(["analyse", "--paper", "sq_transformer", "--analysis", analysis, *where, *more])


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for run in RUNS:
        add_run(tmp_path, run)
    return tmp_path


def test_the_command_writes_scores_tables_and_facts(results: Path) -> None:
    # Runs of other tasks are asked for too; the analysis takes its own.
    assert (
        call(results, "embeddings-addjump", "--runs", *RUNS, "cogs/transformer/default/seed-1") == 0
    )
    out = results / "analyses/sq_transformer/embeddings-addjump"
    assert sorted(path.name for path in out.iterdir()) == [
        "analysis.json",
        "record.json",
        "scores.csv",
        "words.csv",
    ]
    scores = read_scores(out / "scores.csv")
    expected = {("transformer", 1, "reduced"), ("sq-transformer", 1, "reduced")}
    assert {(row.method, row.seed, row.protocol) for row in scores} == expected
    content, record = (
        json.loads((out / name).read_text()) for name in ("analysis.json", "record.json")
    )
    assert record.keys() == {*FIELDS, "output_sha256", "record_digest"} and record["threads"] >= 1
    assert (content["runs"], content["protocol"], content["scale"]) == (RUNS, "reduced", "demo")
    with open(out / "words.csv") as stream:
        assert {row["word"] for row in csv.DictReader(stream)} >= {"jump", "left", "</s>"}


def test_the_same_runs_give_the_same_bytes(results: Path) -> None:
    contents = []
    for _ in range(2):
        assert call(results, "embeddings-addjump", "--runs", *RUNS) == 0
        contents.append(
            {
                path.name: path.read_bytes()
                for path in results.glob("analyses/*/embeddings-addjump/*")
            }
        )
        del contents[-1]["record.json"]
    assert contents[0] == contents[1] and len(contents[0]) == 3


@pytest.mark.parametrize("analysis", load_catalogue(ROOT).papers["sq_transformer"].analyses)
def test_an_analysis_whose_runs_the_scale_does_not_have_is_empty(
    tmp_path: Path, analysis: str
) -> None:
    assert call(tmp_path, analysis, "--runs") == 0
    out = tmp_path / "analyses/sq_transformer" / analysis
    assert read_scores(out / "scores.csv") == []
    assert json.loads((out / "analysis.json").read_text())["protocol"] is None


@pytest.mark.parametrize(
    ("analysis", "runs", "message"),
    [
        (
            "embedings-addjump",
            RUNS,
            "no analysis 'embedings-addjump'; did you mean 'embeddings-addjump'?",
        ),
        ("embeddings-addjump", ["scan-jump-x2/sq-transformer/sall/seed-1"], "did you mean 'sal'?"),
        ("embeddings-addjump", RUNS, "run.json does not exist"),
        (
            "embeddings-addjump",
            ["cogs/transformer/default/seed-1"],
            "analysis embeddings-addjump of sq_transformer reads none of --runs; it reads runs of "
            "scan-jump-x2/sq-transformer/sal, ",
        ),
    ],
)
def test_errors_are_one_line_and_leave_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture, analysis: str, runs: list[str], message: str
) -> None:
    assert call(tmp_path, analysis, "--runs", *runs) == 1
    error = capsys.readouterr().err
    assert message in error and error.startswith("error: ") and error.count("\n") == 1
    assert not list(tmp_path.glob("analyses/*/*"))


def test_a_failed_analysis_keeps_the_earlier_one(
    results: Path, capsys: pytest.CaptureFixture
) -> None:
    assert call(results, "embeddings-addjump", "--runs", *RUNS) == 0
    scores = results / "analyses/sq_transformer/embeddings-addjump/scores.csv"
    before = scores.read_bytes()
    flip_bit(results / "runs" / RUNS[1] / "checkpoint/model.safetensors")
    assert call(results, "embeddings-addjump", "--runs", *RUNS) == 1
    assert_one_error(
        capsys.readouterr().err, f"{RUNS[1]}/checkpoint/model.safetensors: expected sha256 "
    )
    assert scores.read_bytes() == before
    assert [path.name for path in scores.parent.parent.iterdir()] == ["embeddings-addjump"]
