"""The record of the Snakemake that works in this folder: what a call of ./reproduce beside it, or after it, goes by.

One line of `.snakemake/running`: host, its boot, process, when the process was started, the SLURM job that it is part
of, and the call of ./reproduce above it. `python -m workflow_scripts.running CALL` takes the record of that call away.
"""

import fcntl
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path

from workflow_scripts.cluster.slurm import ANSWER_SECONDS, real

RECORD = Path(".snakemake/running")
LOCKS = Path(".snakemake/locks")  # Snakemake's own, while it runs jobs
LOOK_SECONDS = 0.2
WAITING_OR_RUNNING = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED"}


@dataclass(frozen=True)
class Running:
    """A Snakemake at work; `-` stands for what is not known."""

    host: str
    boot: str
    process: str
    started: str
    job: str
    call: str

    def dead(self) -> bool:
        """Whether it has certainly ended. Of another host only SLURM can tell; its silence does not count as an end."""
        if self.host == socket.gethostname():
            return self.boot != boot() or self.started != started(self.process)
        return self.job != "-" and job_ended(self.job)

    def __str__(self) -> str:
        part = f", in SLURM job {self.job}" if self.job != "-" else ""
        return f"process {self.process} on {self.host}{part}"


def boot() -> str:
    """Names the time since this machine was started, so that a process id of before is not taken for one of now."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "-"


def started(process: str) -> str:
    """Ticks from the boot to the start of a process: another process may get its id. Empty if it does not run."""
    if not Path("/proc/self/stat").exists():
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            return ""
        except PermissionError:
            pass
        return "-"
    try:
        state, *fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else fields[18]  # one that has ended stays listed until it is waited for


def job_ended(job: str) -> bool:
    """Whether a SLURM job has ended, or is this very one, which SLURM has started again."""
    if job == os.environ.get("SLURM_JOB_ID"):
        return True
    look = [real("squeue"), "--noheader", "--states=all", "--format=%T", f"--jobs={job}"]
    try:
        said = subprocess.run(
            look, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=ANSWER_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    if said.returncode:
        return "Invalid job id" in said.stderr
    return said.stdout.strip() not in WAITING_OR_RUNNING


def read() -> Running | None:
    """What is recorded; None if nothing that can be understood is."""
    try:
        return Running(*RECORD.read_text().split())
    except (OSError, TypeError):
        return None


@contextmanager
def alone() -> Iterator[None]:
    """While the record is looked at and changed no other call does so, where the file system has locks."""
    RECORD.parent.mkdir(exist_ok=True)
    with open(RECORD.with_name("running.lock"), "a") as stream:
        with suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def take(call: str) -> Running | None:
    """Record this process, under a call of ./reproduce, and take away the locks of one that was killed; returns the one
    that is at work instead, if there is one."""
    process = str(os.getpid())
    job = os.environ.get("SLURM_JOB_ID", "-")
    mine = Running(socket.gethostname(), boot(), process, started(process), job, call)
    part = RECORD.with_name(f"running.{mine.host}.{process}")
    with alone():
        before = read()
        if before and not before.dead():
            return before
        if before:
            # As `snakemake --unlock` does, but here no other call can come between.
            for lock in LOCKS.glob("*"):
                lock.unlink()
        RECORD.unlink(missing_ok=True)
        part.write_text(" ".join(astuple(mine)) + "\n")
        try:
            os.link(part, RECORD)  # fails where there is one by now: not every file system has locks
        except FileExistsError:
            return read()
        except OSError:  # no hard links there
            os.replace(part, RECORD)
        finally:
            part.unlink(missing_ok=True)
    return None


def take_turn(call: str) -> Running | None:
    """The same; where another process gets ready returns when it has begun its jobs or has ended, so that of two calls
    at once the first is served, and Snakemake tells the other whether both can be."""
    said = False
    while other := take(call):
        if other.host != socket.gethostname() or any(LOCKS.glob("*")):
            return other
        if not said:
            print(f"Another ./reproduce gets ready in this folder ({other}); waiting for it", file=sys.stderr)
            said = True
        time.sleep(LOOK_SECONDS)
    return None


def leave(call: str) -> None:
    """Take away the record of a call of ./reproduce that has ended on this host."""
    with alone():
        found = read()
        if found and (found.host, found.call) == (socket.gethostname(), call):
            RECORD.unlink()


if __name__ == "__main__":
    with suppress(OSError):  # in a folder that cannot be written there is no record, or a dead one
        leave(sys.argv[1])
