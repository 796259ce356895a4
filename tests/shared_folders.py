"""Folders that the processes of one call of pytest share, so that each is made once."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return the folder `name`, which the first process that asks for it makes; others wait."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # of the folders of all processes
    folder = base / name
    done = base / f"{name}.done"
    with open(base / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a process that has failed
            folder.mkdir()
            make(folder)
            done.touch()
    return folder
