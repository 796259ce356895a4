"""Copies of the project to run the real workflow in."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shared_folders import make_once
from tests.workflow.projects import (
    ROOT,
    SCORES,
    Project,
    add_demo,
    copied,
    plain_environment,
    whole_copy,
)

STALE = "stale.txt"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A copy in which nothing has been run."""
    return copied(tmp_path)


@pytest.fixture(scope="module")
def catalogue_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the catalogue, which is read once."""
    folder = tmp_path_factory.mktemp("catalogue")
    for name in ("catalogue", "papers"):
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.fixture
def catalogue_without_results(catalogue_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same without results, as the working directory."""
    shutil.rmtree(catalogue_folder / "results", ignore_errors=True)
    monkeypatch.chdir(catalogue_folder)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run of three steps, with its data and its scores."""
    return Project(make_once(tmp_path_factory, "made", make_short_run))


def make_short_run(folder: Path) -> None:
    project = copied(folder)
    project.set_demo_steps(3)
    with plain_environment():
        project.make(SCORES)


@pytest.fixture
def made(made_once: Project, tmp_path: Path) -> Project:
    """A copy of it, with the times of its files and Snakemake's records."""
    return whole_copy(made_once, tmp_path)


@pytest.fixture(scope="session")
def finished_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """results/ and .snakemake/ of the demo that ./reproduce has made of this very code; skips where
    there is none.
    """
    if not (ROOT / "results/demo/config.json").exists():
        pytest.skip("no finished demo: run ./reproduce first")
    root = make_once(tmp_path_factory, "finished", copy_finished_demo)
    if stale := (root / STALE).read_text():
        pytest.skip(
            f"results/demo is not up to date ({stale} files are stale): run ./reproduce first"
        )
    return root


def copy_finished_demo(folder: Path) -> None:
    """Copy results/demo, and write to STALE how many of its files are stale, if any are."""
    project = copied(folder)
    add_demo(project)
    with plain_environment():
        stale = project.planned()
    (folder / STALE).write_text(str(len(stale)) if stale else "")


@pytest.fixture
def demo(finished_demo: Path, tmp_path: Path) -> Project:
    """A copy in which the demo has been run to its end."""
    project = copied(tmp_path)
    add_demo(project)
    return project


@pytest.fixture(autouse=True)
def plain_terminal() -> Iterator[None]:
    """No mirror, profile or colour of the person who runs the tests."""
    with plain_environment():
        yield
