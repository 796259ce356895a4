"""Write environment.yaml (conda) and container.def (Apptainer) from requirements.lock.

    python envs/lock.py

requirements.lock itself is made by uv, with the command in its head, which keeps versions;
`--upgrade` renews them.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
MADE_BY = "# Made by envs/lock.py from envs/requirements.lock; do not edit."
CONTAINER = """\
{made_by}
# Build:  apptainer build envs/recompose.sif envs/container.def   (in the root of the repository)
# Use:    ./reproduce --sdm apptainer
Bootstrap: docker
From: python:{python}-slim

%files
    envs/requirements.lock /opt/requirements.lock

%post
    sed -n '/^setuptools==/,/[^\\]$/p' /opt/requirements.lock >/opt/setuptools.lock
    pip install --no-cache-dir --require-hashes --no-deps -r /opt/setuptools.lock
    pip install --no-cache-dir --require-hashes --no-deps --no-build-isolation \\
        -r /opt/requirements.lock
    pip install --no-cache-dir torch=={torch}
"""


def read_pins() -> dict[str, str]:
    """Return the version of each package in requirements.lock, and that of torch.

    pyproject.toml pins torch.
    """
    lock = (ROOT / "envs/requirements.lock").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pins = re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE)
    pins += re.findall(r'"(torch)==([\d.]+)"', project)
    return dict(sorted(pins))


def format_environment(pins: dict[str, str], python: str) -> str:
    """Format environment.yaml. Conda installs Python, and pip the packages, as everywhere else."""
    lines = [
        MADE_BY,
        "# Use:  ./reproduce --sdm conda",
        "# Without hashes: pip would then demand one of torch too.",
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
    return CONTAINER.format(made_by=MADE_BY, python=python, torch=pins["torch"])


def main() -> None:
    """Write the two files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    python = project["requires-python"].removeprefix(">=")
    pins = read_pins()
    (ROOT / "envs/environment.yaml").write_text(format_environment(pins, python), encoding="utf-8")
    (ROOT / "envs/container.def").write_text(format_container(pins, python), encoding="utf-8")


if __name__ == "__main__":
    main()
