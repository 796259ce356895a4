"""Asking SLURM, and what Recompose remembers of the jobs that it has submitted."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.files import read_json, write_json

# Commands that stand before SLURM's own in PATH while ./reproduce runs; each file says why.
BIN = Path(__file__).parent / "bin"
# Relative to the working directory, as .snakemake itself is.
RECORDS = Path(".snakemake/cluster")
# Seconds before its time limit at which a training is to save its state, by scale and run of seed 0.
EARLY = RECORDS / "early.json"
# slurmctld answers at once or, when it is overloaded, within its own time-out of 10 s.
ANSWER_SECONDS = 50


@dataclass(frozen=True)
class QueuedJob:
    """One line of squeue."""

    number: str
    state: str
    reason: str
    name: str
    comment: str

    def __str__(self) -> str:
        return f"{self.number} ({self.comment.removeprefix('rule_').replace('_wildcards_', ' ')})"


def prefix() -> str:
    """Begins the name of every job of this working directory and of no other, on any login node."""
    return f"recompose-{hashlib.sha256(os.path.realpath('.').encode()).hexdigest()[:12]}"


def real(command: str) -> str:
    """SLURM's own command; the name itself where there is none, for the error that follows."""
    folders = (folder for folder in os.get_exec_path() if Path(folder).resolve() != BIN)
    return shutil.which(command, path=os.pathsep.join(folders)) or command


def ask(*command: str) -> str | None:
    """What a SLURM command prints; None when it fails or does not answer."""
    try:
        done = subprocess.run(
            [real(command[0]), *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=ANSWER_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def queue(*which: str) -> list[QueuedJob] | None:
    """The jobs that squeue knows, in any state, of those that `which` names; None when SLURM does not answer."""
    said = ask("squeue", "--noheader", "--states=all", "--format=%i|%T|%r|%j|%k", *which)
    return None if said is None else [QueuedJob(*line.split("|", 4)) for line in said.splitlines()]


def remember_early(seconds: dict[str, int]) -> None:
    """Keep them for the submissions of this call, beside those of another one."""
    before = read_json(EARLY) if EARLY.exists() else {}
    write_json(EARLY, before | {run: value for run, value in seconds.items() if value})


@contextmanager
def remembered(run: str) -> Iterator[dict]:
    """The record of one run of Snakemake: `jobs`, by number, and `silent_since`, when SLURM stopped answering.
    Two submissions and a look at the queue may want it at once."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    with open(RECORDS / f"{run}.json", "a+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.seek(0)
        try:
            record = json.loads(stream.read())
        except ValueError:  # new, or its writer was killed: squeue names the jobs again
            record = {"jobs": {}, "silent_since": None}
        yield record
        stream.seek(0)
        stream.truncate()
        stream.write(json.dumps(record))
