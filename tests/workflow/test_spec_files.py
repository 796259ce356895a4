"""Spec files: written when the workflow is planned, read by its jobs, and enough to repeat a job."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.training.toy import ROOT
from workflow_scripts.__main__ import main
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.provenance.planned_analysis import read_planned_analysis
from workflow_scripts.provenance.planned_run import read_planned_run
from workflow_scripts.workflow.planning import plan_analysis, plan_run, write_spec_files

RUN = "scan-jump-x2/transformer/default/seed-1"
WILDCARDS = (("scale", "demo"), ("task", "scan-jump-x2"))
JOBS = (
    ("prepare", WILDCARDS),
    ("train", (*WILDCARDS, ("method", "transformer"), ("variant", "default"), ("seed", "seed-1"))),
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of catalogue/ and papers/, in which the spec files of JOBS are written."""
    for folder in ("catalogue", "papers"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "config.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    write_spec_files(load_catalogue(), Config(scale="demo"), JOBS)
    return tmp_path


def read_back(planned, read, folder: Path):
    file = folder / "spec.json"
    file.write_text(json.dumps(planned.to_json()))
    return read(file)


def test_what_is_planned_is_what_a_job_reads(tmp_path: Path):
    catalogue = load_catalogue(ROOT)
    for scale in catalogue.scales:
        config = Config.model_validate({"scale": scale, "papers": list(catalogue.papers)})
        variants = {run.unseeded: run for run in list_requested_runs(catalogue, config)}
        for run in variants.values():
            planned = plan_run(catalogue, run, scale)
            assert planned == read_back(planned, read_planned_run, tmp_path), run


def test_an_analysis_that_is_planned_is_what_its_job_reads(tmp_path: Path):
    catalogue = load_catalogue(ROOT)
    for paper, content in catalogue.papers.items():
        config = Config.model_validate({"scale": "small", "papers": [paper]})
        runs = list_requested_runs(catalogue, config)
        for analysis in content.analyses:
            planned = plan_analysis(catalogue, paper, analysis, "small", runs)
            assert planned == read_back(planned, read_planned_analysis, tmp_path), (paper, analysis)


def test_spec_files_keep_the_order_of_the_catalogue(project: Path):
    catalogue = load_catalogue()
    jobs = [("analyse", (("scale", "demo"), ("paper", "cat"), ("analysis", "examples")))]
    write_spec_files(catalogue, Config(scale="demo"), jobs)
    written = read_planned_analysis(project / "results/demo/specs/analyses/cat/examples.json")
    items = catalogue.papers["cat"].analyses["examples"].options["items"]
    assert list(written.entry.options["items"]) == list(items) != sorted(items)


def test_a_job_runs_from_its_file_without_a_catalogue(project: Path, capsys):
    for folder in ("catalogue", "papers"):
        (project / folder).rename(project / f"no-{folder}")
    specs = project / "results/demo/specs"
    assert main(["prepare", "--spec", str(specs / "data/scan-jump-x2.json"), "--out", "data"]) == 0
    spec = json.loads((specs / f"{RUN}.json").read_text())
    spec["spec"]["training"] |= {"max_steps": 2, "validate_every": 2}
    (project / "short.json").write_text(json.dumps(spec))
    places = ["--data", "data", "--device", "cpu", "--progress", "none"]
    assert main(["train", "--spec", "short.json", *places, "--out", "run"]) == 0, (
        capsys.readouterr().err
    )
    assert (
        main(["evaluate", "--spec", "short.json", "--run-dir", "run", *places, "--out", "run/eval"])
        == 0
    )
    assert json.loads((project / "run/run.json").read_text())["scale"] == "demo"
    assert (project / "run/eval/scores.csv").exists()


def test_a_file_is_written_only_when_its_bytes_change(project: Path):
    file = project / f"results/demo/specs/{RUN}.json"
    os.utime(file, (1, 1))
    write_spec_files(load_catalogue(), Config(scale="demo"), JOBS)
    assert file.stat().st_mtime == 1
    write_spec_files(load_catalogue(), Config(scale="demo", precision="bf16"), JOBS)
    assert (
        file.stat().st_mtime != 1
        and json.loads(file.read_text())["spec"]["training"]["precision"] == "bf16"
    )
