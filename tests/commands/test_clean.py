"""`clean` removes what it is asked to, and nothing of a process that runs."""

import argparse
from pathlib import Path

import pytest

from workflow_scripts.commands import clean
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_atomically
from workflow_scripts.common.result_folders import RESULTS
from workflow_scripts.common.scratch_folders import LOCK
from workflow_scripts.training.state import StateFolder

RUN = "scan/transformer/default/seed-1"


def call(*words: str) -> None:
    parser = argparse.ArgumentParser()
    clean.add_arguments(parser)
    clean.main(parser.parse_args(words))


def make_state(path: Path) -> StateFolder:
    path.mkdir(parents=True)
    folder = StateFolder(path, {})
    with folder.lock():
        (path / "step-1").write_bytes(b"x" * 1_000_000)
    return folder


def test_leftovers_are_removed_but_not_what_a_process_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    scale = RESULTS.scale("demo")
    left = make_state(scale.training_state(RUN, "a" * 16))
    held = make_state(scale.training_state(RUN, "b" * 16))
    pair = make_state(scale.search_state("scan/lrf/default", "c" * 16) / "0.1-32")
    answers = scale.intervention_state(RUN)
    answers.mkdir()
    run = scale.run(RUN)
    scratch = run.path / ".eval.abcdefgh"
    scratch.mkdir(parents=True)
    with write_atomically(run.interventions.path) as written:
        (scratch / LOCK).write_bytes((written.parent / LOCK).read_bytes())
        with held.lock():
            call("--leftovers")
        assert written.parent.exists()
        written.mkdir()
    assert not left.folder.exists() and not pair.folder.parent.exists() and not scratch.exists()
    assert held.folder.exists() and answers.exists() and run.interventions.path.exists()
    assert capsys.readouterr().out == "leftovers removed: 0.002 GB\n"


def test_without_an_option_it_removes_nothing():
    with pytest.raises(UserError, match="--leftovers"):
        call()
