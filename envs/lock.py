"""Write the files of the pinned environment: `python envs/lock.py`, where all packages of pyproject.toml are installed.

requirements.lock is the closure of pyproject.toml at the installed versions; environment.yaml (conda) and container.def
(Apptainer) are made from requirements.lock.
"""

import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
MADE_BY = "# Made by envs/lock.py from {}; do not edit."
LOCK_NOTES = """\
# Install torch first and by itself, then this file, as ./reproduce does:
#   pip install torch=={torch} && pip install -r envs/requirements.lock
# torch has no local version such as +cpu here: on a machine with an NVIDIA GPU the same line installs the
# CUDA build, which brings its own pinned CUDA libraries. For another build, install that build first.
"""
CONTAINER = """\
{made_by}
# Build:  apptainer build envs/recompose.sif envs/container.def      (from the root of the repository)
# Use:    ./reproduce --sdm apptainer
Bootstrap: docker
From: python:{python}-slim

%files
    envs/requirements.lock /opt/requirements.lock

%post
    pip install --no-cache-dir torch=={torch}
    pip install --no-cache-dir -r /opt/requirements.lock
"""


def find_closure(project: dict) -> dict[str, str]:
    """Return the installed version of each package that the [project] table needs, including `dev`."""
    waiting = [Requirement(line) for line in project["dependencies"] + project["optional-dependencies"]["dev"]]
    found: dict[str, str] = {}
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        # The CUDA build of torch pins its own CUDA libraries, and no other package needs them.
        if (name in found and not requirement.extras) or name.startswith(("nvidia-", "cuda-", "triton")):
            continue
        installed = distribution(name)
        # A local version (+cpu) names the installed build, which others may not need.
        found[name] = Version(installed.version).public
        for line in installed.requires or []:
            needed = Requirement(line)
            if needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in requirement.extras or {""}
            ):
                waiting.append(needed)
    return dict(sorted(found.items()))


def format_lock(pins: dict[str, str]) -> str:
    """Format requirements.lock."""
    lines = [f"{name}=={version}" for name, version in pins.items()]
    return "\n".join(
        [MADE_BY.format("pyproject.toml"), LOCK_NOTES.format(torch=pins["torch"]) + lines[0], *lines[1:], ""]
    )


def read_lock(text: str) -> dict[str, str]:
    """Return the version of each package in the text of a requirements.lock."""
    return dict(line.split("==") for line in text.splitlines() if line and not line.startswith("#"))


def format_environment(pins: dict[str, str], python: str) -> str:
    """Format environment.yaml. Conda installs Python, and pip the packages, as everywhere else."""
    lines = [
        MADE_BY.format("envs/requirements.lock"),
        "# Use:  ./reproduce --sdm conda",
        "channels:",
        "  - conda-forge",
        "  - nodefaults",
        "dependencies:",
        f"  - python={python}",
        "  - pip",
        "  - pip:",
        *(f"      - {name}=={version}" for name, version in pins.items()),
    ]
    return "\n".join([*lines, ""])


def format_container(pins: dict[str, str], python: str) -> str:
    """Format container.def."""
    return CONTAINER.format(made_by=MADE_BY.format("envs/requirements.lock"), python=python, torch=pins["torch"])


def main() -> None:
    """Write the three files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    python = project["requires-python"].removeprefix(">=")
    pins = find_closure(project)
    (ROOT / "envs/requirements.lock").write_text(format_lock(pins))
    (ROOT / "envs/environment.yaml").write_text(format_environment(pins, python))
    (ROOT / "envs/container.def").write_text(format_container(pins, python))
    print(f"{len(pins)} packages pinned", file=sys.stderr)


if __name__ == "__main__":
    main()
