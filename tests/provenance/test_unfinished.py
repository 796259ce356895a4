"""The file that says what is not finished."""

from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.schema import Config
from workflow_scripts.provenance.unfinished import (
    NOTHING,
    Cause,
    Unfinished,
    load_unfinished,
    read_unfinished,
    write_unfinished,
)

GATED = Cause(word="gated", sentence="google/gemma-2b is gated")
FAILED = Cause(word="failed", sentence="train paws/bert/ft/seed-2 failed")
UNFINISHED = Unfinished(
    {
        "runs/paws/bert/ft/seed-2/eval/scores.csv": FAILED,
        "runs/paws/bert/ft/seed-2/run.json": FAILED,
        "runs/idm/gemma-2b/ft/seed-1/eval/scores.csv": GATED,
        "runs/idm/gemma-2b/ft@start/seed-10/interventions/scores.csv": GATED,
        "analyses/cat/examples/scores.csv": FAILED,
    }
)


def test_a_file_that_is_written_is_read_and_rewritten_only_when_it_changes(tmp_path: Path):
    file = tmp_path / "unfinished.json"
    write_unfinished(file, UNFINISHED)
    assert read_unfinished(file) == UNFINISHED
    before = file.stat().st_mtime_ns
    write_unfinished(file, UNFINISHED)
    assert file.stat().st_mtime_ns == before
    write_unfinished(file, NOTHING)
    assert file.read_text() == "{}\n"


def test_scores_that_are_not_there_by_variant_and_seed():
    assert UNFINISHED.evaluations == {
        ("paws", "bert", "ft"): {2: FAILED},
        ("idm", "gemma-2b", "ft"): {1: GATED},
    }
    assert UNFINISHED.interventions == {("idm", "gemma-2b", "ft@start"): {10: GATED}}


def test_files_that_are_there():
    there = "runs/paws/bert/ft/seed-1/eval/scores.csv"
    missing = "analyses/cat/examples/scores.csv"
    assert UNFINISHED.drop_files([missing, there]) == [there]
    assert UNFINISHED.is_missing_any([there, missing])
    assert not UNFINISHED.is_missing_any([there])


def test_without_finished_only_every_file_will_be_made(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results/demo").mkdir(parents=True)
    write_unfinished(tmp_path / "results/demo/unfinished.json", UNFINISHED)
    assert load_unfinished(Config(), "demo") == NOTHING
    assert load_unfinished(Config(finished_only=True), "demo") == UNFINISHED


@pytest.mark.parametrize("content", ["[]", '{"a": "gated"}', '{"a": {"word": "gated"}}'])
def test_another_content_is_refused(tmp_path: Path, content: str):
    file = tmp_path / "unfinished.json"
    file.write_text(content)
    with pytest.raises(UserError, match=r"unfinished\.json"):
        read_unfinished(file)
