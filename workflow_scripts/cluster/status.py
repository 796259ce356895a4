"""What Snakemake is told of its jobs: `number|state` a line. `squeue` and `sacct` in bin/ call this.

The SLURM executor waits for ever for a job of which it never hears an end, and forgets jobs when SLURM does not answer.
So it always gets an answer here, and every job that will not end by itself is given an end:

- While SLURM does not answer the answer is empty, which the executor takes for "all still running".
- A job that SLURM no longer knows has failed.
- A job that SLURM will never start is cancelled, and its log says why.

It puts off its next look by 10 s more whenever no job has ended, so most jobs would have ended long before. An answer
therefore waits a while for a job to end.
"""

import subprocess
import sys
import time
from pathlib import Path

from workflow_scripts.cluster.slurm import QueuedJob, ask, queue, real, remembered

# After so long without an answer of SLURM the run ends with an error.
PATIENCE_SECONDS = 24 * 3600
# An answer waits at most so long for news, and looks so often. The executor gives up after 60 s, of which a busy
# slurmctld may need some.
NEWS_SECONDS, PAUSE_SECONDS = 30, 1
# So many looks in a row must miss a job: a slurmctld that has just started may not have read all of them.
LOOKS = 5
RUNNING = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "RESIZING", "STAGE_OUT")
# Why a waiting job will wait for ever, unless somebody changes the job or the cluster.
NEVER = (
    "AssocMaxWallDurationPerJobLimit",
    "BadConstraints",
    "InvalidAccount",
    "InvalidQOS",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "QOSMaxWallDurationPerJobLimit",
    "launch_failed_requeued_held",
)


def look(run: str, record: dict, now: float) -> dict[str, str]:
    """State of every job of a run, by its number. `record` is what is remembered, and is brought up to date."""
    jobs, found = record["jobs"], queue("--name", run)
    if found is None:
        record["silent_since"] = record["silent_since"] or now
        if now - record["silent_since"] <= PATIENCE_SECONDS:
            return {}
        return {number: "FAILED" if job["state"] in RUNNING else job["state"] for number, job in jobs.items()}
    record["silent_since"] = None
    for job in found:
        before = jobs.get(job.number, {"state": None})["state"]
        state = job.state
        if reason := never(job):
            cancel(job.number, reason)
            state = "CANCELLED"
        if state == before == "PREEMPTED":
            # The executor expects SLURM to start it again: by now it would stand here as PENDING.
            state = "CANCELLED"
        jobs[job.number] = {"state": state, "missed": 0}
    for number in jobs.keys() - {job.number for job in found}:
        if jobs[number]["state"] in RUNNING:
            jobs[number]["missed"] += 1
            if jobs[number]["missed"] >= LOOKS:
                jobs[number]["state"] = accounted(number) or "FAILED"
    return {number: job["state"] for number, job in jobs.items()}


def never(job: QueuedJob) -> str:
    """Why a job will wait for ever; empty if it will not."""
    reason = job.reason.strip("()").replace(" ", "_")
    return reason if job.state == "PENDING" and reason in NEVER else ""


def accounted(number: str) -> str | None:
    """How a job ended, where the cluster keeps accounts; sacct says "CANCELLED by <user>"."""
    said = ask("sacct", "-X", "--parsable2", "--noheader", "--format=State", f"--jobs={number}")
    return said.split()[0] if said and said.split()[0] not in RUNNING else None


def cancel(number: str, reason: str) -> None:
    """Cancel a job that waits in vain, and say so where an error message points to."""
    told = ask("scontrol", "show", "job", number) or ""
    subprocess.run([real("scancel"), number], stdin=subprocess.DEVNULL, capture_output=True)
    for line in told.splitlines():
        if line.strip().startswith("StdOut="):
            with open(Path(line.split("=", 1)[1]), "a") as log:
                log.write(f"error: SLURM would never start this job ({reason}); docs/cluster.md: how to ask for less\n")


def wait_for_news(run: str, told: dict[str, str]) -> None:
    """Return when a job has ended that ran by the last answer, `told`, or will never start."""
    ran = {number for number, state in told.items() if state in RUNNING}
    deadline = time.monotonic() + NEWS_SECONDS
    while ran and time.monotonic() < deadline and (found := queue("--name", run)) is not None:
        if ran - {job.number for job in found if job.state in RUNNING and not never(job)}:
            return
        time.sleep(PAUSE_SECONDS)


def main() -> None:
    """Print the states of the jobs of the run that is the only argument."""
    with remembered(sys.argv[1]) as record:
        told = {number: job["state"] for number, job in record["jobs"].items()}
    try:
        wait_for_news(sys.argv[1], told)
    except KeyboardInterrupt:
        # Snakemake is interrupted too, and forgets to cancel the jobs that it is just asking for.
        subprocess.run([real("scancel"), f"--name={sys.argv[1]}"], stdin=subprocess.DEVNULL, capture_output=True)
    with remembered(sys.argv[1]) as record:
        for number, state in look(sys.argv[1], record, time.time()).items():
            print(f"{number}|{state}")


if __name__ == "__main__":
    main()
