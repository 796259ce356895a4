import shutil
from pathlib import Path

import pytest

from tests.config.copies import ROOT


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of everything that a user can edit."""
    for folder in ("catalogue", "papers"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "config.yaml", tmp_path)
    return tmp_path
