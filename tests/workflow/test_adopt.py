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
from workflow_scripts.planning.why import KEEP
from workflow_scripts.running import leave, take
from workflow_scripts.training.prepared import data_digest

pytestmark = pytest.mark.quick_faults
DAMAGED = "scan-around-right/sq-transformer/sal/seed-1"
# Of all kinds of runs: from random weights, from another run, and such a run's parent. A few are enough: each is a job.
LEFT_THERE = ("scan-around-right", "scan-jump-x2", "cogs", "wmt17-en-de", "pairs-wordpiece", "paws")


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


def test_what_agrees_is_adopted_by_reproduce_itself_and_only_displays_are_made_again(copied_results, derived):
    scores = {file: file.read_bytes() for file in (copied_results.root / "results").rglob("scores.csv")}
    names = ("dataset", "run", "chosen", "evaluation", "candidates", "intervention")
    files = [list((copied_results.root / "results/demo").rglob(f"{name}.json")) for name in names]
    assert all(files)
    done = copied_results.reproduce(f"results/demo/runs/{DAMAGED}/eval/scores.csv")
    assert done.returncode == 0, done.stderr
    said = f"{sum(map(len, files))} results without records are what would be made now: adopted"
    assert said in done.stdout.splitlines() and "Nothing to be done" in done.stderr
    assert named(copied_results.planned()) == derived
    assert all(file.read_bytes() == content for file, content in scores.items() if "runs" in file.parts)
    assert adopt(copied_results) == ""


def alter(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1] + b"?")


def seal(manifest: Path, name: str) -> None:
    """Let the manifest of a folder have the digest of a file that was altered: a whole result, but another one."""
    content = json.loads(manifest.read_text())
    content["files"][name] = sha256((manifest.parent / name).read_bytes()).hexdigest()
    manifest.write_text(json.dumps(content))


def change_an_objective(project: Project) -> set[str]:
    """Give one variant another objective; returns its runs."""
    with project.edited("catalogue/methods.yaml") as methods:
        settings = methods["sq-transformer"]["variants"]["codes-12"].setdefault("settings", {})
        settings["objective"] = {"entropy_source": 0.25}
    return made(project, "/sq-transformer/codes-12/")


def test_what_does_not_agree_is_named_and_made_again_with_what_was_made_from_it(copied_results, derived):
    """Side by side: a changed hyperparameter, a damaged file, a parent of other weights, candidates that are damaged
    (of idm), and others that are whole (of sst). All else is adopted."""
    results, parent = copied_results.root / "results/demo", "text-bpe-4k/gpt2-small/pretrain/seed-1"
    changed = change_an_objective(copied_results)

    weights = results / "runs" / DAMAGED / "checkpoint/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])

    children = made(copied_results, "/gpt2-small/") - {parent}
    alter(results / "runs" / parent / "checkpoint/model.safetensors")
    seal(results / "runs" / parent / "run.json", "checkpoint/model.safetensors")

    for task in ("idm", "sst"):
        alter(results / "candidates" / task / "candidates.parquet")
    seal(results / "candidates/sst/candidates.json", "candidates.parquet")
    # What is done to a child is moved along with it.
    idm, sst = made(copied_results, "idm/") - children, made(copied_results, "sst/") - children
    assert changed and children and idm and sst and DAMAGED not in changed

    said = adopt(copied_results)
    for run in changed:
        assert f"{run}/run.json: objective.entropy_source was 0.1 and is 0.25; moved to " in said
        assert (results / "not-adopted/runs" / run / "checkpoint/model.safetensors").exists()
    assert f"{DAMAGED}/checkpoint/model.safetensors was changed after it was made; moved to" in said
    for child in children:
        assert f"{child}/run.json: it started from other weights than {parent} has; moved to " in said
        assert (results / "not-adopted/runs" / child / "interventions/intervention.json").exists()
    assert f"{parent}/eval/evaluation.json: it scored another checkpoint; moved to " in said
    assert "results/demo/candidates/idm/candidates.parquet was changed after it was made; moved to " in said
    gone = "results/demo/candidates/idm/candidates.json, which it was made from, is missing or not current"
    for run in idm:
        assert f"{run}/interventions/intervention.json: {gone}; moved to " in said
    for run in sst:
        assert f"{run}/interventions/intervention.json: it was made from other candidates; moved to " in said
    assert said.count("moved to") == len(changed) + 1 + len(children) + 1 + 1 + len(idm | sst)

    trained = changed | {DAMAGED} | children
    again = {(rule, run) for rule in ("train", "evaluate") for run in trained} | {("evaluate", parent)}
    again |= {("candidates", "idm")} | {("intervene", run) for run in children | idm | sst}
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
    """Runs as they come from a machine whose data were left there: these sets, and no log."""
    for name in (*(f"data/{task}" for task in LEFT_THERE), "logs"):
        shutil.rmtree(copied_results.root / "results/demo" / name)
    return copied_results


def run_of(file: Path) -> set[str]:
    """The run that a file lies under, as a set."""
    parts = file.parts
    return {"/".join(parts[parts.index("runs") + 1 :][:4])}


def trained(project: Project) -> dict[Path, bytes]:
    """What trainings have written, times and all."""
    files = (project.root / "results/demo/runs").rglob("*")
    return {file: file.read_bytes() for file in files if file.name in ("run.json", "model.safetensors")}


def test_runs_that_come_without_their_data_are_compared_with_the_data_of_now(without_data, derived):
    """Making the data is the only job; with it, the runs are those that would be made now. But for three sets: other
    settings and another limit stand in the spec of the runs; that other code makes other data shows only when these are
    made. And where other code makes the same data, the runs stay."""
    changed = change_an_objective(without_data)
    with without_data.edited("catalogue/scales.yaml") as scales:
        scales["demo"]["data"]["scan-around-right"]["options"]["limit"]["train"] -= 1
    without_data.edit("workflow_scripts/data/cogs.py", 'STRUCTURAL = ["cp_recursion", ', "STRUCTURAL = [")
    without_data.edit("workflow_scripts/data/wmt.py", 'WHERE = "', 'WHERE = "" + "')
    limited, coded, same = (made(without_data, f"{task}/") for task in ("scan-around-right", "cogs", "wmt17-en-de"))
    again = changed | limited | coded
    assert changed and limited and coded and same and len(again) == len(changed) + len(limited) + len(coded)
    before = {file: content for file, content in trained(without_data).items() if not run_of(file) & again}
    assert before

    foretold = adopt(without_data, "--dry-run")
    assert foretold.count("would be moved to") == len(changed | limited) and "would be made first" in foretold
    said = adopt(without_data)
    for run in changed:
        assert f"{run}/run.json: objective.entropy_source was 0.1 and is 0.25; moved to" in said
    for run in limited:
        assert f"{run}/run.json: data.options.limit.train was 2000 and is 1999; moved to" in said
    for run in coded:
        assert f"{run}/run.json: it was made from other data than results/demo/data/cogs; moved to" in said
    assert said.count("moved to") == len(again) and "adopted" in said
    made_data = {line.split()[0] for line in said.splitlines() if " is made first, to be compared with " in line}
    assert made_data == {f"results/demo/data/{task}" for task in LEFT_THERE if task != "scan-around-right"}
    assert {file: content for file, content in trained(without_data).items() if file in before} == before
    assert not list((without_data.root / ".snakemake").glob("locks/*"))
    jobs = {(rule, run) for rule in ("train", "evaluate") for run in again} | {("prepare", "scan-around-right")}
    assert named(without_data.planned()) == jobs | derived


def test_while_data_cannot_be_made_nothing_is_moved(without_data):
    """No set is left: one would be moved, since the code that makes it has changed."""
    shutil.rmtree(without_data.root / "results/demo/data")
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


def test_data_that_do_not_agree_or_are_missing_are_made_again_for_their_runs(copied_results, derived):
    """Also the data of runs that others started from: it is foretold that the children stay."""
    dataset = copied_results.root / "results/demo/data/scan-around-right/dataset.json"
    before = data_digest(dataset.parent)
    facts = "given 0000000000000000, code 0000000000000000"
    dataset.write_text(json.dumps(json.loads(dataset.read_text()) | {"facts": facts}))
    shutil.rmtree(copied_results.root / "results/demo/data/text-bpe-4k")
    foretold = adopt(copied_results, "--dry-run")
    assert "would be made first" in foretold and "would be adopted" in foretold
    said = adopt(copied_results)
    assert foretold.count("moved to") == said.count("moved to") == 1
    assert "results/demo/data/text-bpe-4k is made first" in said
    assert json.loads(dataset.read_text())["facts"] != facts and data_digest(dataset.parent) == before
    assert named(copied_results.planned()) == derived


def test_where_other_code_makes_the_same_data_what_descends_from_them_stays(demo, derived):
    """Of pre-training pairs, from which CAT's whole family descends, and of WMT; the data of COGS come out others."""
    demo.edit("workflow_scripts/data/pretraining_pairs.py", 'WHERE = "', 'WHERE = "" + "')
    demo.edit("workflow_scripts/data/wmt.py", 'WHERE = "', 'WHERE = "" + "')
    demo.edit("workflow_scripts/data/cogs.py", 'STRUCTURAL = ["cp_recursion", ', "STRUCTURAL = [")
    changed, again = {"pairs-wordpiece", "wmt17-en-de", "cogs"}, made(demo, "cogs/")
    family = {run for run in made(demo, "/") if run.split("/")[1] in ("bert", "cat")}
    before = {file: content for file, content in trained(demo).items() if not run_of(file) & again}
    stale = named(demo.planned())
    assert again and {("train", run) for run in family | made(demo, "wmt17-en-de/") | again} <= stale

    foretold = adopt(demo, "--remake-data", "--dry-run").splitlines()
    code = ": the code that makes it has changed"
    assert {line.removesuffix(code) for line in foretold if line.endswith(code)} == {
        f"results/demo/data/{task}" for task in changed
    }
    assert foretold[-1].endswith(" results descend from them: would be compared with new data")
    assert named(demo.planned()) == stale
    why = [str(demo.root / ".venv/bin/python"), "-m", "workflow_scripts", "why"]
    said = subprocess.run(why, cwd=demo.root, capture_output=True, text=True, timeout=120).stdout
    assert said.splitlines()[-1] == KEEP

    said = adopt(demo, "--remake-data")
    for run in again:
        assert f"{run}/run.json: it was made from other data than results/demo/data/cogs; moved to" in said
    assert said.count("/run.json: ") == len(again)
    assert {file: content for file, content in trained(demo).items() if file in before} == before
    left = named(demo.planned())
    assert left - derived == {(rule, run) for rule in ("train", "evaluate") for run in again}
    assert left & derived > END
    assert adopt(demo, "--remake-data") == ""


def test_beside_a_reproduce_at_work_nothing_is_adopted(tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "catalogue", tmp_path / "catalogue")
    monkeypatch.chdir(tmp_path)
    assert take("1") is None
    assert main(["adopt"]) == 1
    assert "error: ./reproduce works in this folder (process " in capsys.readouterr().err
    assert main(["adopt", "--dry-run"]) == 0
    leave("1")
    assert main(["adopt"]) == 0


def test_a_dry_run_changes_nothing(copied_results):
    before = sorted((copied_results.root / "results").rglob("*"))
    assert "would be adopted" in adopt(copied_results, "--dry-run")
    assert sorted((copied_results.root / "results").rglob("*")) == before
    assert not (copied_results.root / ".snakemake/metadata").exists()


def test_folders_of_results_that_are_no_scale_stay_as_they_are(tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "catalogue", tmp_path / "catalogue")
    copy = tmp_path / "results/demo.old/runs/cogs/transformer/default/seed-1/run.json"
    copy.parent.mkdir(parents=True)
    copy.write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert main(["adopt"]) == 0
    assert (capsys.readouterr().out, copy.read_text()) == ("", "{}")
