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


# Where tests start most processes: what takes longest comes first, else the other processes wait for it at the end.
LONGEST = ("slurm", "workflow", "training", "data")


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick faults are faults. The folders that take longest come first, in their own order."""
    for item in items:
        if item.get_closest_marker("quick_faults"):
            item.add_marker("faults")
    place = {name: number for number, name in enumerate(LONGEST)}
    tests = Path(__file__).parent
    items.sort(key=lambda item: place.get(item.path.relative_to(tests).parts[0], len(place)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """On several cores the tests of one file stay together, since they share what is costly to make; those of the
    cluster share one cluster. (Marks do not do: by them pytest-xdist 3.8 groups nothing under pytest 9.2.)"""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "tests/slurm" if nodeid.startswith("tests/slurm/") else super()._split_scope(nodeid)

    return Together(config, log) if config.getvalue("dist") == "loadfile" else None
