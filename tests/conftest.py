"""What all tests share."""

import os
from pathlib import Path

# Before torch is imported anywhere: the tensors of the tests are tiny, and more threads only get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("recompose", deadline=None)
settings.load_profile("recompose")


@pytest.fixture(scope="session")
def mirror() -> Path:
    """Folder of upstream's files."""
    if not os.environ.get("RECOMPOSE_MIRROR"):
        pytest.skip("needs upstream's files: set RECOMPOSE_MIRROR to a folder <dataset>/<file>")
    return Path(os.environ["RECOMPOSE_MIRROR"])
