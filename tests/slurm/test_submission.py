"""The shipped profiles on a real cluster: what is asked for, what comes out, and what an error says."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster
from tests.slurm.conftest import CUT, RUNS, scores
from tests.slurm.submitting import jobs_of, reproduce, results
from tests.workflow.projects import Project, copied


@pytest.fixture(scope="module")
def submitted(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose cut of the demo has been run on the cluster."""
    project = copied(tmp_path_factory.mktemp("submitted"))
    # Before SLURM's own sbatch stands one that keeps what it is given, a file a call.
    recorder, sent = tmp_path_factory.mktemp("recorder") / "sbatch", project.root / "sent"
    sent.mkdir()
    own = shutil.which("sbatch")
    recorder.write_text(f'#!/bin/sh\nprintf \'%s\\0\' "$@" >{sent}/$$\nexec {own} "$@"\n')
    recorder.chmod(0o755)
    done = reproduce(project, cluster, *CUT, PATH=f"{recorder.parent}:{cluster.environment['PATH']}")
    assert done.returncode == 0, done.stderr
    return project


def test_results_are_those_of_a_local_run(submitted: Project, local_demo: dict[str, str]):
    found = results(submitted.root)
    assert len(found) > 3 * 2 + 2
    assert found.items() <= local_demo.items()


def test_trainings_and_evaluations_get_a_gpu_and_analyses_do_not(submitted: Project, cluster: Cluster):
    jobs = {rule: jobs_of(cluster, submitted, rule) for rule in ("train", "evaluate", "analyse")}
    assert {rule: len(found) for rule, found in jobs.items()} == {"train": 3, "evaluate": 1, "analyse": 1}
    assert len(jobs_of(cluster, submitted)) == 5, "prepare is to run where Snakemake runs"
    for job in (*jobs["train"], *jobs["evaluate"]):
        assert job["TresPerJob"] == "gres:gpu:1"
    assert all("TresPerJob" not in job for job in jobs["analyse"])
    for rule, (memory, time) in {"train": ("5000M", "01:00:00"), "evaluate": ("4000M", "02:00:00")}.items():
        for job in jobs[rule]:
            assert (job["MinMemoryNode"], job["TimeLimit"]) == (memory, time)
            assert (job["NumNodes"], job["NumCPUs"], job["NumTasks"], job["Requeue"]) == ("1", "1", "1", "1")


def in_general(arguments: list[str]) -> str:
    """What sbatch was given, with the words of `plan --cluster` for what differs from job to job."""
    words = {"--job-name": "NAME", "--output": "LOG", "--comment": "RULE_AND_RUN", "-p": "PARTITION", "-D": "FOLDER"}
    general = ["sbatch", *arguments]
    for option, word in words.items():
        general[general.index(option) + 1] = word
    return " ".join("--wrap=COMMAND" if part.startswith("--wrap=") else part for part in general)


def test_the_plan_prints_the_sbatch_lines_that_are_sent(submitted: Project):
    plan = [".venv/bin/python", "-m", "workflow_scripts", "plan", "--cluster"]
    printed = subprocess.run(plan, cwd=submitted.root, capture_output=True, text=True, check=True).stdout
    planned = [line for line in printed.splitlines() if line.startswith("sbatch ")]
    assert len(planned) == len(set(planned)) == 3
    sent = [file.read_text().rstrip("\0").split("\0") for file in (submitted.root / "sent").iterdir()]
    assert len(sent) == 5
    assert {in_general(arguments) for arguments in sent} == set(planned)


def test_a_second_call_submits_nothing(submitted: Project, cluster: Cluster):
    before = len(jobs_of(cluster, submitted))
    done = reproduce(submitted, cluster, *CUT)
    assert (done.returncode, "Nothing to be done" in done.stderr) == (0, True), done.stderr
    assert len(jobs_of(cluster, submitted)) == before


def test_an_error_shows_its_reason_its_logs_and_its_job(submitted: Project, cluster: Cluster):
    """Data without its vocabulary, asked for in the other form of GPU, with a resource of the user's beside it."""
    vocabulary = submitted.root / "results/demo/data/scan-jump-x2/vocabulary.json"
    content = vocabulary.read_text()
    vocabulary.unlink()
    wanted = ("--retries=0", "--set-resources", "train:runtime=7", "--")
    done = reproduce(submitted, cluster, *wanted, *scores(RUNS[0]), profile="slurm-gres")
    vocabulary.write_text(content)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    log = f"results/demo/logs/train/{RUNS[0]}.log"
    last = (submitted.root / log).read_text().splitlines()[-1]
    assert last.startswith("error: ") and f"    {last}" in lines
    assert f"    log:     {log}" in lines
    (slurm_log,) = re.findall(r"^    log:     (/.+\.log)$", done.stderr, re.MULTILINE)
    number = re.search(r"^    SLURM:   job (\d+) ended as FAILED$", done.stderr, re.MULTILINE)[1]
    assert slurm_log.endswith(f"/{number}.log") and "vocabulary.json" not in slurm_log
    job = cluster.shown(number)
    assert (job["TresPerNode"], job["TimeLimit"]) == ("gres:gpu:1", "00:07:00")
    assert "TresPerJob" not in job, "both forms at once"
    assert "Traceback" not in done.stderr


def test_a_job_that_can_never_start_is_an_error_and_no_hang(submitted: Project, cluster: Cluster, tmp_path: Path):
    """A partition whose jobs are shorter than what a training asks for, named in a profile of the user's own."""
    (tmp_path / "profile.yaml").write_text("default-resources:\n  slurm_partition: short\n")
    done = reproduce(submitted, cluster, "--retries=0", *scores(RUNS[1]), SNAKEMAKE_PROFILE=str(tmp_path))
    assert done.returncode == 1
    assert "    error: SLURM would never start this job (PartitionTimeLimit); docs/cluster.md: how to ask for less" in (
        done.stderr.splitlines()
    )
