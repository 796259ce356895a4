"""`why` names, for each stale job, what changed, from what to what."""

import json
import os
import shutil
import subprocess

from tests.workflow.projects import Project
from tests.workflow.test_rerun import made


def why(project: Project, *arguments: str) -> list[str]:
    python = str(project.root / ".venv/bin/python")
    command = [python, "-m", "workflow_scripts", "why", *arguments]
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_nothing_is_stale(demo):
    assert why(demo) == ["Nothing would run"]


def test_a_key_of_one_variant_with_its_place(demo):
    with demo.edited("catalogue/methods.yaml") as methods:
        settings = methods["sq-transformer"]["variants"]["codes-12"].setdefault("settings", {})
        settings["training"] = {"learning_rate": 0.00123}
    (run,) = made(demo, "/sq-transformer/codes-12/")
    *sentences, last = why(demo)
    place = "catalogue/methods.yaml sq-transformer.variants.codes-12"
    assert sentences[0] == f"train {run}: training.learning_rate was 0.003 and is 0.00123 ({place})"
    folder = f"results/demo/runs/{run}"
    assert sentences[1].startswith(f"evaluate {run}: reads {folder}/run.json, ")
    assert sentences[1].endswith("made again")
    assert last == f"{len(sentences)} jobs would run, 1 of them for a reason of their own"


def test_a_function_of_the_code(demo):
    file = demo.root / "workflow_scripts/models/decoding.py"
    file.write_text(file.read_text() + "\n\ndef added():\n    return 1\n")
    sentences = why(demo, "results/demo/runs/cogs/sq-transformer/srl/seed-1/eval/scores.csv")
    (own,) = [sentence for sentence in sentences if "changed" in sentence]
    assert own.startswith("evaluate cogs/sq-transformer/srl/seed-1: ")
    assert own.endswith("workflow_scripts/models/decoding.py changed: added")


def test_a_claim_and_a_display(demo):
    with demo.edited("papers/sq_transformer/claims.yaml") as claims:
        name, before = claims[0]["claim"], claims[0]["at_least"]
        claims[0]["at_least"] = before + 7.5
    with demo.edited("papers/sq_transformer/displays.yaml") as content:
        content["displays"]["table5"]["title"] = "Another title"
    sentences = why(demo)
    (verdicts,) = [sentence for sentence in sentences if sentence.startswith("claims: ")]
    assert f"claims.sq_transformer.{name}.at_least was {before} and is {before + 7.5}" in verdicts
    assert any(s.startswith("figure sq_transformer/table5: entry.title was ") for s in sentences)


def test_seeds_and_files(demo):
    with demo.edited("papers/sq_transformer/requests.yaml") as content:
        request = next(request for request in content["requests"] if "scan-around-right" in request["tasks"])
        request["seeds"]["demo"].append(77)
    gone = "results/demo/runs/cogs/transformer/default/seed-1"
    shutil.rmtree(demo.root / gone)
    sentences = why(demo)
    assert "train scan-around-right/transformer/default/seed-77: was not made yet" in sentences
    assert any(
        s.startswith("table sq_transformer/table1: reads ") and "seed-77/eval/scores.csv" in s for s in sentences
    )
    assert any(s.startswith("train cogs/transformer/default/seed-1: ") and "are gone" in s for s in sentences)


def test_changed_contents_of_an_input(demo):
    file = demo.root / "results/demo/data/cogs/dataset.json"
    file.write_text(file.read_text().replace("made-up", "invented"))
    run = "cogs/transformer/default/seed-1"
    sentences = why(demo, f"results/demo/runs/{run}/run.json")
    assert f"train {run}: results/demo/data/cogs/dataset.json has changed" in sentences


def test_another_version_is_reported_and_no_reason(demo):
    file = demo.root / "results/demo/runs/cogs/transformer/default/seed-1/run.json"
    times = file.stat().st_mtime_ns
    content = json.loads(file.read_text())
    content["versions"]["torch"] = "2.0.0"
    file.write_text(json.dumps(content))
    os.utime(file, ns=(times, times))
    nothing, note = why(demo)
    assert nothing == "Nothing would run"
    assert note.startswith("1 runs were made with torch 2.0.0; ") and "./reproduce -R train" in note


def test_the_same_configuration_by_the_command_line(demo):
    lines = why(demo, "--config", "precision=bf16")
    assert any('training.precision was "fp32" and is "bf16"' in line for line in lines)
