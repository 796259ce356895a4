"""One cluster for the session, and what the same runs give on this machine without one."""

import shutil
import tempfile
import warnings
from pathlib import Path

import pytest

from tests.slurm.cluster import missing, up
from tests.slurm.submitting import results
from tests.workflow.projects import ROOT, Project, add_demo, copied, plain_environment

# Trained on the cluster and, for comparison, here: three trainings that one analysis reads, and the
# scores of one.
CUT = (
    "results/demo/analyses/sq_transformer/source-codes/analysis.json",
    "results/demo/runs/scan-jump-x2/sq-transformer/sal/seed-1/eval/scores.csv",
    "results/demo/runs/scan-jump-x2/lrf/default/seed-1/run.json",
)
# Long enough to be disturbed, with a state saved every second: a kill must not cost the whole
# training.
RUNS = tuple(f"scan-jump-x2/transformer/default/seed-{seed}" for seed in (1, 2))
STEPS = 600


@pytest.fixture(scope="session")
def cluster():
    if lacking := missing():
        packages = "slurmctld slurmd slurm-client munge"
        reason = f"NO SLURM HERE, nothing of it is tested: no {', '.join(lacking)} (Debian: apt-get install {packages})"
        warnings.warn(reason, stacklevel=1)
        pytest.skip(reason)
    # Not in pytest's own folder: its parents are closed to others, and its path is too long for a
    # socket.
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    with plain_environment():
        started = up(folder)
    yield started
    started.down()
    shutil.rmtree(folder)


@pytest.fixture(
    autouse=True, scope="module"
)  # not of the session: the tests of other folders need the mirror
def plain():
    """No mirror, profile or other cluster of the person who runs the tests."""
    with plain_environment():
        yield


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A copy in which nothing has been run."""
    return copied(tmp_path)


def lengthened(project: Project) -> Project:
    project.set_demo_steps(STEPS)
    command = "workflow_scripts train --device {resources.device:q}"
    project.edit("rules/train.smk", command, f"{command} --save-every 1")
    return project


@pytest.fixture
def long_project(project: Project) -> Project:
    return lengthened(project)


@pytest.fixture(scope="session")
def local_demo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Results of CUT at least, made on this machine."""
    project = copied(tmp_path_factory.mktemp("local"))
    make_here(project, *CUT)
    return results(project.root)


def make_here(project: Project, *targets: str) -> None:
    """Make targets on this machine; where there is a finished demo of this very code, all of it is
    copied instead.
    """
    with plain_environment():
        if (ROOT / "results/demo/config.json").exists():
            add_demo(project)
            if not project.planned(*targets):
                return
            shutil.rmtree(project.root / "results")
            shutil.rmtree(project.root / ".snakemake")
        project.make(*targets)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Results of RUNS at their length, made on this machine."""
    root = tmp_path_factory.mktemp("undisturbed")
    with plain_environment():
        lengthened(copied(root)).make(*scores(*RUNS))
    return results(root)


def scores(*runs: str) -> list[str]:
    return [f"results/demo/runs/{run}/eval/scores.csv" for run in runs]
