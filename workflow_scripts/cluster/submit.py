"""Submits a job as often as it takes while SLURM does not answer. `sbatch` in bin/ calls this, with sbatch's arguments.

To the SLURM executor a submission that fails is a job that failed: a slurmctld that is away for a minute would cost
every job that becomes ready all its retries.

What the executor has no option for is added: a training whose state takes long to save is told to do so early enough,
and a job's own Snakemake does not wait a second for more jobs when it has carried out its only one.
"""

import os
import re
import subprocess
import sys
import time

from workflow_scripts.cluster.slurm import EARLY, queue, real, remembered
from workflow_scripts.files import read_json

# Then the failure goes to Snakemake, as an error.
PATIENCE_SECONDS = 3600
WAIT_SECONDS = 10
# What sbatch says when slurmctld does not answer, or not in time; any other failure would come again.
NO_ANSWER = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Zero Bytes were transmitted",
    "Connection refused",
    "Resource temporarily unavailable",
    "Unable to establish control",
    "Slurm temporarily unable to accept job",
)


def submitted(run: str, comment: str, known: set[str]) -> str | None:
    """The number of a job that SLURM took although sbatch did not hear so; None if there is none."""
    found = queue("--name", run) or []
    return next((job.number for job in found if job.comment == comment and job.number not in known), None)


def early_signal(command: str) -> list[str]:
    """The option that makes SLURM send SIGTERM early, if a command is of a training that needs it. Without `B:` the
    signal goes to the job's step, as at the time limit, and not to the shell above it."""
    wildcards = r"scale=([^,']+),task=([^,']+),method=([^,']+),variant=([^,']+),seed="
    trained = re.search(f"--target-jobs 'train:{wildcards}", command)
    if not trained or not EARLY.exists():
        return []
    seconds = read_json(EARLY).get(f"{'/'.join(trained.groups())}/seed-0")
    return [f"--signal=TERM@{seconds}"] if seconds else []


def main() -> int:
    """Run sbatch; returns its exit code, and prints what it printed."""
    arguments, parent, began = sys.argv[1:], os.getppid(), time.monotonic()
    run, comment = (arguments[arguments.index(option) + 1] for option in ("--job-name", "--comment"))
    # With --slurm-pass-command-as-script the command comes by standard input.
    script = sys.stdin.read() if "/dev/stdin" in arguments else ""
    # First: an option of the user's own comes later, and counts.
    arguments = [*early_signal(arguments[-1] + script), *arguments]
    while True:
        done = subprocess.run([real("sbatch"), *arguments], input=script.encode(), capture_output=True)
        number, error = done.stdout.decode().strip(), done.stderr.decode()
        answered = done.returncode == 0 or not any(text in error for text in NO_ANSWER)
        # A Snakemake that was killed meanwhile wants nothing any more.
        if answered or time.monotonic() - began > PATIENCE_SECONDS or os.getppid() != parent:
            break
        time.sleep(WAIT_SECONDS)
        with remembered(run) as record:
            if taken := submitted(run, comment, set(record["jobs"])):
                done.returncode, number, error = 0, taken, ""
                break
    if done.returncode == 0:
        with remembered(run) as record:
            record["jobs"].setdefault(number.split(";")[0], {"state": "PENDING", "missed": 0})
    print(number)
    print(error, end="", file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
