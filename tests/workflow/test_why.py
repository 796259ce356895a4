"""`why` names, for each stale job, what changed, from what to what."""

import json
import os
import re
import shutil
import subprocess

from tests.workflow.projects import Project, pretend
from tests.workflow.test_rerun import made
from workflow_scripts.files import sha256_file


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
    (own,) = [line for line in sentences if line.startswith(f"train {run}: results/demo/data/cogs/dataset.json has")]
    before, now = re.search(r"has changed: (sha256:\w{64}) was read, it has (sha256:\w{64})$", own).groups()
    assert before != now == f"sha256:{sha256_file(file)}"


def test_a_source_file_and_a_model_of_the_hub(project, tmp_path):
    """Both commits, or both checksums, and where they are set."""
    source, model = "cogs/gen.tsv", "openai-community/gpt2"
    targets = ["results/small/data/cogs/dataset.json", f"results/downloads/models/{model}/model.json"]
    pretend(project, *targets)
    assert why(project, *targets) == ["Nothing would run"]
    with project.edited("workflow_scripts/data/sources.yaml") as content:
        entry = content["datasets"]["cogs"]["files"]["gen.tsv"]
        checksum, entry["sha256"] = entry["sha256"], "0" * 64
        commit, content["hugging_face"][model]["revision"] = content["hugging_face"][model]["revision"], "1" * 40
    fetched, repository, prepared, last = why(project, *targets)
    file = "workflow_scripts/data/sources.yaml"
    place = f"{file} datasets.cogs.files.gen.tsv.sha256"
    assert fetched == f'fetch {source}: sha256 was "{checksum}" and is "{"0" * 64}" ({place})'
    place = f"{file} hugging_face.{model}.revision"
    assert repository == f'fetch_model {model}: revision was "{commit}" and is "{"1" * 40}" ({place})'
    assert prepared.startswith("prepare cogs: reads results/downloads/cogs/gen.tsv")
    assert last == "3 jobs would run, 2 of them for a reason of their own"


def test_a_published_number(project):
    """By its cell and its column."""
    table = "results/demo/tables/sq_transformer/table1.csv"
    pretend(project, table)
    project.edit(
        "papers/sq_transformer/published.csv",
        "table1,Transformer,JUMP,exact_match,40.04±17.3,40.04,",
        "table1,Transformer,JUMP,exact_match,40.04±17.3,41.04,",
    )
    own, last = why(project, table)
    key, file = "published.table1/Transformer/JUMP/exact_match.value", "papers/sq_transformer/published.csv"
    assert own == f'table sq_transformer/table1: {key} was "40.04" and is "41.04" ({file})'
    assert last == "1 job would run"


def test_a_caption(demo):
    file = demo.root / "papers/sq_transformer/captions/table1.rst"
    before = file.read_text().strip()
    file.write_text("Another caption.\n")
    own, following, last = why(demo)
    assert own.startswith(f'table sq_transformer/table1: caption was "{before[:40]}')
    assert own.endswith('and is "Another caption." (papers/sq_transformer/captions/table1.rst)')
    assert following.startswith("record_config: reads ")
    assert last == "2 jobs would run, 1 of them for a reason of their own"


def test_another_version_is_reported_and_no_reason(demo):
    file = demo.root / "results/demo/runs/cogs/transformer/default/seed-1/run.json"
    times = file.stat().st_mtime_ns
    content = json.loads(file.read_text())
    content["versions"]["torch"] = "2.0.0"
    file.write_text(json.dumps(content))
    os.utime(file, ns=(times, times))
    nothing, note = why(demo)
    assert nothing == "Nothing would run"
    assert note.startswith("1 runs were made with torch 2.0.0 (") and "./reproduce -R train" in note


def test_the_same_configuration_by_the_command_line(demo):
    lines = why(demo, "--config", "precision=bf16")
    assert any('training.precision was "fp32" and is "bf16"' in line for line in lines)
