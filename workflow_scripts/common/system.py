"""Time, memory, processor, commit and versions of this process."""

import importlib.metadata
import os
import platform
import re
import resource
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[2]
# Only these paths can change a result, so an untracked file elsewhere does not set `dirty`.
CODE = (
    "Snakefile",
    "catalogue",
    "config.yaml",
    "envs",
    "papers",
    "profiles",
    "rules",
    "workflow_scripts",
)


def get_utc_time() -> str:
    """Return the current time in UTC, ISO 8601, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


# Start of this command: every command imports this module before it starts its work.
STARTED = get_utc_time()
CLOCK = time.monotonic()


def read_cpu_name() -> str:
    """Return the model name of the processor, e.g. `Intel(R) Xeon(R) Platinum`."""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            for line in stream:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def describe_cpu() -> dict[str, Any]:
    """Describe the machine as `training.machine.describe_device` does, without loading torch."""
    return {
        "device": "cpu",
        "device_name": read_cpu_name(),
        "driver": None,
        "cuda": None,
        "cpu": read_cpu_name(),
        "cores": os.cpu_count(),
        "threads": None,
        "deterministic_algorithms": None,
        "bit_equality": "same machine and versions",
        "peak_gpu_memory_bytes": None,
    }


def measure_cpu_seconds() -> float:
    """Return the processor time of all threads of this process so far, in seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure_peak_memory() -> int:
    """Return the largest memory use of this process so far, in bytes."""
    if os.path.exists("/proc/self/status"):
        # On Linux getrusage would count what the process that started this one had, too.
        with open("/proc/self/status", encoding="utf-8") as stream:
            for line in stream:
                if line.startswith("VmHWM:"):
                    return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if sys.platform == "darwin":
        return peak  # macOS counts bytes
    return 1024 * peak  # Linux counts kibibytes


@dataclass(frozen=True)
class JobCosts:
    """What a job has cost in all its processes: it was continued `resumed` times.

    started: of the first of them. gpu_seconds: of those that computed on a GPU.
    peak_memory_bytes: the largest of them.
    """

    started: str
    resumed: int
    seconds: float
    cpu_seconds: float
    gpu_seconds: float
    peak_memory_bytes: int


def measure_costs(before: JobCosts | None = None, is_on_gpu: bool = False) -> JobCosts:
    """Return the costs of this process so far, with those of the job's processes `before` it.

    is_on_gpu: whether this process computes on a GPU.
    """
    seconds = time.monotonic() - CLOCK
    own = JobCosts(
        started=STARTED,
        resumed=0,
        seconds=seconds,
        cpu_seconds=measure_cpu_seconds(),
        gpu_seconds=seconds if is_on_gpu else 0.0,
        peak_memory_bytes=measure_peak_memory(),
    )
    if before is None:
        return own
    return JobCosts(
        started=before.started,
        resumed=before.resumed + 1,
        seconds=before.seconds + own.seconds,
        cpu_seconds=before.cpu_seconds + own.cpu_seconds,
        gpu_seconds=before.gpu_seconds + own.gpu_seconds,
        peak_memory_bytes=max(before.peak_memory_bytes, own.peak_memory_bytes),
    )


def read_commit() -> dict[str, Any]:
    """Return `commit`, and `dirty`: a tracked file differs from it or a code file is untracked.

    A value is None if it is unknown, as both are without a repository.
    """
    if not (PROJECT / ".git").exists():
        return {"commit": None, "dirty": None}
    commit = parse_commit(_run_git("rev-parse", "HEAD") or "")
    if commit is None:
        return {"commit": None, "dirty": None}
    status = _run_git("status", "--porcelain", "-z", "--untracked-files=all")
    if status is None:
        return {"commit": commit, "dirty": None}
    entries = parse_status(status)
    return {"commit": commit, "dirty": any(_can_change_results(entry) for entry in entries)}


def parse_commit(answer: str) -> str | None:
    """Return the commit in the answer of `git rev-parse HEAD`; None if there is none."""
    for line in answer.splitlines():
        if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", line.strip()):
            return line.strip()
    return None


def parse_status(answer: str) -> list[str]:
    """Return the entries in the answer of `git status --porcelain -z`, such as ` M README.md`."""
    entries = re.split(r"[\0\n]", answer)
    return [entry for entry in entries if re.match(r"[ MTADRCU?!]{2} .", entry)]


def find_file_version(commit: str, file: str) -> str | None:
    """Return git's digest of a file of the project at a commit.

    None where git has no such commit, as in a shallow clone, or the commit no such file.
    """
    digest = _run_git("rev-parse", "--verify", "--quiet", f"{commit}:{file}")
    return digest.strip() if digest else None


def list_tracked_files(folder: Path) -> set[str] | None:
    """Return the files that git tracks in a checkout, by their paths there; None without git."""
    if not (folder / ".git").exists():
        return None
    answer = _run_git("ls-files", "-z", folder=folder)
    return None if answer is None else set(answer.split("\0")) - {""}


def _run_git(*arguments: str, folder: Path | None = None) -> str | None:
    """Return the output of a git command in a folder, or in the project; None if it fails."""
    command = ["git", "-C", str(folder or PROJECT), *arguments]
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if process.returncode != 0:
        return None
    return process.stdout


def _can_change_results(entry: str) -> bool:
    """Return whether an entry of `git status` is a change of a tracked file or a new code file."""
    if not entry.startswith("?? "):
        return True
    path = entry[3:]
    return path.split("/")[0] in CODE


def list_versions() -> dict[str, str]:
    """Return the installed versions of Python and of the packages in pyproject.toml.

    The packages are not imported.
    """
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    versions = {"python": platform.python_version()}
    for requirement in settings["project"]["dependencies"]:
        name = re.split(r"[^\w.-]", requirement)[0]
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
