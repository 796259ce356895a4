"""Runs that fail, are interrupted or are killed: what the terminal says, and that the next call goes on."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick_faults
RUN = "scan-jump-x2/transformer/default/seed-1"
TARGET = f"results/demo/runs/{RUN}/run.json"


@pytest.fixture
def long_run(project):
    """A copy whose demo trains far longer than a test."""
    project.edit("catalogue/scales.yaml", "max_steps: 100\n", "max_steps: 100000\n")
    return project


def started(project) -> subprocess.Popen[str]:
    """./reproduce in a process group of its own, as a terminal would have it, when its training has begun."""
    process = subprocess.Popen(
        ["./reproduce", TARGET], cwd=project.root, start_new_session=True, text=True, stderr=subprocess.PIPE
    )
    log = project.root / f"results/demo/logs/train/{RUN}.log"
    deadline = time.monotonic() + 120
    while not (log.exists() and log.read_text()):
        assert time.monotonic() < deadline and process.poll() is None, "the training did not begin"
        time.sleep(0.2)
    return process


def wait_for_end_of(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=120)[1]


def saved_state(root: Path) -> list[Path]:
    return list((root / f"results/demo/state/{RUN}").glob("*/step-*"))


def test_ctrl_c_saves_the_training_and_leaves_no_lock(long_run):
    process = started(long_run)
    os.killpg(process.pid, signal.SIGINT)
    said = wait_for_end_of(process)
    assert process.returncode != 0
    assert "the same command goes on from here" in said and "Traceback" not in said
    assert saved_state(long_run.root)
    assert not list((long_run.root / ".snakemake").glob("locks/*"))
    assert {rule for rule, _ in long_run.planned(TARGET)} == {"train"}


def test_killed_with_its_locks_goes_on_at_the_next_call(long_run):
    process = started(long_run)
    os.killpg(process.pid, signal.SIGKILL)
    wait_for_end_of(process)
    assert list((long_run.root / ".snakemake").glob("locks/*")), "this test needs a lock left behind"
    long_run.edit("catalogue/scales.yaml", "max_steps: 100000\n", "max_steps: 3\n")
    done = long_run.reproduce(TARGET)
    assert done.returncode == 0, done.stderr
    assert "LockException" not in done.stderr
    assert (long_run.root / TARGET).exists()


def test_a_second_call_beside_a_running_one_is_refused(long_run):
    process = started(long_run)
    try:
        beside = long_run.reproduce(TARGET)
        assert beside.returncode == 1
        assert "lock" in beside.stderr.lower()
        assert process.poll() is None
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        wait_for_end_of(process)


def test_failed_job_shows_why_and_where(project):
    """A prepared data set that has lost its vocabulary: the command's own error line, its log, the exit code."""
    assert project.reproduce("results/demo/data/scan-jump-x2/dataset.json").returncode == 0
    (project.root / "results/demo/data/scan-jump-x2/vocabulary.json").unlink()
    done = project.reproduce(TARGET)
    assert done.returncode == 1
    log = project.root / f"results/demo/logs/train/{RUN}.log"
    last = log.read_text().splitlines()[-1]
    assert last.startswith("error: ") and "vocabulary.json" in last
    assert f"    {last}" in done.stderr.splitlines()
    assert str(log.relative_to(project.root)) in done.stderr
    assert "1 failed, 0 of 1 job done" in done.stderr
    assert "Traceback" not in done.stderr
