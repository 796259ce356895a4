"""Results that come without Snakemake's records are taken over where they agree, else moved aside and made again."""

import json
import os
import random
import shutil
import subprocess

import pytest

from tests.workflow.projects import Project
from tests.workflow.test_rerun import END, made, named


@pytest.fixture
def copied_results(demo) -> Project:
    """The finished demo as it comes from another machine: results alone, with other times."""
    shutil.rmtree(demo.root / ".snakemake")
    draw = random.Random(1)
    for file in sorted((demo.root / "results").rglob("*")):
        seconds = 1_700_000_000 + draw.randrange(1_000_000)
        os.utime(file, (seconds, seconds))
    return demo


def adopt(project: Project, *arguments: str) -> str:
    python = str(project.root / ".venv/bin/python")
    command = [python, "-m", "workflow_scripts", "adopt", *arguments]
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def derived(project: Project) -> set[tuple[str, str]]:
    """Analyses, displays and claims: what is made again from adopted results."""
    everything = named(project.planned("--forceall"))
    return {(rule, name) for rule, name in everything if rule in ("analyse", "table", "figure", "claims")} | END


def test_what_agrees_is_adopted_and_only_displays_are_made_again(copied_results):
    everything = derived(copied_results)
    scores = {file: file.read_bytes() for file in (copied_results.root / "results").rglob("scores.csv")}
    said = adopt(copied_results)
    assert "results without records are what would be made now: adopted" in said and "moved" not in said
    assert named(copied_results.planned()) == everything
    assert all(file.read_bytes() == content for file, content in scores.items() if "runs" in file.parts)
    assert adopt(copied_results) == ""


def test_a_changed_hyperparameter_is_named_and_its_runs_are_made_again(copied_results):
    with copied_results.edited("catalogue/methods.yaml") as methods:
        settings = methods["sq-transformer"]["variants"]["codes-12"].setdefault("settings", {})
        settings["objective"] = {"entropy_source": 0.25}
    runs = made(copied_results, "/sq-transformer/codes-12/")
    everything = derived(copied_results)
    said = adopt(copied_results)
    for run in runs:
        assert f"{run}/run.json: objective.entropy_source was 0.1 and is 0.25; moved to " in said
        assert (copied_results.root / "results/demo/not-adopted/runs" / run / "checkpoint/model.safetensors").exists()
    assert runs and said.count("moved to") == len(runs)
    again = {("train", run) for run in runs} | {("evaluate", run) for run in runs}
    assert named(copied_results.planned()) == again | everything


def test_a_damaged_file_is_found(copied_results):
    run = "scan-around-right/sq-transformer/sal/seed-1"
    weights = copied_results.root / "results/demo/runs" / run / "checkpoint/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    said = adopt(copied_results)
    assert f"{run}/checkpoint/model.safetensors was changed after it was made; moved to" in said
    planned = named(copied_results.planned())
    assert {name for rule, name in planned if rule in ("train", "evaluate")} == {run}


def test_data_that_do_not_agree_take_their_runs_along(copied_results):
    dataset = copied_results.root / "results/demo/data/scan-around-right/dataset.json"
    content = json.loads(dataset.read_text())
    content["facts"] = "given 0000000000000000, code 0000000000000000"
    dataset.write_text(json.dumps(content))
    adopt(copied_results)
    planned = named(copied_results.planned())
    assert ("prepare", "scan-around-right") in planned
    trained = {name for rule, name in planned if rule == "train"}
    assert trained == {f"scan-around-right/{name}/seed-1" for name in ("transformer/default", "sq-transformer/sal")}


def test_a_dry_run_changes_nothing(copied_results):
    before = sorted((copied_results.root / "results").rglob("*"))
    assert "would be adopted" in adopt(copied_results, "--dry-run")
    assert sorted((copied_results.root / "results").rglob("*")) == before
    assert not (copied_results.root / ".snakemake/metadata").exists()


def test_reproduce_adopts_by_itself(copied_results):
    target = "results/demo/runs/scan-around-right/sq-transformer/sal/seed-1/eval/scores.csv"
    done = copied_results.reproduce(target)
    assert done.returncode == 0, done.stderr
    assert "adopted" in done.stdout and "Nothing to be done" in done.stderr
