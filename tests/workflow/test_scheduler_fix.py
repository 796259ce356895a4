"""How much Snakemake has to do while jobs wait for a core."""

import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.scheduling.job_scheduler import JobScheduler

from workflow_scripts.workflow.scheduler_fix import limit_scheduler_timers

ROOT = Path(__file__).parents[2]
JOBS = 60
SNAKEFILE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from workflow_scripts.workflow.scheduler_fix import limit_scheduler_timers
%s
rule all:
    input: expand("threads/{{job}}", job=range({JOBS}))
rule job:
    output: "threads/{{job}}"
    shell: "sed -n 's/Threads:\\t//p' /proc/$PPID/status > {{output}}"
"""


def most_threads(folder: Path, line: str) -> int:
    """The most threads that Snakemake had during one of its jobs, with `line` in its Snakefile."""
    folder.mkdir()
    (folder / "Snakefile").write_text(SNAKEFILE % line)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--scheduler", "greedy"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return max(int(path.read_text()) for path in folder.glob("threads/*"))


def test_finished_jobs_leave_no_timers(tmp_path: Path):
    assert most_threads(tmp_path / "ours", "limit_scheduler_timers()") < 15
    # Where this is no longer so, Snakemake is fixed, and workflow/scheduler_fix.py can go.
    assert most_threads(tmp_path / "snakemake", "") > 15


def test_one_timer_wakes_the_scheduler_once_and_keeps_no_process_alive(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(JobScheduler, "_schedule_reevalutation", None)  # put back at the end
    limit_scheduler_timers()
    scheduler = SimpleNamespace(_open_jobs=threading.Semaphore(0))
    for _ in range(2):
        before = set(threading.enumerate())
        for _ in range(3):
            JobScheduler._schedule_reevalutation(scheduler, 0.3)
        (timer,) = set(threading.enumerate()) - before
        assert timer.daemon
        assert scheduler._open_jobs.acquire(timeout=20)
        timer.join(20)
        assert not scheduler._open_jobs.acquire(blocking=False)
