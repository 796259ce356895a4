"""Wait for jobs that a killed Snakemake left running on the cluster, and cancel those that have not started.

./reproduce runs this file before Snakemake, which would submit these jobs again.
"""

import hashlib
import os
import subprocess
import sys
import time
from typing import NamedTuple

ALIVE = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "RESIZING", "STAGE_OUT"}
POLL_SECONDS = 5


class Job(NamedTuple):
    """A line of squeue."""

    number: str
    state: str
    reason: str
    name: str
    comment: str


def job_name_prefix() -> str:
    """Return the start of the names of all jobs of this working directory, the same on any login node."""
    return f"recompose-{hashlib.sha256(os.path.realpath('.').encode()).hexdigest()[:12]}"


def run_slurm_command(*command: str) -> str | None:
    """Return the output of a SLURM command; None if it fails or does not answer."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def list_queue(*which: str) -> list[Job] | None:
    """Return the jobs, in any state, that `which` selects; None if SLURM does not answer."""
    said = run_slurm_command("squeue", "--noheader", "--states=all", "--format=%i|%T|%r|%j|%k", *which)
    return None if said is None else [Job(*line.split("|", 4)) for line in said.splitlines()]


def find_leftovers() -> list[Job] | None:
    """Return the jobs of this working directory that have not ended; None if SLURM does not answer."""
    found = list_queue("--me")
    if found is None:
        return None
    return [job for job in found if job.name.startswith(f"{job_name_prefix()}_") and job.state in ALIVE]


def main() -> None:
    """Return when there are no such jobs, or when SLURM does not answer, which the executor then reports."""
    told = False
    while left := find_leftovers():
        if waiting := [job.number for job in left if job.state == "PENDING"]:
            run_slurm_command("scancel", *waiting)
        running = " ".join(job.number for job in left if job.state != "PENDING")
        if running and not told:
            print(
                f"An earlier Snakemake left jobs {running} running; waiting for them. To stop them instead (trainings "
                f"save their state): scancel {running}",
                file=sys.stderr,
                flush=True,
            )
            told = True
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    main()
