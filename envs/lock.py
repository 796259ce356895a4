"""Makes the pinned environment's files: `python envs/lock.py`, where all that pyproject.toml asks for is installed.

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
# torch stands here without a local version such as +cpu: on a machine with an NVIDIA GPU the same line installs the
# CUDA build, which brings its own pinned CUDA libraries; to have another build, install that one first.
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


def closure(project: dict) -> dict[str, str]:
    """Name -> installed version of everything that the [project] table needs, `dev` included."""
    waiting = [Requirement(line) for line in project["dependencies"] + project["optional-dependencies"]["dev"]]
    found: dict[str, str] = {}
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        # CUDA libraries are pinned by the CUDA build of torch itself and exist for it alone.
        if (name in found and not requirement.extras) or name.startswith(("nvidia-", "cuda-", "triton")):
            continue
        installed = distribution(name)
        # A local version (+cpu) says which build is here, not which one is wanted.
        found[name] = Version(installed.version).public
        for line in installed.requires or []:
            needed = Requirement(line)
            if needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in requirement.extras or {""}
            ):
                waiting.append(needed)
    return dict(sorted(found.items()))


def requirements_lock(pins: dict[str, str]) -> str:
    """The text of requirements.lock."""
    lines = [f"{name}=={version}" for name, version in pins.items()]
    return "\n".join(
        [MADE_BY.format("pyproject.toml"), LOCK_NOTES.format(torch=pins["torch"]) + lines[0], *lines[1:], ""]
    )


def read_lock(text: str) -> dict[str, str]:
    """Name -> version of the lines of a requirements.lock."""
    return dict(line.split("==") for line in text.splitlines() if line and not line.startswith("#"))


def environment_yaml(pins: dict[str, str], python: str) -> str:
    """The text of environment.yaml. Python is conda's; the packages are pip's, as everywhere else."""
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


def container_def(pins: dict[str, str], python: str) -> str:
    """The text of container.def."""
    return CONTAINER.format(made_by=MADE_BY.format("envs/requirements.lock"), python=python, torch=pins["torch"])


def main() -> None:
    """Write the three files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    python = project["requires-python"].removeprefix(">=")
    pins = closure(project)
    (ROOT / "envs/requirements.lock").write_text(requirements_lock(pins))
    (ROOT / "envs/environment.yaml").write_text(environment_yaml(pins, python))
    (ROOT / "envs/container.def").write_text(container_def(pins, python))
    print(f"{len(pins)} packages pinned", file=sys.stderr)


if __name__ == "__main__":
    main()
