"""The card of an exported checkpoint, and what is refused. All runs of the demo:
tests/workflow/test_checkpoints.py.
"""

from pathlib import Path

import pytest

from tests.analyses.small_runs import ROOT, add_run
from workflow_scripts.__main__ import main
from workflow_scripts.common.files import read_json, write_json
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.reporting.pages.model_card import list_origins
from workflow_scripts.results import read_checkpoint
from workflow_scripts.tasks.checkpoints import read_run

RUN = "cogs/transformer/default/seed-1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a finished run of the demo, with random weights."""
    folder = add_run(tmp_path / "results/demo", RUN, accuracy=43.21).folder
    write_json(
        folder / "run.json",
        read_json(folder / "run.json") | {"parameters": 12345, "steps": 100, "best_step": 60},
    )
    write_json(folder / "record.json", {"commit": "0123abc", "dirty": True})
    write_json(
        folder / "eval/evaluation.json",
        {"run": RUN, "spec": {"splits": ["test"], "batch_tokens": 512}},
    )
    return folder


def export(tmp_path: Path) -> int:
    options = [
        "--scale",
        "demo",
        "--results",
        str(tmp_path / "results"),
        "--checkpoints",
        str(tmp_path / "out"),
    ]
    return main(["export", *options])


def test_a_card_has_scores_next_to_published_numbers_command_commit_and_digest(
    folder: Path, tmp_path: Path
):
    assert export(tmp_path) == export(tmp_path) == 0  # again over its own files
    card = (tmp_path / "out" / RUN / "README.md").read_text()
    assert "judged on this run, among others:\n\n- none\n" in card
    assert "# Transformer, " in card and "(Jiang, Zhou and Bansal, 2024" in card
    assert (
        "| test | all | exact_match |  | 43.21 percent | " in card
        and "(sq_transformer: Table 1, Transformer, " in card
    )
    assert f"    ./reproduce results/demo/runs/{RUN}/run.json\n" in card
    assert (
        "Commit `0123abc`, which was changed; 12,345 parameters, 100 steps.\nWeights of step 60, sha256 `"
        in card
    )
    assert read_run(folder).weights_sha256 in card
    checkpoint = read_checkpoint(tmp_path / "out" / RUN)
    assert len(checkpoint.predict(checkpoint.load_model(), ["a cat", "a dog ran"])) == 2


def test_licences_are_those_of_the_data_and_of_what_the_weights_come_from(tmp_path: Path):
    for task in ("cogs", "idm"):
        write_json(tmp_path / f"data/{task}/dataset.json", {"notes": ["a note"]})
    catalogue = load_catalogue(ROOT)
    lines = list(list_origins(tmp_path, resolve_training(catalogue, Run.parse(RUN), "small")))
    assert lines == [
        "- cogs: cogs (Kim and Linzen 2020, COGS, EMNLP), licence: MIT",
        "- cogs: a note",
    ]
    lines = list(
        list_origins(
            tmp_path, resolve_training(catalogue, Run.parse("idm/gemma/ft/seed-1"), "full")
        )
    )
    assert lines[-1].startswith("- initial weights: google/gemma-") and "licence: " in lines[-1]


def test_a_changed_run_or_a_folder_of_others_is_refused(folder: Path, tmp_path: Path, capsys):
    foreign = tmp_path / "out" / RUN / "thesis.tex"
    foreign.parent.mkdir(parents=True)
    foreign.touch()
    assert export(tmp_path) == 1
    assert "contains thesis.tex, which this command does not write" in capsys.readouterr().err
    foreign.unlink()
    (folder / "checkpoint/vocabulary.json").write_text("{}")
    assert export(tmp_path) == 1
    assert "checkpoint/vocabulary.json: expected sha256" in capsys.readouterr().err
    (folder / "eval/evaluation.json").unlink()
    assert export(tmp_path) == 1
    assert (
        "has no finished training; make one with ./reproduce --scale demo"
        in capsys.readouterr().err
    )
