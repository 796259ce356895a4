"""What commands take from the environment: the variables in envs/variables.txt."""

import os
import sys
from fnmatch import fnmatchcase
from pathlib import Path

from workflow_scripts.common.system import PROJECT

# As envs/clean_environment sets them; PYTHONPATH has the plugins of Snakemake.
FIXED_VALUES = {"LC_ALL": "C", "MATPLOTLIBRC": os.devnull, "PYTHONUTF8": "1"}
ALSO_KEPT = ("PYTHONPATH",)
VARIABLES = PROJECT / "envs/variables.txt"


def read_kept_patterns() -> list[str]:
    """Return the names of variables that are kept. `*` is any ending."""
    lines = VARIABLES.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def clean_environment() -> None:
    """Drop the other variables of this process, as ./reproduce does.

    The process starts again if they have changed how Python runs. Where the package is installed
    without the repository, nothing is dropped.
    """
    if not VARIABLES.exists():
        return
    patterns = (*read_kept_patterns(), *FIXED_VALUES, *ALSO_KEPT)
    changed_python = os.environ.get("PYTHONUTF8") != "1"
    for name in list(os.environ):
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            continue
        del os.environ[name]
        changed_python = changed_python or name.startswith("PYTHON")
    os.environ.update(FIXED_VALUES)
    if not _is_writable(Path.home() / ".config/matplotlib"):  # else matplotlib warns
        os.environ["MPLCONFIGDIR"] = str(PROJECT / ".snakemake/matplotlib")
    if changed_python:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _is_writable(folder: Path) -> bool:
    """Whether files can be written to a folder, which is made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
