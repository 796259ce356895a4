"""A finished scale as one RO-Crate, and the checks of the crate."""

import csv
import json
import re
import shutil
import subprocess
import venv
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest
import yaml
from rocrate.rocrate import ROCrate

from tests.limits import HANGS
from tests.workflow.projects import Project
from workflow_scripts.__main__ import main
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_json
from workflow_scripts.provenance.record import add_output_digests
from workflow_scripts.results import Results

METADATA = "ro-crate-metadata.json"
CONTEXT = "https://w3id.org/ro/crate/1.1/context"
CONFIG = "results/demo/config.json"


@pytest.fixture(scope="module")
def crate(finished_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The crate of the demo, unpacked."""
    folder = tmp_path_factory.mktemp("crate")
    done = Project(finished_demo).command(
        "crate", "--scale", "demo", "--out", str(folder / "demo.zip")
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(folder / "demo.zip") as archive:
        archive.extractall(folder / "demo")
    return folder / "demo"


@pytest.fixture
def damaged(crate: Path, tmp_path: Path) -> Path:
    """A copy of the crate, to be damaged."""
    shutil.copytree(crate, tmp_path / "damaged")
    return tmp_path / "damaged"


@pytest.fixture
def of_one_paper(damaged: Path) -> Path:
    """The same with a configuration of one paper only, because recomputing the numbers of all
    papers takes long.
    """
    return asking_for("sq_transformer", damaged)


def asking_for(paper: str, crate: Path) -> Path:
    """A crate without the other papers in its configuration and its verdicts."""
    config = json.loads((crate / CONFIG).read_text())
    (crate / CONFIG).write_text(json.dumps(config | {"papers": [paper]}))
    names = ("results/demo/claims.csv", "results/demo/claim_sides.csv")
    for name in names:
        head, *lines = (crate / name).read_text().splitlines(keepends=True)
        (crate / name).write_text(
            "".join([head, *(line for line in lines if line.startswith(f"{paper},"))])
        )
    record = crate / "results/demo/claims.json"
    content = json.loads(record.read_text())
    del content["record_digest"]
    write_json(record, content)
    add_output_digests(record, [crate / name for name in names])
    for name in (CONFIG, *names, "results/demo/claims.json"):
        correct_checksum(crate, name)
    return crate


def correct_checksum(crate: Path, name: str) -> None:
    """List the file with the checksum that it has now."""
    metadata = json.loads((crate / METADATA).read_text())
    (entity,) = (entity for entity in metadata["@graph"] if entity["@id"] == name)
    entity["sha256"] = sha256((crate / name).read_bytes()).hexdigest()
    (crate / METADATA).write_text(json.dumps(metadata))


def test_results_of_an_unpacked_crate_are_those_of_the_scale(crate: Path, finished_demo: Path):
    packed, own = Results(crate), Results(finished_demo / "results/demo")
    assert packed.tables() == own.tables() and packed.folder == crate / "results/demo"
    for found in (
        lambda r: r.scores(),
        lambda r: r.claims(),
        lambda r: r.runs(),
        lambda r: r.wide("cat/table2"),
    ):
        pd.testing.assert_frame_equal(found(packed), found(own))
    run = "scan-jump-x2/transformer/default/seed-1"
    pd.testing.assert_frame_equal(packed.curves(run), own.curves(run))
    with pytest.raises(UserError, match=r"has no .*predictions\.parquet: only the results/<scale>"):
        packed.predictions(run)


@pytest.fixture
def faults(capsys: pytest.CaptureFixture[str]) -> Callable[[Path], list[str]]:
    """What `verify` finds in a crate."""

    def found(crate: Path) -> list[str]:
        capsys.readouterr()
        assert main(["verify", str(crate)]) == 1
        said = capsys.readouterr()
        lines = said.out.splitlines()
        count = "1 fault" if len(lines) == 1 else f"{len(lines)} faults"
        assert f": {count}; do not trust it" in said.err
        return lines

    return found


def test_it_is_a_workflow_run_crate(crate: Path):
    read = ROCrate(crate)
    assert read.mainEntity.id == "Snakefile" and "ComputationalWorkflow" in read.mainEntity.type
    action = read.root_dataset["mentions"]
    assert action.type == "CreateAction" and action["instrument"].id == "Snakefile"
    assert action["startTime"] <= action["endTime"]
    profiles = {entity.id for entity in read.root_dataset["conformsTo"]}
    assert "https://w3id.org/ro/wfrun/workflow/0.5" in profiles
    results = {entity.id for entity in action["result"]}
    assert (
        "results/demo/tables/sq_transformer/table1.csv" in results
        and "results/demo/claims.csv" in results
    )


def references(value: object) -> Iterator[str]:
    """The @id of every entity that a property names."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        yield value["@id"]


def test_it_does_what_the_specifications_demand(crate: Path):
    """What RO-Crate 1.1, Workflow RO-Crate 1.0, and Process and Workflow Run Crate 0.5 say with
    MUST.
    """
    content = json.loads((crate / METADATA).read_text())
    assert content.keys() == {"@context", "@graph"} and content["@context"][0] == CONTEXT
    entities = {entity["@id"]: entity for entity in content["@graph"]}
    assert len(entities) == len(content["@graph"]) and all(
        "@type" in entity for entity in entities.values()
    )
    named = [
        name
        for entity in entities.values()
        for value in entity.values()
        for name in references(value)
    ]
    assert {name for name in named if not name.startswith("https://")} <= entities.keys()

    descriptor, root = entities[METADATA], entities["./"]
    assert descriptor["@type"] == "CreativeWork" and descriptor["about"] == {"@id": "./"}
    assert "https://w3id.org/ro/crate/1.1" in references(descriptor["conformsTo"])
    assert root["@type"] == "Dataset" and root["name"] and root["description"]
    datetime.fromisoformat(root["datePublished"])
    assert entities[root["license"]["@id"]]["@type"] == "CreativeWork"
    for profile in ("process/0.5", "workflow/0.5"):
        assert entities[f"https://w3id.org/ro/wfrun/{profile}"]["@type"] == "CreativeWork"
        assert f"https://w3id.org/ro/wfrun/{profile}" in references(root["conformsTo"])

    files = {name for name, entity in entities.items() if "File" in entity["@type"]}
    assert files <= set(references(root["hasPart"])) and all(
        (crate / unquote(name)).is_file() for name in files
    )

    workflow = entities[root["mainEntity"]["@id"]]
    assert {"File", "SoftwareSourceCode", "ComputationalWorkflow"} <= set(workflow["@type"])
    assert entities[workflow["programmingLanguage"]["@id"]]["@type"] == "ComputerLanguage"
    (action,) = (entity for entity in entities.values() if entity["@type"] == "CreateAction")
    assert action["instrument"] == {"@id": workflow["@id"]} and root["mentions"] == {
        "@id": action["@id"]
    }
    assert {*references(action["object"]), *references(action["result"])} <= files
    assert datetime.fromisoformat(action["startTime"]) < datetime.fromisoformat(action["endTime"])


# Puts a file into the validator's cache of web pages, as the answer to the request of a URL.
FILL_CACHE = """
import sys
from pathlib import Path
from requests import Request
from requests_cache import CachedResponse, CachedSession
file, url, cache = sys.argv[1:]
with CachedSession(cache) as session:
    key = session.cache.create_key(session.prepare_request(Request("GET", url)))
    answer = {"content": Path(file).read_bytes(), "headers": {"Content-Type": "application/ld+json"}}
    session.cache.responses[key] = CachedResponse(url=url, status_code=200, **answer)
"""


@pytest.fixture(scope="module")
def validate(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[Path], subprocess.CompletedProcess[str]]:
    """The public validator, in a separate environment and without any network."""
    folder = tmp_path_factory.mktemp("validator")
    venv.create(folder, with_pip=True)
    lock = Path(__file__).with_name("validator.lock")
    install = ["-m", "pip", "install", "-q", "--require-hashes", "--no-deps", "-r", str(lock)]
    subprocess.run([folder / "bin/python", *install], check=True)
    (shipped,) = folder.glob("lib/python*/site-packages/rocrate/data/ro-crate.jsonld")
    subprocess.run(
        [folder / "bin/python", "-c", FILL_CACHE, shipped, CONTEXT, folder / "cache"], check=True
    )
    command = [
        folder / "bin/rocrate-validator",
        "-y",
        "validate",
        "--offline",
        "--cache-path",
        folder / "cache",
    ]
    command += ["--no-paging", "--verbose", "--profile-identifier", "workflow-run-crate-0.5"]
    return lambda crate: subprocess.run(
        [*command, crate], capture_output=True, text=True, timeout=HANGS
    )


@pytest.mark.validator
def test_the_public_validator_of_workflow_run_crates_accepts_it_and_refuses_another(
    validate, crate, damaged
):
    done = validate(crate)
    assert done.returncode == 0, done.stdout
    metadata = json.loads((damaged / METADATA).read_text())
    (action,) = (entity for entity in metadata["@graph"] if entity["@type"] == "CreateAction")
    del action["instrument"]
    (damaged / METADATA).write_text(json.dumps(metadata))
    done = validate(damaged)
    assert done.returncode == 1 and "[profile: Process Run Crate 0.5]" in done.stdout


def test_it_holds_scores_captions_and_provenance_but_no_weights(crate: Path):
    names = {file.name for file in crate.rglob("*")}
    assert {
        "scores.csv",
        "run.json",
        "evaluation.json",
        "training.csv",
        "dataset.json",
        "candidates.json",
    } <= names
    assert (crate / "papers/sq_transformer/captions/table1.rst").exists()
    assert (crate / "rules/captions/display.rst").exists()
    assert not any(name.endswith((".safetensors", ".parquet")) for name in names)


def test_an_untouched_crate_agrees(finished_demo: Path, crate: Path):
    done = Project(finished_demo).command("verify", str(crate.parent / "demo.zip"))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.endswith("all agree\n") and " 0 cells" not in done.stdout
    papers = json.loads((crate / CONFIG).read_text())["papers"]
    assert len(papers) > 1 and all(f" verdicts of {paper}" in done.stdout for paper in papers)


def test_a_folder_of_one_paper_agrees(of_one_paper: Path, capsys: pytest.CaptureFixture[str]):
    """What other tests damage has no fault of its own."""
    assert main(["verify", str(of_one_paper)]) == 0
    said = capsys.readouterr()
    assert said.err == "" and said.out.endswith(" verdicts of sq_transformer; all agree\n")


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "results/demo/tables/sq_transformer/table1.tex",
        "results/demo/tables/sq_transformer/table1.json",
        "results/demo/figures/sq_transformer/learning-curves.png",
        "results/demo/claims.json",
        "results/demo/data/cogs/dataset.json",
        "results/demo/runs/cogs/transformer/default/seed-1/eval/evaluation.json",
        "results/demo/analyses/sq_transformer/head-agreement-cognition/analysis.json",
        "results/demo/candidates/idm/candidates.json",
        "results/demo/runs/idm/gpt2-small/ft/seed-1/interventions/intervention.json",
    ],
)
def test_a_file_that_is_not_even_listed_is_missed(faults, damaged: Path, name: str):
    (damaged / name).unlink()
    metadata = json.loads((damaged / METADATA).read_text())
    metadata["@graph"] = [entity for entity in metadata["@graph"] if entity["@id"] != name]
    (damaged / METADATA).write_text(json.dumps(metadata))
    assert faults(damaged) == [f"{name}: neither present nor listed"]


def test_a_crate_without_its_configuration_is_one_line(faults, damaged: Path):
    (damaged / "results/demo/config.json").unlink()
    missing, none = faults(damaged)
    assert missing == "results/demo/config.json: missing"
    assert none == "results/<scale>/config.json: found 0; a crate contains one complete scale"


def test_a_crate_that_agrees_with_its_checksums_runs_no_code_of_its_own(
    finished_demo: Path, of_one_paper: Path
):
    """A figure and an analysis name a module, which is in the crate at each place where Python
    might look for it.
    """
    ran, paper = of_one_paper / "it-ran", "papers/sq_transformer/displays.yaml"
    content = yaml.safe_load((of_one_paper / paper).read_text())
    content["analyses"]["head-agreement-cognition"]["module"] = content["displays"]["figure4"][
        "module"
    ] = "hostile"
    (of_one_paper / paper).write_text(yaml.safe_dump(content, sort_keys=False))
    correct_checksum(of_one_paper, paper)
    metadata = json.loads((of_one_paper / METADATA).read_text())
    for folder in ("", "workflow_scripts/reporting/figures/", "workflow_scripts/analyses/"):
        text = f"open({str(ran)!r}, 'w')\nanalyse = draw = print\n"
        (of_one_paper / folder).mkdir(parents=True, exist_ok=True)
        (of_one_paper / f"{folder}hostile.py").write_text(text)
        metadata["@graph"].append(
            {"@id": f"{folder}hostile.py", "sha256": sha256(text.encode()).hexdigest()}
        )
    (of_one_paper / METADATA).write_text(json.dumps(metadata))
    done = Project(finished_demo).command("verify", str(of_one_paper))
    assert (done.returncode, ran.exists()) == (1, False)
    assert "1 fault" in done.stderr and "no module 'hostile'" in done.stdout


def test_changed_missing_and_added_files_are_named(faults, damaged: Path):
    (damaged / "results/demo/claims.csv").write_text("changed")
    (damaged / "config.yaml").unlink()
    (damaged / "more.txt").touch()
    (damaged / ".DS_Store").touch()
    (damaged / "papers/._lrf").touch()
    found = faults(damaged)
    assert "config.yaml: missing" in found and f"more.txt: not listed in {METADATA}" in found
    assert any(fault.startswith("results/demo/claims.csv: sha256 is ") for fault in found)
    assert len(found) == 3


def test_what_the_scores_do_not_give_is_named(faults, of_one_paper):
    """Even when the checksum was made to fit."""
    changes = [
        ("tables/sq_transformer/table1.csv", "measured", "not run"),
        ("tables/sq_transformer/table2.csv", "stand_in", "reduced"),
        ("claims.csv", "no verdict", "reproduced"),
    ]
    sides = "results/demo/claim_sides.csv"
    lines = (of_one_paper / sides).read_text().splitlines(keepends=True)
    (of_one_paper / sides).write_text("".join(lines[:-1]))
    correct_checksum(of_one_paper, sides)
    for name, before, after in changes:
        file = of_one_paper / "results/demo" / name
        assert before in file.read_text()
        file.write_text(file.read_text().replace(before, after, 1))
        correct_checksum(of_one_paper, f"results/demo/{name}")
    found = faults(of_one_paper)
    assert len(found) == len(changes) + 1 and any(
        f.startswith(f"claim_sides.csv:{len(lines)}: is ") for f in found
    )
    for name, before, after in changes:
        (fault,) = (fault for fault in found if fault.startswith(f"{name.split('/')[-1]}:"))
        now, by_scores = fault.split(", by the scores ")
        assert after in now and before in by_scores and len(fault) < 300


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("claims.csv", b"a,b\n1,2\n", "claims.csv:1: is a,b, by the scores paper,claim,"),
        ("config.json", b"[]", "results/demo/config.json: not a configuration"),
        ("claims.csv", b"\xff\xfe", "claims.csv:1: is "),
        ("tables/sq_transformer/table1.json", b"[]", "sq_transformer: its results cannot be read"),
    ],
)
def test_other_content_with_its_own_checksum_is_named(
    faults, of_one_paper: Path, name: str, content: bytes, said
):
    (of_one_paper / "results/demo" / name).write_bytes(content)
    correct_checksum(of_one_paper, f"results/demo/{name}")
    assert any(fault.startswith(said) for fault in faults(of_one_paper))


@pytest.mark.parametrize(
    "files",
    [
        [f"tables/sq_transformer/table1.{ending}" for ending in ("csv", "md", "tex", "html")],
        ["figures/carma/figure3.csv"],
    ],
    ids=["table", "figure"],
)
def test_a_changed_number_in_any_form_of_a_display_is_named_with_its_line(faults, damaged, files):
    asking_for(files[0].split("/")[1], damaged)
    places = set()
    for file in files:
        path = damaged / "results/demo" / file
        lines = path.read_text().split("\n")
        number = next(
            i
            for i, line in enumerate(lines)
            if i and re.search(r"\d\.\d", line) and "style" not in line
        )
        lines[number] = re.sub(
            r"(\d)\.(\d)",
            lambda found: f"{found[1]}.{(int(found[2]) + 1) % 10}",
            lines[number],
            count=1,
        )
        path.write_text("\n".join(lines))
        correct_checksum(damaged, f"results/demo/{file}")
        places.add(f"{path.name}:{number + 1}")
    found = faults(damaged)
    assert {fault.split(": is ")[0] for fault in found} == places and len(found) == len(files)
    assert all(", by the scores " in fault for fault in found)


@pytest.mark.parametrize(
    ("file", "has_digest"),
    [
        ("runs/cogs/transformer/default/seed-1/eval/evaluation.json", "record.json"),
        ("figures/sq_transformer/learning-curves.svg", "learning-curves.json"),
    ],
)
def test_a_file_that_no_number_is_made_of_is_compared_with_its_manifest(
    faults, of_one_paper: Path, file: str, has_digest: str
):
    name = f"results/demo/{file}"
    path = of_one_paper / name
    path.write_text(path.read_text() + "\n")
    correct_checksum(of_one_paper, name)
    assert faults(of_one_paper) == [f"{name} differs from the sha256 in {has_digest}"]


def test_a_claim_that_was_added_is_named(faults, of_one_paper: Path):
    ledger = of_one_paper / "results/demo/claims.csv"
    lines = ledger.read_text().splitlines()
    ledger.write_text("\n".join([*lines, "added", ""]))
    correct_checksum(of_one_paper, "results/demo/claims.csv")
    assert faults(of_one_paper) == [f"claims.csv:{len(lines) + 1}: is added, by the scores "]


def test_a_score_that_the_tables_do_not_show_is_named(faults, of_one_paper: Path):
    name = "results/demo/runs/cogs/transformer/default/seed-1/eval/scores.csv"
    with open(of_one_paper / name, newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        if (row["split"], row["subset"], row["metric"]) == ("test", "all", "exact_match"):
            row["value"] = str(float(row["value"]) + 1)
    with open(of_one_paper / name, "w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    correct_checksum(of_one_paper, name)
    (fault,) = faults(of_one_paper)
    assert f"{name} does not match its checksum" in fault

    manifest = str(Path(name).with_name("evaluation.json"))
    content = json.loads((of_one_paper / manifest).read_text())
    content["files"]["scores.csv"] = sha256((of_one_paper / name).read_bytes()).hexdigest()
    (of_one_paper / manifest).write_text(json.dumps(content))
    correct_checksum(of_one_paper, manifest)
    assert any(
        fault.startswith("table1.csv:") and "Transformer,COGS,exact_match" in fault
        for fault in faults(of_one_paper)
    )
