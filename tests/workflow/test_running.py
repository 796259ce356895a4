"""The record of the Snakemake that works in a folder: who is alive, who comes first, and calls that leave none."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.workflow.projects import ROOT, Project, copied, plain_environment, whole_copy
from workflow_scripts.running import RECORD, Running, boot, leave, read, started, take, take_turn

RUN = "scan-jump-x2/transformer/default/seed-1"
SCORES = f"results/demo/runs/{RUN}/eval/scores.csv"
RESULTS = ("checkpoint/model.safetensors", "training.csv", "eval/predictions.parquet", "eval/scores.csv")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))  # no squeue
    RECORD.parent.mkdir()
    return tmp_path


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def record(process: int, **changed: str) -> Running:
    facts = {"host": socket.gethostname(), "boot": boot(), "process": str(process), "started": started(str(process))}
    found = Running(**{**facts, "job": "-", "call": "1", **changed})
    RECORD.write_text(" ".join(vars(found).values()) + "\n")
    return found


@pytest.mark.usefixtures("folder")
def test_a_process_that_runs_keeps_its_record_until_it_ends(sleeper: subprocess.Popen):
    before = record(sleeper.pid)
    lock = Path(".snakemake/locks/0.input.lock")
    lock.parent.mkdir()
    lock.touch()
    assert take("7") == take_turn("7") == before == read()
    sleeper.kill()
    while before == (other := take("7")):  # it becomes a zombie, which has not been waited for
        time.sleep(0.01)
    assert other is None and not lock.exists()
    assert (read().process, read().call) == (str(os.getpid()), "7")
    leave("8")
    assert read()
    leave("7")
    assert not RECORD.exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("changed", [{"boot": "of-yesterday"}, {"started": "1"}])
def test_another_process_with_the_same_id_is_not_taken_for_the_one_that_was_recorded(sleeper, changed):
    record(sleeper.pid, **changed)
    assert take("7") is None
    assert read().process == str(os.getpid())


@pytest.mark.usefixtures("folder")
def test_of_another_host_only_slurm_can_tell(sleeper: subprocess.Popen, monkeypatch: pytest.MonkeyPatch):
    other = record(sleeper.pid, host="elsewhere")
    assert take_turn("7") == other
    other = record(sleeper.pid, host="elsewhere", job="12")
    assert take_turn("7") == other, "without squeue nothing says that the job has ended"
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    assert take_turn("7") is None, "it is this very job, started again"


TAKE = """
from workflow_scripts.running import take
import sys, time
sys.stdin.read()
print(take('7') is None, flush=True)
time.sleep(60)
"""


def test_of_many_at_once_one_takes_the_record_of_a_dead_one(folder: Path):
    for _ in range(3):
        record(2**22 + 1, started="1")  # no process has so high an id
        calls = [
            subprocess.Popen(
                [sys.executable, "-c", TAKE],
                env={"PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(6)
        ]
        for call in calls:
            call.stdin.close()
        said = [call.stdout.readline().strip() for call in calls]
        assert sorted(said) == ["False"] * 5 + ["True"]
        assert read().process == str(calls[said.index("True")].pid)
        for call in calls:
            call.kill()
            call.wait()
            call.stdout.close()
    assert sorted(path.name for path in (folder / ".snakemake").iterdir()) == ["running", "running.lock"]


@pytest.mark.parametrize("arguments", [["-n"], ["-np"], ["--summary"], ["--dry-run", "--", SCORES]])
def test_a_call_that_makes_nothing_leaves_no_record(project: Project, arguments: list[str]):
    call = subprocess.Popen(["./reproduce", *arguments], cwd=project.root, stdout=subprocess.DEVNULL)
    while call.poll() is None:
        assert not (project.root / RECORD).exists()
        time.sleep(0.002)
    assert call.returncode == 0


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """What one call has made that was alone."""
    project = copied(tmp_path_factory.mktemp("alone"))
    with plain_environment():
        assert project.reproduce(SCORES).returncode == 0
    return project


def test_beside_a_dry_run_a_call_sees_to_everything(alone: Project, tmp_path: Path):
    """A dry run that stands still: the other call takes over results without records, and ends."""
    project = whole_copy(alone, tmp_path)
    for file in (project.root / ".snakemake/metadata").iterdir():
        file.unlink()
    dry = subprocess.Popen(["./reproduce", "-n"], cwd=project.root, stdout=subprocess.DEVNULL, start_new_session=True)
    time.sleep(1)
    os.killpg(dry.pid, signal.SIGSTOP)
    try:
        done = project.reproduce(SCORES)
    finally:
        os.killpg(dry.pid, signal.SIGKILL)
        dry.wait()
    assert done.returncode == 0, done.stderr
    assert "adopted" in done.stdout and "Nothing to be done" in done.stderr


def test_a_call_on_another_host_is_named_with_the_file_to_delete(project: Project):
    (project.root / ".snakemake").mkdir()
    (project.root / RECORD).write_text("elsewhere boot 77 5 - 76\n")
    done = project.reproduce("results/demo/data/scan-jump-x2/dataset.json")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "elsewhere" in line]
    assert "process 77 on elsewhere" in line and f"delete {RECORD}" in line
    assert (project.root / RECORD).exists(), "it is not this call's"


def results(root: Path) -> list[bytes]:
    return [(root / "results/demo/runs" / RUN / file).read_bytes() for file in RESULTS]


@pytest.mark.quick_faults
def test_of_two_calls_at_once_the_first_makes_everything(project: Project, alone: Project):
    """Both are started in the same instant; the results are those of a call that was alone."""
    calls = [
        subprocess.Popen(["./reproduce", SCORES], cwd=project.root, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = [call.communicate(timeout=300)[1] for call in calls]
    codes = [call.returncode for call in calls]
    assert 0 in codes, said
    first = codes.index(0)
    assert "3 jobs done" in said[first] or "3 jobs done" in said[1 - first], said
    if codes[1 - first]:
        assert "lock" in said[1 - first].lower() and "Traceback" not in said[1 - first]
    found = results(project.root)
    assert not (project.root / RECORD).exists() and not list((project.root / "results/demo/state").rglob("step-*"))
    assert results(alone.root) == found
