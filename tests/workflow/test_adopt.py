"""Results that come without Snakemake's records are taken over where they agree, else moved aside and made again."""

import json
import os
import random
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from tests.workflow.projects import ROOT, Project
from tests.workflow.test_rerun import END, made, named
from workflow_scripts.__main__ import main
from workflow_scripts.planning.adopt import generation
from workflow_scripts.training.prepared import data_digest

pytestmark = pytest.mark.quick_faults


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
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def derived(finished_demo: Path) -> set[tuple[str, str]]:
    """Analyses, displays and claims: what is made again from adopted results."""
    everything = named(Project(finished_demo).planned("--forceall"))
    return {(rule, name) for rule, name in everything if rule in ("analyse", "table", "figure", "claims")} | END


def test_what_agrees_is_adopted_and_only_displays_are_made_again(copied_results, derived):
    scores = {file: file.read_bytes() for file in (copied_results.root / "results").rglob("scores.csv")}
    names = ("dataset", "run", "chosen", "evaluation", "candidates", "intervention")
    files = [list((copied_results.root / "results/demo").rglob(f"{name}.json")) for name in names]
    assert all(files)
    said = adopt(copied_results)
    assert said.startswith(f"{sum(map(len, files))} results without records are what would be made now: adopted\n")
    assert named(copied_results.planned()) == derived
    assert all(file.read_bytes() == content for file, content in scores.items() if "runs" in file.parts)
    assert adopt(copied_results) == ""


def test_a_changed_hyperparameter_is_named_and_its_runs_are_made_again(copied_results, derived):
    with copied_results.edited("catalogue/methods.yaml") as methods:
        settings = methods["sq-transformer"]["variants"]["codes-12"].setdefault("settings", {})
        settings["objective"] = {"entropy_source": 0.25}
    runs = made(copied_results, "/sq-transformer/codes-12/")
    said = adopt(copied_results)
    for run in runs:
        assert f"{run}/run.json: objective.entropy_source was 0.1 and is 0.25; moved to " in said
        assert (copied_results.root / "results/demo/not-adopted/runs" / run / "checkpoint/model.safetensors").exists()
    assert runs and said.count("moved to") == len(runs)
    again = {("train", run) for run in runs} | {("evaluate", run) for run in runs}
    assert named(copied_results.planned()) == again | derived


def test_a_damaged_file_is_found(copied_results):
    run = "scan-around-right/sq-transformer/sal/seed-1"
    weights = copied_results.root / "results/demo/runs" / run / "checkpoint/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    said = adopt(copied_results)
    assert f"{run}/checkpoint/model.safetensors was changed after it was made; moved to" in said
    planned = named(copied_results.planned())
    assert {name for rule, name in planned if rule in ("train", "evaluate")} == {run}


def alter(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1] + b"?")


def seal(manifest: Path, name: str) -> None:
    """Let the manifest of a folder have the digest of a file that was altered: a whole result, but another one."""
    content = json.loads(manifest.read_text())
    content["files"][name] = sha256((manifest.parent / name).read_bytes()).hexdigest()
    manifest.write_text(json.dumps(content))


def test_a_child_of_other_weights_is_made_again_with_its_interventions(copied_results, derived):
    results, parent = copied_results.root / "results/demo", "text-bpe-4k/gpt2-small/pretrain/seed-1"
    children = made(copied_results, "/gpt2-small/") - {parent}
    alter(results / "runs" / parent / "checkpoint/model.safetensors")
    seal(results / "runs" / parent / "run.json", "checkpoint/model.safetensors")
    said = adopt(copied_results)
    for child in children:
        assert f"{child}/run.json: it started from other weights than {parent} has; moved to " in said
        assert (results / "not-adopted/runs" / child / "interventions/intervention.json").exists()
    assert f"{parent}/eval/evaluation.json: it scored another checkpoint; moved to " in said
    assert children and said.count("moved to") == len(children) + 1
    again = {(rule, child) for rule in ("train", "evaluate", "intervene") for child in children}
    assert named(copied_results.planned()) == again | {("evaluate", parent)} | derived


def test_interventions_by_other_candidates_are_made_again(copied_results, derived):
    """Those of idm are damaged, those of sst whole, but others."""
    candidates = copied_results.root / "results/demo/candidates"
    for task in ("idm", "sst"):
        alter(candidates / task / "candidates.parquet")
    seal(candidates / "sst/candidates.json", "candidates.parquet")
    damaged, other = made(copied_results, "idm/"), made(copied_results, "sst/")
    said = adopt(copied_results)
    assert "results/demo/candidates/idm/candidates.parquet was changed after it was made; moved to " in said
    gone = "results/demo/candidates/idm/candidates.json, which it was made from, is missing or not current"
    for run in damaged:
        assert f"{run}/interventions/intervention.json: {gone}; moved to " in said
    for run in other:
        assert f"{run}/interventions/intervention.json: it was made from other candidates; moved to " in said
    assert damaged and other and said.count("moved to") == 1 + len(damaged | other)
    again = {("candidates", "idm")} | {("intervene", run) for run in damaged | other}
    assert named(copied_results.planned()) == again | derived


def test_a_run_is_judged_behind_all_that_it_descends_from(tmp_path):
    runs = [f"{task}/method/variant/seed-1" for task in "abc"]
    for run, parent in zip(runs, [*runs[1:], None], strict=True):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "run.json").write_text(json.dumps({"spec": {"init": parent and {"run": parent}}}))
    files = [tmp_path / run / "run.json" for run in runs]
    assert sorted(files, key=generation) == files[::-1]


@pytest.fixture
def without_data(copied_results) -> Project:
    """Runs as they come from a machine whose data were left there."""
    for name in ("data", "logs"):
        shutil.rmtree(copied_results.root / "results/demo" / name)
    return copied_results


def trained(project: Project) -> dict[Path, bytes]:
    """What trainings have written, times and all."""
    files = (project.root / "results/demo/runs").rglob("*")
    return {file: file.read_bytes() for file in files if file.name in ("run.json", "model.safetensors")}


def test_runs_that_come_without_their_data_wait_for_it(without_data, finished_demo, derived):
    """Making the data is the only job; with it, the runs are those that would be made now."""
    before = trained(without_data)
    said = adopt(without_data)
    assert "moved" not in said and "adopted" in said
    made_data = {line.split()[0] for line in said.splitlines() if " is made first, to be compared with " in line}
    tasks = {folder.name for folder in (finished_demo / "results/demo/data").iterdir()}
    assert made_data == {f"results/demo/data/{task}" for task in tasks}
    assert named(without_data.planned()) == derived
    assert before and trained(without_data) == before
    assert not list((without_data.root / ".snakemake").glob("locks/*"))


def test_children_of_runs_that_wait_for_their_data_are_foretold_to_stay(copied_results):
    shutil.rmtree(copied_results.root / "results/demo/data/text-bpe-4k")
    foretold = adopt(copied_results, "--dry-run")
    assert "would be made first" in foretold and "would be adopted" in foretold and "moved" not in foretold
    assert "moved" not in adopt(copied_results)


def test_of_runs_without_their_data_a_changed_one_alone_is_made_again(without_data, derived):
    with without_data.edited("catalogue/methods.yaml") as methods:
        settings = methods["sq-transformer"]["variants"]["codes-12"].setdefault("settings", {})
        settings["objective"] = {"entropy_source": 0.25}
    runs = made(without_data, "/sq-transformer/codes-12/")
    foretold = adopt(without_data, "--dry-run")
    assert foretold.count("would be moved to") == len(runs) and "would be made first" in foretold
    said = adopt(without_data)
    assert runs and said.count("moved to") == len(runs)
    again = {("train", run) for run in runs} | {("evaluate", run) for run in runs}
    assert named(without_data.planned()) == again | derived


def test_runs_without_their_data_are_compared_with_the_data_of_now(without_data):
    """Another limit stands in the spec of the runs; that other code makes other data shows only when these are made."""
    with without_data.edited("catalogue/scales.yaml") as scales:
        scales["demo"]["data"]["scan-around-right"]["options"]["limit"]["train"] -= 1
    without_data.edit("workflow_scripts/data/cogs.py", 'STRUCTURAL = ["cp_recursion", ', "STRUCTURAL = [")
    limited, coded = made(without_data, "scan-around-right/"), made(without_data, "cogs/")
    said = adopt(without_data)
    for run in limited:
        assert f"{run}/run.json: data.options.limit.train was 2000 and is 1999; moved to" in said
    for run in coded:
        assert f"{run}/run.json: it was made from other data than results/demo/data/cogs; moved to" in said
    assert limited and coded and said.count("moved to") == len(limited | coded)
    assert "results/demo/data/scan-around-right is made first" not in said


def test_runs_stay_where_other_code_makes_the_same_data(without_data):
    without_data.edit("workflow_scripts/data/cogs.py", "STRUCTURAL = [", "STRUCTURAL = [*()] + [")
    said = adopt(without_data)
    assert "results/demo/data/cogs is made first" in said and "moved to" not in said


def test_while_data_cannot_be_made_nothing_is_moved(without_data):
    before = trained(without_data)
    without_data.edit(
        "workflow_scripts/data/prepare.py",
        '    sources, digests = downloaded(spec["sources"], args.downloads)',
        '    raise UserError("no")',
    )
    done = without_data.reproduce()
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: data cannot be made; mend that, or move their runs out of results/: results/demo/")
    assert trained(without_data) == before and not (without_data.root / "results/demo/not-adopted").exists()


def test_data_that_do_not_agree_are_made_again_for_their_runs(copied_results, derived):
    dataset = copied_results.root / "results/demo/data/scan-around-right/dataset.json"
    before = data_digest(dataset.parent)
    facts = "given 0000000000000000, code 0000000000000000"
    dataset.write_text(json.dumps(json.loads(dataset.read_text()) | {"facts": facts}))
    said = adopt(copied_results)
    assert said.count("moved to") == 1 and json.loads(dataset.read_text())["facts"] != facts
    assert data_digest(dataset.parent) == before
    assert named(copied_results.planned()) == derived


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


def test_folders_of_results_that_are_no_scale_stay_as_they_are(tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "catalogue", tmp_path / "catalogue")
    copy = tmp_path / "results/demo.old/runs/cogs/transformer/default/seed-1/run.json"
    copy.parent.mkdir(parents=True)
    copy.write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert main(["adopt"]) == 0
    assert (capsys.readouterr().out, copy.read_text()) == ("", "{}")
