"""What all tests share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

# Before torch is imported anywhere: the tensors of the tests are tiny, and more threads only get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from tests.disks import mounted

# A job in the background of a shell ignores Ctrl-C, and so would all that the tests start from there.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("recompose", deadline=None)
settings.load_profile("recompose")


@pytest.fixture(scope="session")
def mirror() -> Path:
    """Folder of upstream's files."""
    if not os.environ.get("RECOMPOSE_MIRROR"):
        pytest.skip("needs upstream's files: set RECOMPOSE_MIRROR to a folder <dataset>/<file>")
    return Path(os.environ["RECOMPOSE_MIRROR"])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB."""
    with mounted(tmp_path / "small", 8):
        yield tmp_path / "small"


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick faults are faults.

    On several cores the tests of one file stay together, since they share what is costly to make; those of the
    cluster share one cluster."""
    for item in items:
        if item.get_closest_marker("quick_faults"):
            item.add_marker("faults")
        folder = item.path.parent
        item.add_marker(pytest.mark.xdist_group(folder.name if folder.name == "slurm" else str(item.path)))
