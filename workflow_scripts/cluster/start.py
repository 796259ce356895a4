"""Starts Snakemake on a cluster: settles the jobs that an earlier call left behind and puts bin/ into PATH.

`python -m workflow_scripts.cluster.start alone|beside ARGUMENTS` becomes `snakemake ARGUMENTS`. ./reproduce calls it
when a workflow profile or an executor is named; without SLURM among them nothing is changed. `beside` another Snakemake
of this working directory the jobs in the queue are that one's.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from workflow_scripts.cluster.slurm import BIN, ask, prefix, queue
from workflow_scripts.cluster.status import RUNNING
from workflow_scripts.errors import UserError
from workflow_scripts.schema import read_yaml

LOOK_SECONDS = 5


def main() -> None:
    """Become Snakemake."""
    beside, arguments = sys.argv[1] == "beside", sys.argv[2:]
    options = parsed(arguments)
    profile = read_profile(options.workflow_profile)
    if (options.executor or profile.get("executor")) == "slurm" and not options.dry_run:
        if not beside:
            settle()
            adopt()
        arguments = [f"--slurm-jobname-prefix={prefix()}", *keeping(arguments, profile.get("set-resources") or {})]
        prepare(os.environ)
    os.execvp("snakemake", ["snakemake", "--logger=terminal", *arguments])


def parsed(arguments: list[str]) -> argparse.Namespace:
    """The arguments of Snakemake that matter here."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--workflow-profile")
    parser.add_argument("--executor", "-e")
    parser.add_argument("--dry-run", "--dryrun", "-n", action="store_true")
    return parser.parse_known_args(arguments)[0]


def read_profile(folder: str | None) -> dict:
    """The workflow profile of this call; empty where Snakemake will say what is wrong with it."""
    if folder:
        for name in ("profile.v9+.yaml", "profile.yaml", "config.v9+.yaml", "config.yaml"):
            if (file := Path(folder) / name).exists():
                return read_yaml(file)
    return {}


def keeping(arguments: list[str], of_profile: dict[str, dict]) -> list[str]:
    """`--set-resources` on the command line would erase those of the profile, its GPUs among them: put what the user
    does not name beside it."""
    split = [part for word in arguments for part in _words(word)]
    if "--set-resources" not in split or not of_profile:
        return arguments
    place = len(split) - split[::-1].index("--set-resources")
    named = {word.split("=")[0] for word in split[place:] if ":" in word}
    entries = {f"{rule}:{name}": value for rule, given in of_profile.items() for name, value in given.items()}
    return split[:place] + [f"{key}={value}" for key, value in entries.items() if key not in named] + split[place:]


def _words(word: str) -> list[str]:
    return word.split("=", 1) if word.startswith("--set-resources=") else [word]


def prepare(environment: dict[str, str]) -> None:
    """What Snakemake and its jobs find in their environment."""
    if configuration := environment.get("SLURM_CONF"):
        # The executor takes every SLURM_ variable from its jobs, this one too; srun in bin/ gives it back.
        environment["RECOMPOSE_SLURM_CONF"] = os.path.abspath(configuration)
    if "SLURM_JOB_ID" in environment:
        # Inside a SLURM job: what that job was given must not reach the jobs that are submitted from it.
        for name in [name for name in environment if name.startswith("SLURM_") and name != "SLURM_CONF"]:
            del environment[name]
    environment["PATH"] = os.pathsep.join([str(BIN), environment.get("PATH", os.defpath)])


def settle() -> None:
    """Wait for the jobs that a Snakemake of this working directory left running when it was killed: submitted again,
    they would be in the queue twice. Those that have not begun are cancelled. Raises UserError if SLURM is silent."""
    said: set[str] = set()
    while True:
        found = queue("--me")
        if found is None:
            raise UserError("SLURM does not answer; call the same command again when `squeue --me` works")
        left = [job for job in found if job.name.startswith(f"{prefix()}_") and job.state in RUNNING]
        if not left:
            return
        if waiting := [job for job in left if job.state == "PENDING"]:
            ask("scancel", *(job.number for job in waiting))
        running = [job for job in left if job not in waiting]
        if running and {job.number for job in running} != said:
            said = {job.number for job in running}
            which = (
                "1 job running; waiting for it"
                if len(running) == 1
                else f"{len(running)} jobs running; waiting for them"
            )
            print(f"An earlier call left {which}: {', '.join(map(str, running))}", file=sys.stderr)
            print(f"To stop instead (trainings save their state): scancel {' '.join(sorted(said))}", file=sys.stderr)
        time.sleep(LOOK_SECONDS)


def adopt() -> None:
    """Take over results that came without Snakemake's records, as ./reproduce does where there is no cluster."""
    if Path("results").exists():
        subprocess.run([sys.executable, "-m", "workflow_scripts", "adopt"], check=True)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"error: {error}")
