"""The benchmarks, which no other test runs, use names that exist."""

import importlib

import pytest

from tests.analyses.small_runs import ROOT

COMMANDS = sorted(
    file.stem for file in (ROOT / "benchmarks").glob("*.py") if "def main" in file.read_text()
)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_benchmark_can_be_imported(name: str):
    assert importlib.import_module(f"benchmarks.{name}").main
