"""Real faults on a real cluster: each run ends with the scores of an undisturbed one, nothing lost,
nothing twice.

The quick ones, a killed process and a cancelled job, also befall the cut of the demo in
test_submission.py.
"""

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.limits import HANGS
from tests.slurm.cluster import Cluster, environments, wait
from tests.slurm.conftest import CUT, RUNS, make_here, scores
from tests.slurm.submitting import (
    begin,
    command,
    end,
    jobs_of,
    results,
    running,
    state_saved,
    training,
    wait_for_state,
)
from tests.workflow.projects import Project
from workflow_scripts.common.files import read_json

pytestmark = pytest.mark.faults


def check(project: Project, undisturbed: dict[str, str], runs: tuple[str, ...]) -> None:
    """The results are the undisturbed ones, nothing else is there, and no half file or state is
    left.
    """
    wanted = {
        name: digest for name, digest in undisturbed.items() if any(run in name for run in runs)
    }
    assert len(wanted) == 4 * len(runs)
    assert results(project.root) == wanted
    assert not list((project.root / "results/demo/runs").rglob(".*")), "a temporary file was left"
    assert not list((project.root / "results/demo/state").rglob("step-*")), "a state was left"


def resumed(project: Project, run: str) -> int:
    return read_json(project.root / f"results/demo/runs/{run}/record.json")["resumed"]


def test_a_killed_training_and_a_cancelled_job_are_retried(
    long_project: Project, cluster: Cluster, undisturbed: dict[str, str]
):
    """One of two trainings gets SIGKILL, as from the kernel when memory is full; the job of the
    other is cancelled.
    """
    process = begin(long_project, cluster, *scores(*RUNS))
    wait_for_state(long_project, RUNS[0], process)
    os.kill(training(long_project, RUNS[0]), signal.SIGKILL)
    wait_for_state(long_project, RUNS[1], process)
    cluster.run("scancel", running(cluster, long_project, "train", RUNS[1]))
    said = end(process)
    assert said.count("✗ train") == 2 and "ended as CANCELLED" in said and "ended as FAILED" in said
    check(long_project, undisturbed, RUNS)
    assert [resumed(long_project, run) for run in RUNS] == [1, 1]
    trainings = jobs_of(cluster, long_project, "train")
    assert sorted(job["JobState"] for job in trainings) == [
        "CANCELLED",
        "COMPLETED",
        "COMPLETED",
        "FAILED",
    ]
    # Only the killed one is given more memory.
    assert sorted(job["MinMemoryNode"] for job in trainings) == [
        "10000M",
        "5000M",
        "5000M",
        "5000M",
    ]
    assert len(jobs_of(cluster, long_project, "evaluate")) == 2


@contextmanager
def held(project: Project, *runs: str) -> Iterator[None]:
    """The trainings of runs are stopped meanwhile, so that they do not end too soon for a test."""
    processes = [training(project, run) for run in runs]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def kill_snakemake(project: Project, process: subprocess.Popen[str]) -> None:
    """SIGKILL to ./reproduce and its Snakemake: all processes on this machine; the jobs continue."""
    for one in list_session(process.pid):
        os.kill(one, signal.SIGKILL)
    process.communicate(timeout=HANGS)
    assert list((project.root / ".snakemake").glob("locks/*")), (
        "this test needs a lock that was left"
    )


def list_session(leader: int) -> list[int]:
    """The processes of a session: Snakemake is not in the process group of ./reproduce."""
    processes = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    found = []
    for process in processes:
        with suppress(ProcessLookupError):
            if os.getsid(process) == leader:
                found.append(process)
    return found


def test_jobs_of_a_killed_snakemake_are_waited_for(
    long_project: Project, cluster: Cluster, undisturbed
):
    process = begin(long_project, cluster, *scores(*RUNS))
    wait_for_state(long_project, RUNS[0], process)
    wait_for_state(long_project, RUNS[1], process)
    with held(long_project, *RUNS):
        kill_snakemake(long_project, process)
        again = begin(long_project, cluster, *scores(*RUNS))
        time.sleep(10)
    said = end(again)
    assert "running; waiting for them" in said
    assert "LockException" not in said and "rerun-incomplete" not in said
    check(long_project, undisturbed, RUNS)
    assert [resumed(long_project, run) for run in RUNS] == [0, 0]
    jobs = jobs_of(cluster, long_project)
    assert len(jobs) == 4 and all(job["JobState"] == "COMPLETED" for job in jobs)


def test_jobs_that_a_killed_snakemake_left_waiting_are_submitted_once(
    long_project: Project, cluster: Cluster, undisturbed
):
    """The cluster's GPUs are taken by somebody else's job; one that had not begun is cancelled, not
    forgotten.
    """
    whole = ("--gpus=4", "--nodes=2", "--mem=100", "--output=/dev/null", "--wrap=sleep 3000")
    blocker = cluster.run("sbatch", "--parsable", *whole).strip()
    process = begin(long_project, cluster, *scores(RUNS[0]))
    wait(lambda: jobs_of(cluster, long_project, "train"), "nothing is submitted")
    kill_snakemake(long_project, process)
    again = begin(long_project, cluster, *scores(RUNS[0]))
    wait(lambda: len(jobs_of(cluster, long_project, "train")) == 2, "nothing is submitted again")
    cluster.run("scancel", blocker)
    end(again)
    check(long_project, undisturbed, RUNS[:1])
    states = sorted(job["JobState"] for job in jobs_of(cluster, long_project, "train"))
    assert states == ["CANCELLED", "COMPLETED"]


@pytest.mark.parametrize("early", [0, 120])
def test_a_training_that_reaches_its_time_limit_goes_on_in_the_next_job(
    long_project: Project, cluster: Cluster, undisturbed, early: int
):
    """The training is held up until SLURM has sent its SIGTERM.

    That is at the limit of a minute or up to 30 s later, when SIGKILL would follow in 30 s; or as
    long before the limit of four minutes as a large state is said to take.
    """
    with long_project.edited("catalogue/scales.yaml") as scales:
        scales["demo"]["jobs"]["save_seconds"] = early
    limit = ("--set-resources", f"train:runtime={4 if early else 1}", "--")
    process = begin(long_project, cluster, *limit, *scores(RUNS[0]))
    wait_for_state(long_project, RUNS[0], process)
    stopped = training(long_project, RUNS[0])
    os.kill(stopped, signal.SIGSTOP)
    wait(lambda: is_told_to_end(stopped), "SLURM sends no SIGTERM")
    with suppress(ProcessLookupError):
        os.kill(stopped, signal.SIGCONT)
    said = end(process)
    assert "✗" not in said, "a time limit is no failure"
    assert said.count(f"train {RUNS[0]} continues in another job after its time limit") == 1
    check(long_project, undisturbed, RUNS[:1])
    assert resumed(long_project, RUNS[0]) == 1
    trainings = jobs_of(cluster, long_project, "train")
    state = "TIMEOUT" if early == 0 else "FAILED"
    assert sorted(job["JobState"] for job in trainings) == sorted([state, "COMPLETED"])
    assert len({job["MinMemoryNode"] for job in trainings}) == 1


def test_a_training_that_gets_no_further_by_its_time_limit_fails(
    long_project: Project, cluster: Cluster
):
    """It is held up before its first update, and SIGKILL follows SIGTERM."""
    command = '"python -m workflow_scripts train'
    long_project.edit("rules/train.smk", command, f'"sleep 600; "\n        {command}')
    limit = ("--set-resources", "train:runtime=1", "--retries=0", "--")
    process = begin(long_project, cluster, *limit, *scores(RUNS[0]))
    said = process.communicate(timeout=HANGS)[1]
    assert process.returncode == 1
    assert said.count("✗ train") == 1 and "ended as TIMEOUT" in said
    last_line = said.splitlines()[-1]
    assert last_line.startswith("1 failed, 1 of 3 jobs done in ")
    assert last_line.endswith("; run the same command again to continue")
    assert len(jobs_of(cluster, long_project, "train")) == 1


def test_an_analysis_that_reaches_its_time_limit_asks_for_twice_the_time(
    project: Project, cluster: Cluster
):
    make_here(project, CUT[0])
    (project.root / CUT[0]).unlink()
    minute = 'estimate_minutes("analyse", 1)'
    project.edit("rules/analyse.smk", 'estimate_minutes("analyse", 60)', minute)
    command = '"python -m workflow_scripts analyse'
    held_once = '"mkdir held 2> /dev/null && sleep 600; "'
    project.edit("rules/analyse.smk", command, f"{held_once}\n        {command}")
    end(begin(project, cluster, CUT[0]))
    asked = [(job["JobState"], job["TimeLimit"]) for job in jobs_of(cluster, project, "analyse")]
    assert asked == [("TIMEOUT", "00:01:00"), ("COMPLETED", "00:02:00")]


def is_told_to_end(process: int) -> bool:
    """Whether SIGTERM waits for a stopped process, or has ended it: SLURM may continue it together
    with the signal.
    """
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return True
    status = dict(line.split(":\t", 1) for line in lines)
    return bool(int(status["ShdPnd"], 16) & 1 << signal.SIGTERM - 1)


def test_slurmctld_may_go_away_in_mid_run(long_project: Project, cluster: Cluster, undisturbed):
    """It is away while a training ends, while the queue is looked at and while the evaluation is
    submitted.
    """
    process = begin(long_project, cluster, *scores(RUNS[0]))
    wait_for_state(long_project, RUNS[0], process)
    cluster.kill("slurmctld")
    time.sleep(60)
    assert process.poll() is None
    cluster.start_slurmctld()
    said = end(process)
    assert "✗" not in said
    check(long_project, undisturbed, RUNS[:1])
    assert resumed(long_project, RUNS[0]) == 0
    assert [job["JobState"] for job in jobs_of(cluster, long_project)] == ["COMPLETED"] * 2


def test_a_job_that_ran_out_of_memory_asks_for_more(
    long_project: Project, cluster: Cluster, undisturbed
):
    """300 MB do not hold torch, and more of it does."""
    resources = ("--set-resources", "train:mem_mb=300*attempt**2", "--")
    end(begin(long_project, cluster, *resources, *scores(RUNS[0])))
    check(long_project, undisturbed, RUNS[:1])
    memory = [job["MinMemoryNode"] for job in jobs_of(cluster, long_project, "train")]
    assert memory[:2] == ["300M", "1200M"]


def test_a_training_that_runs_out_of_memory_goes_on_from_its_state(
    long_project: Project, cluster: Cluster, undisturbed
):
    """After its first saved state it needs 700 MB more than the first attempt has; the second has
    twice as much.
    """
    long_project.edit("catalogue/scales.yaml", "memory: 5000", "memory: 1000")
    hold = "python -c 'x = bytes(range(100)) * 7_000_000; import time; time.sleep(9)'"
    more = f"(until compgen -G '{{params.state}}/step-*' >/dev/null; do sleep 0.2; done; {hold}) & "
    command = '"python -m workflow_scripts train'
    long_project.edit("rules/train.smk", command, f'"{more}"\n        {command}')
    said = end(begin(long_project, cluster, *scores(RUNS[0])))
    assert said.count("✗ train") == 1
    check(long_project, undisturbed, RUNS[:1])
    assert resumed(long_project, RUNS[0]) == 1
    memory = [job["MinMemoryNode"] for job in jobs_of(cluster, long_project, "train")]
    assert memory == ["1000M", "2000M"]


def test_slurmd_alone_may_go_away_in_mid_run(long_project: Project, cluster: Cluster, undisturbed):
    """Its steps continue, and it finds them when it is back: for SLURM the node was late to answer."""
    process = begin(long_project, cluster, *scores(RUNS[0]))
    wait_for_state(long_project, RUNS[0], process)
    node = jobs_of(cluster, long_project, "train")[0]["NodeList"]
    cluster.kill(f"slurmd-{node}")
    time.sleep(10)
    assert process.poll() is None
    cluster.start_slurmd(node)
    said = end(process)
    assert "✗" not in said
    check(long_project, undisturbed, RUNS[:1])
    assert resumed(long_project, RUNS[0]) == 0
    assert [(job["JobState"], job["Restarts"]) for job in jobs_of(cluster, long_project)] == [
        ("COMPLETED", "0")
    ] * 2


def test_a_node_that_dies_costs_nothing_but_time(
    long_project: Project, cluster: Cluster, undisturbed
):
    """slurmd, its steps and their processes get SIGKILL: a machine that lost its power."""
    process = begin(long_project, cluster, *scores(RUNS[0]))
    wait_for_state(long_project, RUNS[0], process)
    node = jobs_of(cluster, long_project, "train")[0]["NodeList"]
    cluster.kill(f"slurmd-{node}")
    for victim in of_node(node):
        os.kill(victim, signal.SIGKILL)
    wait(lambda: training(long_project, RUNS[0]) is None, "the training survives its node")
    try:
        end(process)
    finally:
        cluster.start_slurmd(node)
    check(long_project, undisturbed, RUNS[:1])
    assert resumed(long_project, RUNS[0]) == 1


def of_node(node: str) -> list[int]:
    """The processes of jobs on a node and the step daemons above them, daemons first."""
    others = {
        process for process, given in environments().items() if f"SLURMD_NODENAME={node}" in given
    }
    daemons = set()
    for process in others:
        with suppress(OSError, KeyError):
            status = dict(
                line.split(":\t", 1)
                for line in Path(f"/proc/{process}/status").read_text().splitlines()
            )
            if Path(f"/proc/{status['PPid']}/comm").read_text().strip() == "slurmstepd":
                daemons.add(int(status["PPid"]))
    return [*daemons, *others - daemons]


def test_a_preempted_training_is_started_again_by_slurm(
    long_project: Project, cluster: Cluster, undisturbed
):
    """A job of more urgency takes every GPU, and gives them back."""
    process = begin(long_project, cluster, *scores(RUNS[0]))
    wait_for_state(long_project, RUNS[0], process)
    whole = (
        "--partition=urgent",
        "--gpus=4",
        "--nodes=2",
        "--mem=100",
        "--output=/dev/null",
        "--wrap=sleep 3000",
    )
    urgent = cluster.run("sbatch", "--parsable", *whole).strip()
    wait(
        lambda: cluster.shown(urgent)["JobState"] == "RUNNING",
        "nothing gives way to the urgent job",
    )
    wait(lambda: training(long_project, RUNS[0]) is None, "the training continues")
    cluster.run("scancel", urgent)
    said = end(process)
    assert "✗" not in said
    check(long_project, undisturbed, RUNS[:1])
    (job,) = jobs_of(cluster, long_project, "train")
    assert (resumed(long_project, RUNS[0]), job["Restarts"]) == (1, "1")


def test_snakemake_in_a_job_that_is_killed_and_submitted_again(
    long_project: Project, cluster: Cluster, undisturbed
):
    """The second job waits for what the first has left."""
    call = shlex.join(command(*scores(RUNS[0])))
    main = [
        "sbatch",
        "--parsable",
        "--mem=1000",
        f"--chdir={long_project.root}",
        "--output=main-%j.log",
        f"--wrap={call}",
    ]
    first = cluster.run(*main).strip()
    wait(lambda: state_saved(long_project, RUNS[0]), "no state is saved")
    with held(long_project, RUNS[0]):
        # Without cgroups SLURM would leave Snakemake alive when its job is killed.
        for process in [
            process for process, given in environments().items() if f"SLURM_JOB_ID={first}" in given
        ]:
            os.kill(process, signal.SIGKILL)
        wait(lambda: cluster.shown(first)["JobState"] == "FAILED", "the job outlives Snakemake")
        second = cluster.run(*main).strip()
        log = long_project.root / f"main-{second}.log"
        wait(
            lambda: log.exists() and "An earlier Snakemake left" in log.read_text(),
            "the job is not waited for",
        )
    wait(
        lambda: cluster.shown(second)["JobState"] not in ("PENDING", "RUNNING", "COMPLETING"),
        "no end",
    )
    said = log.read_text()
    assert cluster.shown(second)["JobState"] == "COMPLETED", said
    assert "running; waiting for them" in said
    check(long_project, undisturbed, RUNS[:1])
    assert resumed(long_project, RUNS[0]) == 0
    assert [job["JobState"] for job in jobs_of(cluster, long_project, "train")] == ["COMPLETED"]


def test_ctrl_c_ends_the_jobs_and_the_next_call_goes_on(
    long_project: Project, cluster: Cluster, undisturbed
):
    process = begin(long_project, cluster, *scores(RUNS[0]))
    wait_for_state(long_project, RUNS[0], process)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=HANGS)[1]
    assert (
        process.returncode != 0
        and "run the same command again to continue" in said
        and "Traceback" not in said
    )
    assert not list((long_project.root / ".snakemake").glob("locks/*"))
    end(begin(long_project, cluster, *scores(RUNS[0])))
    check(long_project, undisturbed, RUNS[:1])
    assert len(jobs_of(cluster, long_project, "train")) == 1 + resumed(long_project, RUNS[0])


def test_ctrl_c_while_slurm_is_asked_ends_the_jobs_too(
    long_project: Project, cluster: Cluster, tmp_path: Path
):
    """During a poll the executor's list of running jobs is empty."""
    asked = tmp_path / "asked"
    squeue = tmp_path / "bin/squeue"
    squeue.parent.mkdir()
    usual_path = cluster.environment["PATH"]
    usual_squeue = shutil.which("squeue", path=usual_path)
    squeue.write_text(f'#!/bin/sh\ntouch {asked}; sleep 5; exec {usual_squeue} "$@"\n')
    squeue.chmod(0o755)
    path = f"{squeue.parent}:{usual_path}"
    process = begin(long_project, cluster, *scores(RUNS[0]), PATH=path)
    wait_for_state(long_project, RUNS[0], process)
    asked.unlink()
    wait(asked.exists, "SLURM is not asked")
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=HANGS)[1]
    assert process.returncode != 0 and "Traceback" not in said
    wait(
        lambda: {job["JobState"] for job in jobs_of(cluster, long_project)} == {"CANCELLED"},
        "a job is still there",
    )
