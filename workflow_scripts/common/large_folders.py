"""Write large folders so that a killed process does not fill the disk for good."""

import fcntl
import glob
import os
import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from workflow_scripts.common.files import write_atomically

LOCK = ".lock"  # in a scratch folder; the process that writes there holds it
NEW = 60.0  # seconds: a scratch folder that is younger may not have its lock yet
# Seconds for which a scratch folder of another machine is kept: some network file systems keep the
# locks of each machine apart.
OF_ANOTHER_MACHINE = 3 * 24 * 3600.0


@contextmanager
def write_large_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary path like `write_atomically`, for a folder of gigabytes.

    Before that, what killed processes have left of the same folder is deleted.
    """
    remove_leftovers(target)
    with ExitStack() as stack, write_atomically(target) as temporary:
        # On network file systems a folder can only be deleted when no file in it is open.
        stack.callback(shutil.rmtree, temporary.parent, ignore_errors=True)
        lock = stack.enter_context(open(temporary.with_name(LOCK), "wb", buffering=0))
        lock.write(platform.node().encode())
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield temporary


def remove_leftovers(target: Path) -> None:
    """Remove the scratch folders of a target that no process writes to.

    Where the file system has no locks, all are kept, and those of another machine for some days.
    """
    for scratch in target.parent.glob(f".{glob.escape(target.name)}.????????"):
        if _is_left(scratch):
            shutil.rmtree(scratch, ignore_errors=True)


def _is_left(scratch: Path) -> bool:
    """Whether the process that made a scratch folder has ended."""
    try:
        age = time.time() - scratch.stat().st_mtime
        machine = (scratch / LOCK).read_bytes().decode()
        if age < (NEW if machine == platform.node() else OF_ANOTHER_MACHINE):
            return False
        descriptor = os.open(scratch / LOCK, os.O_RDWR)
    except OSError:  # none of this module, or deleted meanwhile
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
