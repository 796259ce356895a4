"""Wait for jobs that a killed Snakemake left running on the cluster, and cancel those that have not started.

./reproduce runs this file before Snakemake, which would submit these jobs again.
"""

import hashlib
import os
import re
import subprocess
import sys
import time
from typing import NamedTuple

ALIVE = {
    "PENDING",
    "CONFIGURING",
    "RUNNING",
    "COMPLETING",
    "SUSPENDED",
    "REQUEUED",
    "RESIZING",
    "STAGE_OUT",
}
POLL_SECONDS = 5
FORMAT = "%i|%T|%r|%j|%k"  # number, state, reason, name, comment
JOB_NUMBER = re.compile(r"\d+(_\S+)?")  # of a job, or of one or several of an array
STATE = re.compile(r"[A-Z_]+")


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
        process = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=50,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout if process.returncode == 0 else None


def list_queue(*which: str) -> list[Job] | None:
    """Return the jobs, in any state, that `which` selects; None if SLURM does not answer."""
    answer = run_slurm_command("squeue", "--noheader", "--states=all", f"--format={FORMAT}", *which)
    return None if answer is None else parse_queue(answer)


def parse_queue(answer: str) -> list[Job]:
    """Parse the lines of squeue in FORMAT.

    Other lines are passed over: the notice of a site, or the second line of the comment of somebody's job.
    """
    jobs = []
    for line in answer.splitlines():
        fields = line.split("|", 4)
        if len(fields) == 5 and JOB_NUMBER.fullmatch(fields[0]) and STATE.fullmatch(fields[1]):
            jobs.append(Job(*fields))
    return jobs


def parse_end(answer: str) -> str | None:
    """Return the state in the answer of `sacct -Xn --parsable2 --format=State`, such as CANCELLED of "CANCELLED by 0".

    Lines that are no state are passed over. None if there is none.
    """
    for line in answer.splitlines():
        words = line.split()
        if words and STATE.fullmatch(words[0]) and words[1:2] in ([], ["by"]):
            return words[0]
    return None


def find_leftovers() -> list[Job] | None:
    """Return the jobs of this working directory that have not ended; None if SLURM does not answer."""
    queue = list_queue("--me")
    if queue is None:
        return None
    return [
        job for job in queue if job.name.startswith(f"{job_name_prefix()}_") and job.state in ALIVE
    ]


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
