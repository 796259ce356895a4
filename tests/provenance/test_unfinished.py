"""The file that says what is not finished."""

import json
from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.common.run_names import VariantKey
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
SCALE = ScaleFolder(Path("results/demo"))
CAUSES = {
    "runs/paws/bert/ft/seed-2/eval/scores.csv": FAILED,
    "runs/paws/bert/ft/seed-2/run.json": FAILED,
    "runs/idm/gemma-2b/ft/seed-1/eval/scores.csv": GATED,
    "runs/idm/gemma-2b/ft@start/seed-10/interventions/scores.csv": GATED,
    "analyses/cat/examples/scores.csv": FAILED,
    "analyses/cat/examples/analysis.json": FAILED,
}
UNFINISHED = Unfinished({SCALE.path / file: cause for file, cause in CAUSES.items()})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    SCALE.path.mkdir(parents=True)
    return tmp_path


def test_a_file_is_written_when_it_changes_and_deleted_when_all_is_there(here: Path):
    file = Path("results/demo/unfinished.json")
    write_unfinished(SCALE, UNFINISHED)
    assert json.loads(file.read_text()).keys() == CAUSES.keys()
    assert read_unfinished(file) == UNFINISHED
    before = file.stat().st_mtime_ns
    write_unfinished(SCALE, UNFINISHED)
    assert file.stat().st_mtime_ns == before
    for _ in range(2):
        write_unfinished(SCALE, NOTHING)
        assert not file.exists()


def test_scores_that_are_not_there_by_variant_and_seed():
    assert UNFINISHED.evaluations == {
        VariantKey("paws", "bert", "ft"): {2: FAILED},
        VariantKey("idm", "gemma-2b", "ft"): {1: GATED},
    }
    assert UNFINISHED.interventions == {VariantKey("idm", "gemma-2b", "ft@start"): {10: GATED}}
    assert UNFINISHED.analyses == {("cat", "examples"): FAILED}


def test_files_that_are_there():
    there = SCALE.path / "runs/paws/bert/ft/seed-1/eval/scores.csv"
    missing = SCALE.path / "analyses/cat/examples/scores.csv"
    assert UNFINISHED.drop_files([missing, there]) == [there]
    assert UNFINISHED.is_missing_any([there, missing])
    assert not UNFINISHED.is_missing_any([there])


def test_without_finished_only_every_file_will_be_made(here: Path):
    other = "small"  # read once, as all of a process
    assert load_unfinished(Config(finished_only=True), other) == NOTHING
    write_unfinished(SCALE, UNFINISHED)
    assert load_unfinished(Config(), "demo") == NOTHING
    assert load_unfinished(Config(finished_only=True), "demo") == UNFINISHED


@pytest.mark.parametrize("content", ["[]", '{"a": "gated"}', '{"a": {"word": "gated"}}'])
def test_another_content_is_refused(tmp_path: Path, content: str):
    file = tmp_path / "unfinished.json"
    file.write_text(content)
    with pytest.raises(UserError, match=r"unfinished\.json"):
        read_unfinished(file)
