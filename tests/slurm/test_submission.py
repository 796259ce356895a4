"""The shipped profiles on a real cluster: what is asked for, what comes out, and what an error
says.
"""

import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster, wait
from tests.slurm.conftest import CUT, RUNS, make_here, scores
from tests.slurm.submitting import begin, end, jobs_of, reproduce, results, running, trainings
from tests.workflow.projects import Project, copied
from tests.workflow.test_show_finished import PAPER

INTERVENED = "results/demo/runs/idm/gpt2-small/carma/seed-1"


def recording(project: Project, cluster: Cluster) -> dict[str, str]:
    """PATH with a program before SLURM's own sbatch that records its arguments, one file per call.

    It prints a line of its own before the number of the job, as on clusters with accounts.
    """
    recorder, folder, own = (
        project.root / "recorder/sbatch",
        project.root / "sent",
        shutil.which("sbatch"),
    )
    for made in (recorder.parent, folder):
        made.mkdir()
    recorder.write_text(
        f"#!/bin/sh\nprintf '%s\\0' \"$@\" >{folder}/$$\n"
        f'echo "42% of the hours of your account are used"\nexec {own} "$@"\n'
    )
    recorder.chmod(0o755)
    return {"PATH": f"{recorder.parent}:{cluster.environment['PATH']}"}


def sent(project: Project) -> list[list[str]]:
    """What sbatch was given."""
    return [file.read_text().rstrip("\0").split("\0") for file in (project.root / "sent").iterdir()]


@pytest.fixture(scope="module")
def submitted(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose cut of the demo has been run on the cluster to its end.

    One of its three trainings got SIGKILL, as from the kernel when memory is full; the job of
    another was cancelled. Trainings are told to save their state before the time limit.
    """
    project = copied(tmp_path_factory.mktemp("submitted"))
    with project.edited("catalogue/scales.yaml") as scales:
        scales["demo"]["jobs"]["save_seconds"] = 120  # less than the shortest time limit
    process = begin(project, cluster, *CUT, **recording(project, cluster))
    wait(lambda: len(trainings(project)) >= 2, "no two trainings run at once")
    (_, killed), (cancelled, _), *_ = trainings(project).items()
    os.kill(killed, signal.SIGKILL)
    cluster.run("scancel", running(cluster, project, "train", cancelled))
    end(process)
    return project


@pytest.mark.quick_faults
def test_results_are_those_of_an_undisturbed_local_run(
    submitted: Project, local_demo: dict[str, str]
):
    found = results(submitted.root)
    assert len(found) > 3 * 2 + 2
    assert found.items() <= local_demo.items()


def test_trainings_and_evaluations_get_a_gpu_and_analyses_do_not(
    submitted: Project, cluster: Cluster
):
    jobs = {rule: jobs_of(cluster, submitted, rule) for rule in ("train", "evaluate", "analyse")}
    assert {rule: len(found) for rule, found in jobs.items()} == {
        "train": 3 + 2,
        "evaluate": 1,
        "analyse": 1,
    }
    assert len(jobs_of(cluster, submitted)) == 7, "prepare is to run where Snakemake runs"
    for job in (*jobs["train"], *jobs["evaluate"]):
        assert job["TresPerJob"] == "gres:gpu:1"
        assert (job["NumNodes"], job["NumCPUs"], job["NumTasks"], job["Requeue"]) == (
            "1",
            "1",
            "1",
            "1",
        )
    assert all("TresPerJob" not in job for job in jobs["analyse"])
    assert {job["TimeLimit"] for job in jobs["train"]} == {"01:00:00"}
    # A quarter of the scale's hour, since no step time on a GPU is known.
    assert [(job["MinMemoryNode"], job["TimeLimit"]) for job in jobs["evaluate"]] == [
        ("5000M", "00:15:00")
    ]
    assert sum("--signal=TERM@120" in arguments for arguments in sent(submitted)) == 3 + 2


def test_a_failed_job_is_submitted_again_and_a_killed_one_asks_for_more(
    submitted: Project, cluster: Cluster
):
    found: dict[str, list[tuple[str, str]]] = {}
    for job in jobs_of(cluster, submitted, "train"):
        found.setdefault(job["Comment"], []).append((job["JobState"], job["MinMemoryNode"]))
    assert sorted(found.values()) == [
        [("CANCELLED", "5000M"), ("COMPLETED", "5000M")],
        [("COMPLETED", "5000M")],
        [("FAILED", "5000M"), ("COMPLETED", "10000M")],  # by SIGKILL, as the kernel kills
    ]


PLAN = """
scale: demo
written: 2026-01-31
seeds: [1, 2, 3, 4]
pilots: {seeds: [91, 92], source: results/reference/small/scores.csv}
quantile: 0.95
primary:
  - claim: works-above-half
    published: 8.0
    margin: 0.0
    smallest: 2.0
    control: {floor: 0.2}
    spread: {sd: 1.0, freedom: 9, paired: true}
stop: all four, no more
"""


@pytest.mark.slow
def test_jobs_of_primary_claims_are_submitted_first(project: Project, cluster: Cluster):
    """Of the claims that a call names, as a budget does; with one job in the queue at a time."""
    on_scan = "{task: scan-jump-x2, methods: {transformer: [default]"
    planned = f"{on_scan}}}, seeds: {{demo: planned}}}}\n  - {{task: scan-jump-x2, methods: {{"
    experiments = PAPER["experiments.yaml"].replace(f"{on_scan}, ", planned)
    project.add_paper(PAPER | {"experiments.yaml": experiments, "analysis_plan.yaml": PLAN})
    project.set_demo_steps(3)
    data = [f"results/demo/data/{task}/dataset.json" for task in ("cogs", "scan-jump-x2")]
    make_here(project, *data)  # so that all trainings are ready at once
    # Among equals Snakemake starts the job with larger inputs first: that is one on COGS.
    claims = ("mine/works-on-cogs", "mine/works-above-half")
    done = reproduce(project, cluster, "--claim", *claims, "--jobs", "1")
    assert done.returncode == 0, done.stderr
    submitted = jobs_of(cluster, project)
    submitted.sort(key=lambda job: int(job["JobId"]))
    is_primary = ["scan" in job["Comment"] for job in submitted]
    n_primary = 2 * 4  # training and evaluation of four seeds
    assert is_primary == [True] * n_primary + [False] * (len(submitted) - n_primary)
    assert len(submitted) > n_primary


@pytest.mark.faults
def test_candidates_and_interventions_are_submitted_and_large_models_go_where_they_are_sent(
    project: Project, cluster: Cluster
):
    with project.edited("catalogue/scales.yaml") as scales:
        scales["demo"]["jobs"]["large_gpu"] = ["gpt2-small"]
    make_here(project, f"{INTERVENED}/run.json")
    shutil.rmtree(project.root / INTERVENED / "interventions", ignore_errors=True)
    shutil.rmtree(project.root / "results/demo/candidates", ignore_errors=True)
    target = f"{INTERVENED}/interventions/scores.csv"
    request = "large_gpu_request=--partition=urgent --gres=gpu:fake:1"
    done = reproduce(project, cluster, target, "--config", request)
    assert done.returncode == 0, done.stderr
    jobs = {rule: jobs_of(cluster, project, rule) for rule in ("candidates", "intervene")}
    assert {rule: len(found) for rule, found in jobs.items()} == {"candidates": 1, "intervene": 1}
    assert len(jobs_of(cluster, project)) == 2 and all(
        job["NumNodes"] == "1" for job in jobs_of(cluster, project)
    )
    assert [job["TresPerNode"] for job in jobs["intervene"]] == ["gres:gpu:fake:1"]
    assert [job["Partition"] for job in jobs["intervene"]] == ["urgent"]
    assert [job["Partition"] for job in jobs["candidates"]] == ["gpu"], "the cluster's default"


@pytest.mark.faults
def test_waiting_jobs_need_no_catalogue(
    project: Project, cluster: Cluster, local_demo: dict[str, str]
):
    """They are held until catalogue/ and papers/ are gone, and write no spec files."""
    cluster.run("scontrol", "update", "PartitionName=gpu", "State=DOWN")
    try:
        process = begin(project, cluster, *CUT)
        wait(
            lambda: len(jobs_of(cluster, project, "train")) == 3,
            "three trainings are not submitted",
        )
        times = {
            file: file.stat().st_mtime_ns
            for file in (project.root / "results/demo/specs").rglob("*.json")
        }
        assert len(times) >= 3 + 1 + 1
        for folder in ("catalogue", "papers"):
            (project.root / folder).rename(project.root / f"no-{folder}")
    finally:
        cluster.run("scontrol", "update", "PartitionName=gpu", "State=UP")
    end(process)
    found = results(project.root)
    assert len(found) > 3 * 2 + 2 and found.items() <= local_demo.items()
    written = {
        file: file.stat().st_mtime_ns
        for file in (project.root / "results/demo/specs").rglob("*.json")
    }
    assert written == times


def test_a_second_call_submits_nothing(submitted: Project, cluster: Cluster):
    before = len(jobs_of(cluster, submitted))
    done = reproduce(submitted, cluster, *CUT)
    assert (done.returncode, "Nothing to be done" in done.stderr) == (0, True), done.stderr
    assert len(jobs_of(cluster, submitted)) == before


@pytest.mark.faults
def test_a_job_that_can_never_run_has_one_attempt(
    submitted: Project, cluster: Cluster, tmp_path: Path
):
    """A partition does not exist, another one has shorter jobs, and the code of a third one is
    wrong.
    """
    made = submitted.root / CUT[0]
    shutil.move(made, tmp_path)
    partitions = ("train:slurm_partition=nowhere", "analyse:slurm_partition=short")
    run = RUNS[0].replace("seed-", "seed-9")
    evaluation = submitted.root / "workflow_scripts/commands/evaluate.py"
    code = evaluation.read_text()
    before = len(jobs_of(cluster, submitted))
    evaluation.write_text(f"{code}\n\nundefined_name()\n")
    (submitted.root / CUT[1]).unlink()
    try:
        targets = (*scores(run), *CUT[:2])
        done = reproduce(submitted, cluster, "--set-resources", *partitions, "--", *targets)
    finally:
        evaluation.write_text(code)
    assert done.returncode == 1
    failed = [line.split(" failed")[0] for line in done.stderr.splitlines() if "✗" in line]
    assert sorted(line.split()[1] for line in failed) == ["analyse", "evaluate", "train"]
    assert "SLURM refused it: sbatch: error: invalid partition specified: nowhere" in done.stderr
    assert "NameError: name 'undefined_name' is not defined" in done.stderr
    # The refused one is no job.
    assert len(jobs_of(cluster, submitted)) == before + 2
    repaired = reproduce(submitted, cluster, *CUT[:2])
    assert repaired.returncode == 0, repaired.stderr


def test_errors_show_their_reasons_logs_and_jobs(
    submitted: Project, cluster: Cluster, tmp_path: Path
):
    """A training lacks its vocabulary, and an analysis can never start: its partition has shorter
    jobs.

    GPUs are asked for in the other form, a partition by a profile of the user's own, and a resource
    in the call.
    """
    data, made = submitted.root / "results/demo/data/scan-jump-x2", submitted.root / CUT[0]
    shutil.move(data / "vocabulary.json", tmp_path)
    shutil.move(made, tmp_path)
    (tmp_path / "profile.yaml").write_text("default-resources:\n  slurm_partition: urgent\n")
    wanted = (
        "--retries=0",
        "--set-resources",
        "train:runtime=7",
        "analyse:slurm_partition=short",
        "--",
    )
    targets = ("--config", "gpu_request=--gres=gpu:1", *wanted, *scores(RUNS[0]), CUT[0])
    done = reproduce(submitted, cluster, *targets, SNAKEMAKE_PROFILE=str(tmp_path))
    shutil.move(tmp_path / "vocabulary.json", data)
    shutil.move(tmp_path / made.name, made)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert "Traceback" not in done.stderr

    log = f"results/demo/logs/train/{RUNS[0]}.log"
    last = (submitted.root / log).read_text().splitlines()[-1]
    assert last.startswith("error: ") and f"    {last}" in lines
    assert f"    log:     {log}" in lines
    number = re.search(r"^    SLURM:   job (\d+) ended as FAILED$", done.stderr, re.MULTILINE)[1]
    (slurm_log,) = re.findall(rf"^    log:     (/.+/{number}\.log)$", done.stderr, re.MULTILINE)
    assert Path(slurm_log).exists()
    job = cluster.shown(number)
    assert (job["TresPerNode"], job["TimeLimit"], job["Partition"]) == (
        "gres:gpu:1",
        "00:07:00",
        "urgent",
    )
    assert "TresPerJob" not in job, "both forms at once"

    never = "CANCELLED: SLURM would never start it (PartitionTimeLimit); docs/cluster.md says how to request less"
    assert re.search(
        rf"^    SLURM:   job \d+ ended as {re.escape(never)}$", done.stderr, re.MULTILINE
    )
