"""Starts Snakemake: sees to what an earlier call left behind, and adds what SLURM needs.

`python -m workflow_scripts.start yes|no CALL ARGUMENTS` becomes `snakemake ARGUMENTS`; ./reproduce, the process CALL,
calls it so. The first word says whether the call makes anything: one that does not writes no record, changes nothing.
Jobs that failed when they were begun again, and that Snakemake would not miss, are forced.
Where a workflow profile or an executor names SLURM, jobs that were left in the queue are settled first and bin/ is put
into PATH. Beside another Snakemake of this folder the jobs in the queue are that one's.
"""

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from workflow_scripts.checking import read_entries
from workflow_scripts.cluster.slurm import BIN, ask, prefix, queue
from workflow_scripts.cluster.status import RUNNING
from workflow_scripts.errors import UserError
from workflow_scripts.planning.unfinished import unfinished
from workflow_scripts.running import RECORD, take_turn

LOOK_SECONDS = 5
PROFILES = ("profile.v9+.yaml", "profile.yaml", "config.v9+.yaml", "config.yaml")
KEY_VALUE = re.compile(r"[a-zA-Z_]\w*=")
NO_ARRAYS = (
    "slurm-array-jobs is not supported: the SLURM executor takes one job's end for another's; leave it out, "
    "every job is submitted by itself"
)


def main() -> None:
    """Become Snakemake."""
    makes, call, arguments = sys.argv[1] == "yes", sys.argv[2], sys.argv[3:]
    options = parsed(arguments)
    check(options, makes)
    profile = read_own_profile(options.profile) | read_profile(options.workflow_profile)
    slurm = (options.executor or profile.get("executor")) == "slurm"
    if slurm and (options.slurm_array_jobs or "slurm-array-jobs" in profile):
        raise UserError(NO_ARRAYS)
    if makes:
        other = take_turn(call)
        if other and other.host != socket.gethostname():
            print(
                f"Another ./reproduce of this folder was started as {other}, which cannot be seen from here. If it has "
                f"ended (was killed, or its machine restarted), delete {RECORD} and call this again",
                file=sys.stderr,
            )
        if slurm and not other:
            settle()
        if not other:
            adopt()
            arguments = forcing(arguments, options.forcerun)
    elif not slurm and not RECORD.exists():
        adopt("--dry-run")
        if any(word.startswith(("-n", "--dry-run", "--dryrun")) for word in arguments):
            arguments = forcing(arguments, options.forcerun)
    if makes and slurm:
        arguments = [f"--slurm-jobname-prefix={prefix()}", *keeping(arguments, profile.get("set-resources") or {})]
        prepare(os.environ)
    os.execvp("snakemake", ["snakemake", "--logger=terminal", *arguments])


def parsed(arguments: list[str]) -> argparse.Namespace:
    """The arguments of Snakemake that matter here."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--profile", default=os.environ.get("SNAKEMAKE_PROFILE"))
    parser.add_argument("--workflow-profile")
    parser.add_argument("--config", "-C", nargs="*", action="extend", default=[])
    parser.add_argument("--configfile", "--configfiles", nargs="+", action="extend", default=[])
    parser.add_argument("--executor", "-e")
    parser.add_argument("--slurm-array-jobs", nargs="?", const="all")
    parser.add_argument("--forcerun", "-R", nargs="*", default=[])
    return parser.parse_known_args(arguments)[0]


def check(options: argparse.Namespace, makes: bool) -> None:
    """Raise UserError for what Snakemake ends at with a traceback, or reads otherwise: of a key that stands twice it
    takes the second."""
    for word in options.config:
        if not KEY_VALUE.match(word):
            raise UserError(
                f"--config {word}: not KEY=VALUE; files go before --config, or behind --, and a key inside another as "
                "in 'data={mirror: /folder}'"
            )
    for file in ("config.yaml", *options.configfile):
        read_entries(Path(file))
    for folder in (".", ".snakemake", *(["results"] if makes else [])):
        if os.path.exists(folder):
            try:
                tempfile.TemporaryFile(dir=folder).close()
            except OSError as error:
                place = os.path.abspath(folder)
                raise UserError(f"{place}: {error.strerror}; mend that, or call this in a copy elsewhere") from error


def read_profile(folder: str | None) -> dict:
    """The workflow profile of this call, a folder, a file or a name in profiles/. Raises UserError where there is none:
    Snakemake would go on without."""
    if folder in (None, "none"):
        return {}
    file = profile_file(Path(folder) if Path(folder).exists() else Path("profiles", folder))
    if not file:
        raise UserError(
            f"{folder}: no profile.yaml there; take profiles/slurm-gpus or profiles/slurm-gres, or your own"
        )
    return read_entries(file)


def read_own_profile(named: str | None) -> dict:
    """The user's own profile, looked for where Snakemake does, which says it when there is none."""
    if named in (None, "", "none"):
        return {}
    from platformdirs import site_config_dir, user_config_dir

    folders = [Path(), *(Path(place("snakemake", "snakemake")) for place in (user_config_dir, site_config_dir))]
    file = next(filter(None, (profile_file(folder / named) for folder in folders)), None)
    return read_entries(file) if file else {}


def profile_file(place: Path) -> Path | None:
    return next((file for file in (place, *(place / name for name in PROFILES)) if file.is_file()), None)


def forcing(arguments: list[str], forced: list[str]) -> list[str]:
    """With the jobs that Snakemake would take for done beside those that the user forces."""
    found = unfinished(arguments, half_made=any(word.startswith("results/") for word in arguments))
    if not found:
        return arguments
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return [*arguments[:place], "--forcerun", *forced, *found, *arguments[place:]]


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


def adopt(*options: str) -> None:
    """Take over results that came without Snakemake's records: what agrees with the configuration."""
    if Path("results").exists():
        done = subprocess.run([sys.executable, "-m", "workflow_scripts", "adopt", *options], check=False)
        if done.returncode:  # it has said why
            sys.exit(done.returncode)


if __name__ == "__main__":
    try:
        main()
    except (UserError, OSError) as error:
        sys.exit(f"error: {error}")
