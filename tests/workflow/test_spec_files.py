"""Spec files: written before the first job, read by its jobs, and enough to repeat a job."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.limits import HANGS
from tests.workflow.projects import PARTS, ROOT
from workflow_scripts.__main__ import main
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.displays import select_intervened_runs
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import find_search_run
from workflow_scripts.provenance.analysis_job_spec import read_analysis_job_spec
from workflow_scripts.provenance.run_job_spec import read_run_job_spec
from workflow_scripts.workflow.job_specs import (
    CatalogueSpecs,
    resolve_analysis_job_spec,
    resolve_run_job_spec,
    write_spec_files,
)
from workflow_scripts.workflow.jobs import JobInputs
from workflow_scripts.workflow.spec_files import SpecFiles

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
    write_files(JOBS)
    return tmp_path


def write_files(jobs, **content) -> None:
    config = Config(scale="demo", **content)
    write_spec_files(CatalogueSpecs(load_catalogue(), config), jobs)


def read_back(job_spec, read, folder: Path):
    file = folder / "spec.json"
    file.write_text(json.dumps(job_spec.to_json()))
    return read(file)


def test_what_is_resolved_is_what_a_job_reads(tmp_path: Path):
    catalogue = load_catalogue(ROOT)
    for scale in catalogue.scales:
        config = Config.model_validate({"scale": scale, "papers": list(catalogue.papers)})
        variants = {run.variant_key: run for run in list_requested_runs(catalogue, config)}
        for run in variants.values():
            job_spec = resolve_run_job_spec(catalogue, run, scale)
            assert job_spec == read_back(job_spec, read_run_job_spec, tmp_path), run


def test_an_analysis_that_is_resolved_is_what_its_job_reads(tmp_path: Path):
    catalogue = load_catalogue(ROOT)
    for paper, content in catalogue.papers.items():
        config = Config.model_validate({"scale": "small", "papers": [paper]})
        runs = list_requested_runs(catalogue, config)
        for analysis in content.analyses:
            job_spec = resolve_analysis_job_spec(catalogue, paper, analysis, "small", runs)
            assert job_spec == read_back(job_spec, read_analysis_job_spec, tmp_path), (
                paper,
                analysis,
            )


def test_spec_files_keep_the_order_of_the_catalogue(project: Path):
    catalogue = load_catalogue()
    jobs = [("analyse", (("scale", "demo"), ("paper", "cat"), ("analysis", "examples")))]
    write_files(jobs)
    written = read_analysis_job_spec(project / "results/demo/specs/analyses/cat/examples.json")
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
    write_files(JOBS)
    assert file.stat().st_mtime == 1
    write_files(JOBS, precision="bf16")
    assert (
        file.stat().st_mtime != 1
        and json.loads(file.read_text())["spec"]["training"]["precision"] == "bf16"
    )


# Methods of JobInputs that give a rule its inputs and parameters, and its resources.
OF_RUNS = ("find_init_manifest", "find_init_checkpoint", "format_init_option")
METHODS = {
    "prepare": ("list_data_manifests", "list_data_sources"),
    "candidates": ("list_candidate_manifests", "list_candidate_sources"),
    "search": (*OF_RUNS, "locate_search_state"),
    "train": (*OF_RUNS, "find_search_result", "format_search_option", "locate_training_state"),
    "evaluate": ("find_scored_manifest", "find_scored_checkpoint", "list_scored_options"),
    "intervene": ("find_scored_manifest", "find_scored_checkpoint", "list_scored_options"),
    "analyse": (
        "list_analysed_runs",
        "list_analysis_inputs",
        "list_analysis_sources",
        "list_analysis_checkpoints",
    ),
}


class Job(SimpleNamespace):
    """Wildcards as Snakemake gives them."""

    def items(self):
        return vars(self).items()


def list_jobs(config: Config):
    """(rule, wildcards) of every job that is submitted to a cluster."""
    catalogue = load_catalogue()
    for paper in config.papers:
        runs = list_requested_runs(catalogue, config.model_copy(update={"papers": [paper]}))
        intervened = set(select_intervened_runs(catalogue, paper, runs))
        for analysis in catalogue.papers[paper].analyses:
            yield "analyse", {"paper": paper, "analysis": analysis}
        for run in runs:
            variant = {"task": run.task, "method": run.method, "variant": run.variant}
            names = variant | {"seed": f"seed-{run.seed}"}
            yield "prepare", {"task": run.task}
            yield "evaluate", names
            if run in intervened:
                yield "intervene", names
                yield "candidates", {"task": run.task}
            if not run.weights:
                yield "train", names
                if find_search_run(catalogue, run, config.scale):
                    yield "search", variant


@pytest.mark.parametrize("scale", ["demo", pytest.param("full", marks=pytest.mark.slow)])
def test_snakemake_in_a_job_gets_from_the_files_what_the_catalogue_says(project: Path, scale: str):
    config = Config.model_validate(
        {"scale": scale, "papers": list(load_catalogue().papers), "gpu_request": "--gres=gpu:1"}
    )
    jobs = {(rule, (("scale", scale), *names.items())): None for rule, names in list_jobs(config)}
    assert {rule for rule, _ in jobs} == METHODS.keys()
    resolved = CatalogueSpecs(load_catalogue(), config)
    write_spec_files(resolved, jobs)
    here, in_job = (JobInputs(config, specs, lambda: True) for specs in (resolved, SpecFiles()))
    for rule, names in jobs:
        job = Job(**dict(names))
        assert in_job.fingerprint(rule)(job) == here.fingerprint(rule)(job) != "None", job
        for method in METHODS[rule]:
            assert getattr(in_job, method)(job) == getattr(here, method)(job), (method, job)
        if rule in ("search", "train", "evaluate", "intervene"):
            assert in_job.get_threads(job) == here.get_threads(job) >= 1, job
            asked = []
            for each in (in_job, here):
                functions = each.list_gpu_resources(saves_state=True)
                asked.append({name: function(job) for name, function in functions.items()})
            assert asked[0] == asked[1], job
            memory = [each.estimate_memory(rule)(job) for each in (in_job, here)]
            assert memory[0] == memory[1] > 0, job


def test_the_runs_and_the_search_before_a_run_are_written_with_it(project: Path):
    wildcards = {
        "scale": "demo",
        "task": "stsb-msrvid",
        "method": "cat",
        "variant": "mix",
        "seed": "seed-1",
    }
    write_files([("train", tuple(wildcards.items()))])
    specs = SpecFiles()
    run = Run("stsb-msrvid", "cat", "mix", 1)
    parent = specs.get_run(run, "demo").spec.origin.run
    assert specs.get_run(parent, "demo").spec.run == parent
    assert specs.get_search(run.variant_key, "demo").spec.search
    with pytest.raises(UserError, match="seed-2"):
        specs.get_run(run._replace(seed=2), "demo")


JOB = (
    *("--snakefile", "Snakefile", "--target-jobs", "train:" + ",".join(map("=".join, JOBS[1][1]))),
    *(
        "--allowed-rules",
        "train",
        "--cores",
        "1",
        "--force",
        "--no-hooks",
        "--nolock",
        "--mode",
        "remote",
    ),
)


def test_a_job_starts_snakemake_without_a_catalogue(project: Path):
    """As an executor does. Without the mode of a job the catalogue is needed."""
    for part in PARTS:
        if not (project / part).exists():
            (project / part).symlink_to(ROOT / part)
    (project / "results/demo/data/scan-jump-x2").mkdir(parents=True)
    (project / "results/demo/data/scan-jump-x2/dataset.json").write_text("{}")
    for folder in ("catalogue", "papers"):
        (project / folder).rename(project / f"no-{folder}")
    command = [sys.executable, "-m", "snakemake", "--workflow-profile", "none", "-n", *JOB]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    assert (
        "wildcards: scale=demo, task=scan-jump-x2, method=transformer" in done.stdout + done.stderr
    )
    planning = subprocess.run(command[:-2], capture_output=True, text=True, timeout=HANGS)
    assert planning.returncode == 1 and "catalogue/scales.yaml" in planning.stdout + planning.stderr
