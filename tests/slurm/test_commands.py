"""The commands that stand before SLURM's own: what they answer when SLURM is well, away, or has forgotten a job."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster, wait
from tests.workflow.projects import Project
from workflow_scripts.cluster.status import LOOKS, PATIENCE_SECONDS
from workflow_scripts.start import keeping, parsed

BIN = "workflow_scripts/cluster/bin"
RUN = "recompose-0123456789ab_1234"
# What the executor asks; the run's name stands last.
LOOK = ("squeue", "--format=%i|%T", "--states=all", "--noheader", "--name", RUN)
FALLBACK = ("sacct", "-X", "--parsable2", "--format=JobIdRaw,State", "--endtime", "now", "--name", RUN)


def environment(project: Project, cluster: Cluster) -> dict[str, str]:
    found = cluster.environment
    return found | {"PATH": f"{project.root / BIN}:{project.root}/.venv/bin:{found['PATH']}"}


def ask(project: Project, cluster: Cluster, *command: str) -> str:
    done = subprocess.run(
        command, cwd=project.root, env=environment(project, cluster), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def submit(*words: str) -> list[str]:
    name = ("--job-name", RUN, "--comment", "rule_train")
    return ["sbatch", "--parsable", *name, "--output=/dev/null", "--mem=50", *words]


@pytest.fixture
def away(tmp_path: Path) -> Cluster:
    """A cluster whose slurmctld is not there: nobody listens on its port."""
    (tmp_path / "slurm.conf").write_text("ClusterName=away\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort=1\n")
    return Cluster(tmp_path)


def record(project: Project) -> Path:
    return project.root / f".snakemake/cluster/{RUN}.json"


def test_a_job_that_slurm_has_forgotten_fails_in_the_end(project: Project, cluster: Cluster):
    number = ask(project, cluster, *submit("--wrap=true")).strip()
    assert number in ask(project, cluster, *LOOK)
    known = json.loads(record(project).read_text())
    known["jobs"]["999999"] = {"state": "RUNNING", "missed": 0}
    record(project).write_text(json.dumps(known))
    said = [ask(project, cluster, *(FALLBACK if look % 2 else LOOK)) for look in range(LOOKS)]
    assert ["999999|FAILED" in lines.split() for lines in said] == [False] * (LOOKS - 1) + [True]
    wait(lambda: f"{number}|COMPLETED" in ask(project, cluster, *LOOK), 30, "the job does not end")


@pytest.mark.faults  # nothing is hurt, but squeue takes its time
def test_while_slurm_is_away_nothing_is_said_and_after_a_day_an_error(project: Project, away: Cluster):
    record(project).parent.mkdir(parents=True)
    record(project).write_text(json.dumps({"jobs": {"7": {"state": "RUNNING", "missed": 0}}, "silent_since": None}))
    assert ask(project, away, *LOOK) == ""
    known = json.loads(record(project).read_text())
    assert time.time() - known["silent_since"] < 60
    known["silent_since"] -= PATIENCE_SECONDS
    record(project).write_text(json.dumps(known))
    assert ask(project, away, *LOOK) == "7|FAILED\n"


def test_other_questions_go_to_slurm(project: Project, cluster: Cluster):
    assert ask(project, cluster, "squeue", "--version") == cluster.run("squeue", "--version")
    assert ask(project, cluster, "sacct", "--version") == cluster.run("sacct", "--version")
    number = ask(project, cluster, "sbatch", "--parsable", "--mem=50", "--output=/dev/null", "--wrap=true").strip()
    assert cluster.shown(number)["JobName"] == "wrap"
    assert not record(project).exists()


def test_srun_finds_the_cluster_without_slurm_conf(project: Project, cluster: Cluster):
    """As in a job, where the executor has taken SLURM_CONF away."""
    given = environment(project, cluster)
    given["RECOMPOSE_SLURM_CONF"] = given.pop("SLURM_CONF")
    done = subprocess.run(["srun", "--mem=50", "true"], env=given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.faults
def test_a_submission_waits_for_slurmctld_and_is_made_once(project: Project, cluster: Cluster):
    before = {job["JobId"] for job in cluster.jobs()}
    cluster.kill("slurmctld", signal.SIGTERM)  # it saves what it knows
    waiting = subprocess.Popen(
        submit("--wrap=true"), cwd=project.root, env=environment(project, cluster), stdout=subprocess.PIPE, text=True
    )
    time.sleep(15)
    assert waiting.poll() is None
    cluster.start_slurmctld()
    number = waiting.communicate(timeout=60)[0].strip()
    assert {job["JobId"] for job in cluster.jobs()} - before == {number}


def test_a_wrong_submission_fails_at_once(project: Project, cluster: Cluster):
    done = subprocess.run(
        submit("--partition=nowhere", "--wrap=true"),
        cwd=project.root,
        env=environment(project, cluster),
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode != 0 and "invalid partition" in done.stderr


def test_resources_of_the_user_do_not_erase_those_of_the_profile():
    profile = {"train": {"gpu": 0, "gres": "gpu:1"}}
    given = ["--jobs", "3", "--set-resources", "train:gres=gpu:h100:1", "evaluate:runtime=5", "--", "target"]
    assert keeping(given, profile) == [*given[:3], "train:gpu=0", *given[3:]]
    joined = ["--set-resources=train:runtime=5", "-n"]
    assert keeping(joined, profile) == ["--set-resources", "train:gpu=0", "train:gres=gpu:1", "train:runtime=5", "-n"]
    assert keeping(["-n", "target"], profile) == ["-n", "target"]


def test_what_a_call_says_of_the_cluster():
    options = parsed(["--workflow-profile=profiles/slurm-gpus", "-np", "--config", "scale=small", "target"])
    assert (options.workflow_profile, options.executor, options.slurm_array_jobs) == ("profiles/slurm-gpus", None, None)
    assert parsed(["-e", "slurm"]).executor == "slurm"
    assert os.access(f"{BIN}/sbatch", os.X_OK)
