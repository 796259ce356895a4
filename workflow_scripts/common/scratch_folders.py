"""Folders in which files and folders are written before they replace those of a name.

A process that is killed leaves its own. A lock in each says whether its process still writes there.
"""

import fcntl
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK = ".lock"  # in a scratch folder; the process that writes there holds it, and names its machine
REPLACED = "old"  # in a scratch folder: the folder that is being replaced
NEW = 60.0  # seconds: a scratch folder that is younger may not have its lock yet
# Seconds for which the files of another machine are kept: some network file systems keep the locks
# of each machine apart.
OF_ANOTHER_MACHINE = 3 * 24 * 3600.0
# `.<target>.` and what tempfile adds
SCRATCH_NAME = re.compile(r"\.(?P<target>.+)\.[a-z0-9_]{8}")


@contextmanager
def open_scratch_folder(target: Path) -> Iterator[Path]:
    """Make a folder next to a target, and delete it at the end.

    What killed processes have left of the same target is deleted before.
    """
    remove_leftovers(target.parent, target.name)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        # On network file systems a folder can only be deleted when no file in it is open.
        with open(scratch / LOCK, "wb", buffering=0) as lock:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(platform.node().encode())  # last: with a name the lock is held
            yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def is_scratch_folder(name: str) -> bool:
    """Whether a name is that of a scratch folder."""
    return SCRATCH_NAME.fullmatch(name) is not None


def remove_leftovers(folder: Path, target: str | None = None) -> None:
    """Remove the scratch folders in a folder that no process writes to.

    target: the name of what was written there; None for all. Where the file system has no locks,
    all are kept, and those of another machine for some days.
    """
    for scratch in _list_scratch_folders(folder, target):
        if _is_left(scratch):
            shutil.rmtree(scratch, ignore_errors=True)


def _list_scratch_folders(folder: Path, target: str | None) -> list[Path]:
    """List the scratch folders in a folder, of one target or of all."""
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            # Most names begin with another character, and this is done before each file is written.
            match = SCRATCH_NAME.fullmatch(entry.name) if entry.name[0] == "." else None
            if match and target in (None, match["target"]) and entry.is_dir(follow_symlinks=False):
                found.append(Path(entry.path))
    return found


def _is_left(scratch: Path) -> bool:
    """Whether the process that made a scratch folder has ended."""
    lock = scratch / LOCK
    try:
        age = time.time() - scratch.stat().st_mtime
        if not lock.exists():  # earlier versions wrote none
            match = SCRATCH_NAME.fullmatch(scratch.name)
            has_target = match is not None and (scratch / match["target"]).exists()
            return has_target and age >= OF_ANOTHER_MACHINE
        machine = lock.read_bytes().decode()
        kept_seconds = 0.0 if machine == platform.node() else OF_ANOTHER_MACHINE
        if not machine:  # its process may be about to take the lock
            kept_seconds = NEW
        return age >= kept_seconds and not is_locked(lock)
    except OSError:  # deleted meanwhile
        return False


def is_locked(lock: Path) -> bool:
    """Whether a process holds the lock on a file, or may: some file systems have no locks."""
    descriptor = os.open(lock, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
