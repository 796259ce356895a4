from pathlib import Path

import pytest

from tests.analyses.small_runs import ROOT
from tests.reporting.figures.drawn import Results
from workflow_scripts.reporting.figures.style import use_style


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Results:
    monkeypatch.chdir(ROOT)
    return Results(tmp_path / "results", [])


@pytest.fixture(autouse=True)
def styled():
    with use_style():
        yield
