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
STARTED, CLOCK = get_utc_time(), time.monotonic()


def read_cpu_name() -> str:
    """Return the model name of the processor, e.g. `Intel(R) Xeon(R) Platinum`."""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as stream:
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
    # Linux counts kibibytes, macOS bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def read_commit() -> dict[str, Any]:
    """Return `commit`, and `dirty`: a tracked file differs from it or a code file is untracked. None means unknown."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(PROJECT), *arguments], capture_output=True, text=True, timeout=30
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None

    head = git("rev-parse", "HEAD") if (PROJECT / ".git").exists() else None
    changed = git("status", "--porcelain", "-z", "--untracked-files=all") if head else None
    if head is None or changed is None:
        return {"commit": head and head.strip(), "dirty": None}
    found = (entry for entry in changed.split("\0") if entry)
    dirty = any(not entry.startswith("?? ") or entry[3:].split("/")[0] in CODE for entry in found)
    return {"commit": head.strip(), "dirty": dirty}


def list_versions() -> dict[str, str]:
    """Return the installed versions of Python and of the packages in pyproject.toml, without importing them."""
    named = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    found = {"python": platform.python_version()}
    for name in (re.split(r"[^\w.-]", requirement)[0] for requirement in named):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
