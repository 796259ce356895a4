"""Where and from what a result was made: commit, host, versions, time. Nothing here can change a result."""

import importlib.metadata
import platform
import resource
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

PROJECT = Path(__file__).parents[1]
PACKAGES = ("accelerate", "numpy", "pyarrow", "safetensors", "scikit-learn", "scipy", "torch", "transformers")


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def origin() -> dict:
    """The commit (None outside a git checkout), whether tracked files differ from it, host and versions."""
    return {**_commit(), "host": platform.node(), "platform": platform.platform(), "versions": versions()}


def _commit() -> dict:
    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(PROJECT), *arguments], capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD") if (PROJECT / ".git").exists() else None
    changed = git("status", "--porcelain", "--untracked-files=no") if commit else None
    return {"commit": commit, "dirty": None if changed is None else bool(changed)}


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that compute."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def cpu_seconds() -> float:
    """Processor time of this process so far, of all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_memory() -> int:
    """Largest memory use of this process so far, in bytes."""
    # Linux counts kibibytes, macOS bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
