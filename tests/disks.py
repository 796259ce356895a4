"""File systems of their own, that a test can fill."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(folder: Path, megabytes: int) -> Iterator[None]:
    """A file system of that size at `folder`, while the block runs; the test is skipped where none
    can be mounted.
    """
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(folder)]
    found = subprocess.run(mount, capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {found.stderr.strip()}")
    yield
    subprocess.run(["umount", "--lazy", folder], check=True)
