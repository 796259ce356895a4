"""A finished scale as one RO-Crate, and the checks that it stands up to."""

import csv
import json
import shutil
import subprocess
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from rocrate.rocrate import ROCrate

from tests.workflow.projects import Project

METADATA = "ro-crate-metadata.json"


def call(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    python = str(project.root / ".venv/bin/python")
    command = [python, "-m", "workflow_scripts", *arguments]
    return subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def crate(finished_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The crate of the demo, unpacked."""
    folder = tmp_path_factory.mktemp("crate")
    done = call(Project(finished_demo), "crate", "--scale", "demo", "--out", str(folder / "demo.zip"))
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(folder / "demo.zip") as archive:
        archive.extractall(folder / "demo")
    return folder / "demo"


@pytest.fixture
def damaged(crate: Path, tmp_path: Path) -> Path:
    """A copy of the crate, to be damaged."""
    shutil.copytree(crate, tmp_path / "damaged")
    return tmp_path / "damaged"


def correct_checksum(crate: Path, name: str) -> None:
    """List the file with the checksum that it has now."""
    metadata = json.loads((crate / METADATA).read_text())
    (entity,) = (entity for entity in metadata["@graph"] if entity["@id"] == name)
    entity["sha256"] = sha256((crate / name).read_bytes()).hexdigest()
    (crate / METADATA).write_text(json.dumps(metadata))


def faults(project: Project, crate: Path) -> list[str]:
    done = call(project, "verify", str(crate))
    assert done.returncode == 1 and "faults; do not trust it" in done.stderr
    return done.stdout.splitlines()


def test_it_is_a_workflow_run_crate(crate: Path):
    read = ROCrate(crate)
    assert read.mainEntity.id == "Snakefile" and "ComputationalWorkflow" in read.mainEntity.type
    action = read.root_dataset["mentions"]
    assert action.type == "CreateAction" and action["instrument"].id == "Snakefile"
    assert action["startTime"] <= action["endTime"]
    profiles = {entity.id for entity in read.root_dataset["conformsTo"]}
    assert "https://w3id.org/ro/wfrun/workflow/0.5" in profiles
    results = {entity.id for entity in action["result"]}
    assert "results/demo/tables/sq_transformer/table1.csv" in results and "results/demo/claims.csv" in results


def test_it_holds_scores_and_provenance_but_no_weights(crate: Path):
    names = {file.name for file in crate.rglob("*")}
    assert {"scores.csv", "run.json", "evaluation.json", "training.csv", "dataset.json"} <= names
    assert not any(name.endswith((".safetensors", ".parquet")) for name in names)


def test_an_untouched_crate_agrees(demo: Project, crate: Path):
    for form in (crate, crate.parent / "demo.zip"):
        done = call(demo, "verify", str(form))
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        assert done.stdout.endswith("all agree\n") and " 0 cells" not in done.stdout


def test_changed_missing_and_added_files_are_named(demo: Project, damaged: Path):
    (damaged / "results/demo/claims.csv").write_text("changed")
    (damaged / "config.yaml").unlink()
    (damaged / "more.txt").touch()
    found = faults(demo, damaged)
    assert "config.yaml: missing" in found and f"more.txt: not listed in {METADATA}" in found
    assert any(fault.startswith("results/demo/claims.csv: sha256 is ") for fault in found)
    assert len(found) == 3


@pytest.mark.parametrize(
    ("name", "before", "after", "said"),
    [
        ("results/demo/tables/sq_transformer/table1.csv", "measured", "not run", "table1.csv: table1/"),
        ("results/demo/claims.csv", "not run", "reproduced", "claims.csv: "),
    ],
)
def test_what_the_scores_do_not_give_is_named(demo, damaged, name, before, after, said):
    """Even when the checksum was made to fit."""
    text = (damaged / name).read_text()
    assert before in text
    (damaged / name).write_text(text.replace(before, after, 1))
    correct_checksum(damaged, name)
    (fault,) = faults(demo, damaged)
    assert fault.startswith(said) and f"is {after}, by the scores {before}" in fault


def test_a_score_that_the_tables_do_not_show_is_named(demo: Project, damaged: Path):
    name = "results/demo/runs/cogs/transformer/default/seed-1/eval/scores.csv"
    with open(damaged / name, newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        if (row["split"], row["subset"], row["metric"]) == ("test", "all", "exact_match"):
            row["value"] = str(float(row["value"]) + 1)
    with open(damaged / name, "w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    correct_checksum(damaged, name)
    (fault,) = faults(demo, damaged)
    assert f"{name} is not what was written" in fault

    manifest = str(Path(name).with_name("evaluation.json"))
    content = json.loads((damaged / manifest).read_text())
    content["files"]["scores.csv"] = sha256((damaged / name).read_bytes()).hexdigest()
    (damaged / manifest).write_text(json.dumps(content))
    correct_checksum(damaged, manifest)
    assert any("table1/Transformer/COGS/exact_match: reproduced is " in fault for fault in faults(demo, damaged))


def test_a_zip_that_would_write_elsewhere_is_refused(demo: Project, tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("../outside.txt", "x")
    done = call(demo, "verify", str(tmp_path / "bad.zip"))
    assert done.returncode == 1 and "would be written elsewhere" in done.stderr
    assert not (tmp_path.parent / "outside.txt").exists()


@pytest.mark.parametrize("content", [None, b"no zip"])
def test_what_is_no_crate_is_one_line(demo: Project, tmp_path: Path, content: bytes | None):
    if content:
        (tmp_path / "x.zip").write_bytes(content)
    done = call(demo, "verify", str(tmp_path / "x.zip"))
    assert done.returncode == 1 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
