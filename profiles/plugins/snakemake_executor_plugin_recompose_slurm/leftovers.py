"""Wait for jobs that a killed Snakemake left running on the cluster.

Those that have not started are cancelled. ./reproduce runs this file before Snakemake, which would
submit these jobs again.
"""

import hashlib
import os
import re
import subprocess
import sys
import time
from typing import NamedTuple

# In all other states a job runs, waits, or is held until somebody releases it.
ENDED = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
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
    """Return the start of the names of all jobs of this working directory.

    It is the same on any login node.
    """
    folder = os.path.realpath(".")
    return f"recompose-{hashlib.sha256(folder.encode()).hexdigest()[:12]}"


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
    if process.returncode != 0:
        return None
    return process.stdout


def list_queue(*options: str) -> list[Job] | None:
    """Return the jobs, in any state, that options of squeue select.

    None if SLURM does not answer.
    """
    command = ("squeue", "--noheader", "--states=all", f"--format={FORMAT}", *options)
    answer = run_slurm_command(*command)
    if answer is None:
        return None
    return parse_queue(answer)


def parse_queue(answer: str) -> list[Job]:
    """Parse the lines of squeue in FORMAT.

    Other lines are passed over: the notice of a site, or the second line of the comment of
    somebody's job.
    """
    jobs = []
    for line in answer.splitlines():
        fields = line.split("|", 4)
        if len(fields) != 5:
            continue
        job = Job(*fields)
        if JOB_NUMBER.fullmatch(job.number) and STATE.fullmatch(job.state):
            jobs.append(job)
    return jobs


def parse_end(answer: str) -> str | None:
    """Return the state in the answer of `sacct -Xn --parsable2 --format=State`.

    It is CANCELLED of "CANCELLED by 0". Lines that are no state are passed over. None if there is
    none.
    """
    for line in answer.splitlines():
        state, *details = line.split() or [""]
        if STATE.fullmatch(state) and details[:1] in ([], ["by"]):
            return state
    return None


def find_leftovers() -> list[Job] | None:
    """Return the jobs of this working directory that have not ended.

    None if SLURM does not answer.
    """
    queue = list_queue("--me")
    if queue is None:
        return None
    prefix = f"{job_name_prefix()}_"
    return [job for job in queue if job.name.startswith(prefix) and job.state not in ENDED]


def main() -> None:
    """Return when there are no such jobs, or when SLURM does not answer.

    The executor then reports that SLURM does not.
    """
    has_told = False
    while leftovers := find_leftovers():
        waiting = [job.number for job in leftovers if job.state == "PENDING"]
        if waiting:
            run_slurm_command("scancel", *waiting)
        running = " ".join(job.number for job in leftovers if job.state != "PENDING")
        if running and not has_told:
            print(
                f"An earlier Snakemake left jobs {running} running; waiting for them. "
                f"To stop them instead (trainings save their state): scancel {running}",
                file=sys.stderr,
                flush=True,
            )
            has_told = True
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
