"""A one-host cluster whose machines each have their own view of a folder, as over a network file system.

A view is a FUSE mount in a mount namespace: what its machine has once asked for (a file's absence too) it does not ask
again for some seconds, and its file locks are its own. Behind all views lies one folder. It needs root and bindfs
(Debian: apt-get install bindfs).
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster, up


def within(folder: Path, seconds: int) -> list[str]:
    """Begins a command that runs in a view of its own of `folder`, which is late by up to so many seconds."""
    late = ",".join(f"{kind}_timeout={seconds}" for kind in ("entry", "negative", "attr"))
    script = f'bindfs -o {late} "$0" "$0" && cd "$PWD" && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, str(folder)]


@contextmanager
def cluster_with_views(folder: Path, seconds: int) -> Iterator[Cluster]:
    """A cluster of its own, whose nodes see `folder` through views."""
    if not shutil.which("bindfs"):
        pytest.skip("NO LATE FILE SYSTEM HERE, nothing of it is tested: no bindfs (Debian: apt-get install bindfs)")
    tried = subprocess.run([*within(folder, seconds), "true"], capture_output=True, text=True, cwd=folder)
    place = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    try:
        if tried.returncode:
            pytest.skip(f"NO LATE FILE SYSTEM HERE, nothing of it is tested: {tried.stderr.strip()}")
        cluster = up(place, begins=within(folder, seconds))
        try:
            yield cluster
        finally:
            cluster.down()
    finally:
        for process in mounts(folder):
            os.kill(process, signal.SIGKILL)
        shutil.rmtree(place)


def mounts(folder: Path) -> list[int]:
    """The processes that serve views of a folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = file.read_bytes().decode(errors="replace").split("\0")
            if words[0] == "bindfs" and str(folder) in words:
                found.append(int(file.parent.name))
    return found
