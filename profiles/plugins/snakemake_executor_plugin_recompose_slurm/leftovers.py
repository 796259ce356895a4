"""Wait for jobs that a killed Snakemake left running on the cluster, and cancel those that have not begun.

./reproduce runs this file before Snakemake, which decides at its start what to run: it would submit these jobs again.
"""

import hashlib
import os
import subprocess
import sys
import time
from typing import NamedTuple

ALIVE = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "RESIZING", "STAGE_OUT"}
LOOK_SECONDS = 5


class Job(NamedTuple):
    """A line of squeue."""

    number: str
    state: str
    reason: str
    name: str
    comment: str


def prefix() -> str:
    """Begins the name of every job of this working directory and of no other, on any login node."""
    return f"recompose-{hashlib.sha256(os.path.realpath('.').encode()).hexdigest()[:12]}"


def ask(*command: str) -> str | None:
    """What a SLURM command prints; None when it fails or does not answer."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def queue(*which: str) -> list[Job] | None:
    """The jobs, in any state, that `which` names; None when SLURM does not answer."""
    said = ask("squeue", "--noheader", "--states=all", "--format=%i|%T|%r|%j|%k", *which)
    return None if said is None else [Job(*line.split("|", 4)) for line in said.splitlines()]


def find_leftovers() -> list[Job] | None:
    """The jobs of this working directory that have not ended; None when SLURM does not answer."""
    found = queue("--me")
    if found is None:
        return None
    return [job for job in found if job.name.startswith(f"{prefix()}_") and job.state in ALIVE]


def main() -> None:
    """Return when there are no such jobs, or when SLURM does not answer: the executor then says so."""
    told = False
    while left := find_leftovers():
        if waiting := [job.number for job in left if job.state == "PENDING"]:
            ask("scancel", *waiting)
        running = " ".join(job.number for job in left if job.state != "PENDING")
        if running and not told:
            print(
                f"An earlier call left jobs {running} running; waiting for them. To stop them instead (trainings save "
                f"their state): scancel {running}",
                file=sys.stderr,
                flush=True,
            )
            told = True
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    main()
