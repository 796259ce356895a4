"""Runs with random weights, each made once: an analysis only reads them."""

from collections.abc import Callable
from functools import cache

import pytest

from tests.analyses.small_runs import add_run
from workflow_scripts.analyses.trained_runs import TrainedRun


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], TrainedRun]:
    """A function from <task>/<method>/<variant> to the run of seed 1."""
    results = tmp_path_factory.mktemp("results")
    return cache(lambda variant: add_run(results, f"{variant}/seed-1"))


@pytest.fixture
def sal(trained: Callable[[str], TrainedRun]) -> TrainedRun:
    return trained("scan-jump-x2/sq-transformer/sal")


@pytest.fixture
def plain(trained: Callable[[str], TrainedRun]) -> TrainedRun:
    return trained("scan-jump-x2/transformer/default")
