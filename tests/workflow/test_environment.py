"""The environment files agree with pyproject.toml, with each other, with the code and with what is installed."""

import ast
import importlib.util
import tomllib
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def lock():
    spec = importlib.util.spec_from_file_location("lock", ROOT / "envs/lock.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def pins(lock) -> dict[str, str]:
    return lock.read_lock((ROOT / "envs/requirements.lock").read_text())


def test_conda_and_container_are_made_from_the_lock(lock, pins):
    assert (ROOT / "envs/environment.yaml").read_text() == lock.format_environment(pins, "3.11"), "run envs/lock.py"
    assert (ROOT / "envs/container.def").read_text() == lock.format_container(pins, "3.11"), "run envs/lock.py"


def test_lock_is_the_closure_of_pyproject(lock, project, pins):
    assert lock.find_closure(project).keys() == pins.keys(), "run envs/lock.py"


def test_lock_is_what_is_installed(pins):
    assert {name: Version(version(name)).public for name in pins} == pins


def test_torch_is_pinned_without_a_build(pins):
    """The same lock takes the CPU build here and the CUDA build on a machine with a GPU."""
    assert pins["torch"] == "2.13.0"
    assert not any(name.startswith(("nvidia-", "triton")) for name in pins)


def imported(*folders: str) -> set[str]:
    """The distributions that the Python files of some folders import."""
    modules = set()
    for file in (file for folder in folders for file in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                modules |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.add(node.module.split(".")[0])
    distributions = packages_distributions()
    return {canonicalize_name(distributions[name][0]) for name in modules if name in distributions}


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in requirements}


def test_pyproject_names_what_the_code_imports(project):
    """Nothing is imported that comes along only by chance, and nothing is installed for nothing."""
    needed = imported("workflow_scripts")
    assert names(project["dependencies"]) == needed | {"snakemake", "snakemake-executor-plugin-slurm"}
    developing = imported("tests", "benchmarks", "envs") - names(project["dependencies"])
    assert names(project["optional-dependencies"]["dev"]) >= developing
