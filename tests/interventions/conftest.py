"""The real files, where there are any."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def mirror() -> Path:
    """Folder of upstream's files."""
    if not os.environ.get("RECOMPOSE_MIRROR"):
        pytest.skip("needs upstream's files: set RECOMPOSE_MIRROR to a folder <dataset>/<file>")
    return Path(os.environ["RECOMPOSE_MIRROR"])
