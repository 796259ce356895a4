"""The environment files agree with pyproject.toml, with each other, with the code and with what is
installed.
"""

import ast
import importlib.util
import re
import tomllib
from importlib.metadata import distribution, packages_distributions
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
    return lock.read_pins()


def find_closure(project: dict) -> dict[str, str]:
    """The installed version of each package that the [project] table needs, including `dev`."""
    waiting = [
        Requirement(line)
        for line in project["dependencies"] + project["optional-dependencies"]["dev"]
    ]
    found: dict[str, str] = {}
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        # The CUDA build of torch pins its own CUDA libraries, and no other package needs them.
        if (name in found and not requirement.extras) or name.startswith(
            ("nvidia-", "cuda-", "triton")
        ):
            continue
        installed = distribution(name)
        # A local version (+cpu) names the installed build, which others may not need.
        found[name] = Version(installed.version).public
        needed = [Requirement(line) for line in installed.requires or []]
        extras = requirement.extras or {""}
        waiting += [
            n
            for n in needed
            if not n.marker or any(n.marker.evaluate({"extra": extra}) for extra in extras)
        ]
    return found


def test_conda_and_container_are_made_from_the_lock(lock, pins):
    assert (ROOT / "envs/environment.yaml").read_text() == lock.format_environment(pins, "3.11"), (
        "run envs/lock.py"
    )
    assert (ROOT / "envs/container.def").read_text() == lock.format_container(pins, "3.11"), (
        "run envs/lock.py"
    )


def test_lock_is_the_closure_of_pyproject_as_installed(project, pins):
    assert find_closure(project) == pins, (
        "make the lock by the command of its head, then run envs/lock.py"
    )


def test_every_package_of_the_lock_has_the_hashes_of_its_files(pins):
    """And torch, whose file differs between machines, is not among them. The host of an index is
    nowhere.
    """
    head, *entries = re.split(
        r"^(?=\w)", (ROOT / "envs/requirements.lock").read_text(), flags=re.MULTILINE
    )
    assert (
        head.splitlines()[1].startswith("#    uv pip compile pyproject.toml ")
        and "--generate-hashes" in head
    )
    hashes = r" \\\n    --hash=sha256:[0-9a-f]{64}"
    named = [re.fullmatch(rf"([\w.-]+)==\S+( ; .*?)?({hashes})+\n", entry) for entry in entries]
    assert all(named) and [entry[1] for entry in named] == [
        name for name in pins if name != "torch"
    ]


def test_the_lock_of_the_site_agrees_with_pyproject_and_with_the_other_lock(project, pins):
    """So that it can be installed into .venv: no package gets another version."""
    inputs = [
        line
        for line in (ROOT / "envs/docs.in").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert inputs == project["optional-dependencies"]["docs"]
    entries = re.split(r"^(?=\w)", (ROOT / "envs/docs.lock").read_text(), flags=re.MULTILINE)[1:]
    found = [re.match(r"([\w.-]+)==(\S+)", entry).groups() for entry in entries]
    assert all("--hash=sha256:" in entry for entry in entries)
    assert {name for name, _ in found} >= names(inputs)
    assert [(name, version) for name, version in found if pins.get(name, version) != version] == []


def test_torch_is_pinned_without_a_build(pins):
    """The same version is the CPU build here and the CUDA build on a machine with a GPU."""
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
    assert names(project["dependencies"]) == needed | {
        "snakemake",
        "snakemake-executor-plugin-slurm",
    }
    developing = imported("tests", "benchmarks", "envs") - names(project["dependencies"])
    assert names(project["optional-dependencies"]["dev"]) >= developing
