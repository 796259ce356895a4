"""envs/make_venv: what it says when it cannot do its work, and that it leaves nothing that looks
done.
"""

import hashlib
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.workflow.projects import ROOT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project of make_venv, a lock of two packages, and torch."""
    (tmp_path / "envs").mkdir()
    for name in ("make_venv", "check_venv.py", "clean_environment", "variables.txt"):
        shutil.copy2(ROOT / "envs" / name, tmp_path / "envs" / name)
    (tmp_path / "pyproject.toml").write_text('dependencies = ["torch==0.0.0"]\n')
    hashes = {name: make_wheel(tmp_path, name) for name in ("setuptools", "toy", "torch")}
    pins = [
        f"{name}==0.0.0 \\\n    --hash=sha256:{hashes[name]}\n" for name in ("setuptools", "toy")
    ]
    (tmp_path / "envs/requirements.lock").write_text("# A comment.\n" + "".join(pins))
    return tmp_path


def make_wheel(folder: Path, name: str) -> str:
    """Make a package of one module; torch's needs the toy. Returns its sha256."""
    wheel, info = folder / f"{name}-0.0.0-py3-none-any.whl", f"{name}-0.0.0.dist-info"
    needs = "Requires-Dist: toy\n" if name == "torch" else ""
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}.py", "")
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0.0\n{needs}"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", f"{name}.py,,\n")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def make_venv(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    captured = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": 120}
    offline = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": str(folder)}
    return subprocess.run(
        ["envs/make_venv"], cwd=folder, env=os.environ | offline | environment, **captured
    )


def without_python(folder: Path) -> str:
    """A PATH on which no Python works."""
    (folder / "bin").mkdir()
    for name in ("python3", "python3.11", "python3.12", "python3.13"):
        stub = folder / "bin" / name
        stub.write_text("#!/bin/sh\nexit 1\n")
        stub.chmod(0o755)
    return f"{folder / 'bin'}:{os.environ['PATH']}"


def test_no_python_is_one_line(folder):
    done = make_venv(folder, PATH=without_python(folder))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: no Python 3.11, 3.12 or 3.13 with its venv and ensurepip modules on PATH; install one first"
    ]


@pytest.mark.quick_faults
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("toy", "THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE"),
        pytest.param(
            "torch", "No matching distribution found for torch==0.0.0", marks=pytest.mark.slow
        ),
    ],
)
def test_a_changed_package_is_refused_and_a_failed_installation_is_not_taken_for_a_whole_one(
    folder, name, fault
):
    """Of torch, whose sha256 differs between machines, only the version is checked: here it is
    missing.
    """
    wheel = folder / f"{name}-0.0.0-py3-none-any.whl"
    if name == "torch":
        wheel.unlink()
    else:
        with zipfile.ZipFile(wheel, "a") as archive:
            archive.writestr("changed_after_the_lock.py", "")
    done = make_venv(folder)
    assert done.returncode == 1
    assert f"error: pip could not make .venv: ERROR: {fault}" in done.stderr
    assert not (folder / ".venv/made-from.lock").exists()
    assert not list((folder / ".venv").rglob("changed_after_the_lock.py"))


def find_package(python: Path, where: Path) -> str:
    """Where a script of another folder finds the package."""
    where.mkdir(exist_ok=True)
    (where / "any.py").write_text("import workflow_scripts; print(workflow_scripts.__file__)")
    done = subprocess.run([python, where / "any.py"], cwd=where, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


def test_environment_of_these_versions_is_left_alone_and_of_others_made_again(folder):
    lock, made = folder / "envs/requirements.lock", folder / ".venv/made-from.lock"
    assert make_venv(folder).returncode == 0
    assert made.read_text().splitlines() == ["setuptools==0.0.0", "torch==0.0.0", "toy==0.0.0"]
    assert {"setuptools.py", "torch.py", "toy.py"} <= {
        file.name for file in (folder / ".venv").rglob("*.py")
    }
    (folder / "workflow_scripts.py").write_text("")
    (pth,) = (folder / ".venv").rglob("recompose.pth")
    elsewhere = folder / "elsewhere"
    assert find_package(folder / ".venv/bin/python", elsewhere) == str(
        folder / "workflow_scripts.py"
    )
    pth.unlink()  # as in an environment that was made before
    lock.write_text(f"{lock.read_text()}    --hash=sha256:{'0' * 64}\n# Another comment.\n")
    done = make_venv(folder)
    assert (done.returncode, done.stderr) == (0, "")
    # Another checkout may have a link to this environment: its programs find its own package.
    other = folder / "other"
    other.mkdir()
    (other / ".venv").symlink_to(folder / ".venv")
    (other / "workflow_scripts.py").write_text("")
    assert find_package(other / ".venv/bin/python", elsewhere) == str(other / "workflow_scripts.py")
    folder.rename(folder.with_name("moved"))
    moved = folder.with_name("moved")
    assert find_package(moved / ".venv/bin/python", moved) == str(moved / "workflow_scripts.py")
    moved.rename(folder)
    (folder / "pyproject.toml").write_text('dependencies = ["torch==0.0.1"]\n')
    assert "error: no Python" in make_venv(folder, PATH=without_python(folder)).stderr


def test_another_process_at_work_is_said(folder):
    (folder / ".venv").mkdir()
    (folder / ".venv/maker.pid").write_text(str(os.getpid()))
    done = make_venv(folder)
    assert done.returncode == 1
    assert done.stderr == f"error: process {os.getpid()} is making .venv; wait until it is done\n"
    assert (folder / ".venv").is_dir()


def test_the_own_number_is_no_other_process(folder):
    """A process that was killed may have had it: in a container, those of each call are alike."""
    (folder / ".venv").mkdir()
    program = f"echo $$ >{folder}/.venv/maker.pid; exec {folder}/envs/make_venv"
    done = subprocess.run(
        ["bash", "-c", program],
        env={"PATH": without_python(folder)},
        capture_output=True,
        text=True,
    )
    assert "error: no Python" in done.stderr


def test_an_environment_without_its_packages_or_its_python_is_said_in_one_line(folder):
    """As a copy of .venv is, whose scripts name the original, or one whose Python was removed."""
    assert make_venv(folder).returncode == 0
    advice = "; delete it with `rm -rf .venv` and run the same command again\n"
    information = next((folder / ".venv").rglob("toy-0.0.0.dist-info"))
    information.rename(information.with_name("elsewhere"))
    done = make_venv(folder)
    assert (done.returncode, done.stderr) == (
        1,
        f"error: .venv does not work (toy==0.0.0 not installed){advice}",
    )
    # As pip before 23.1 calls it, of a package without a wheel.
    old = information.with_name("elsewhere").rename(
        information.with_name("toy-0.0.0-py3.11.egg-info")
    )
    assert make_venv(folder).returncode == 0
    old.rename(information)
    assert make_venv(folder).returncode == 0
    (folder / ".venv").rename(folder / "moved")
    (folder / ".venv").symlink_to("moved")
    assert make_venv(folder).returncode == 0
    for python in (folder / "moved/bin").glob("python*"):
        python.unlink()
        python.symlink_to("/nowhere/python3.11")
    done = make_venv(folder)
    assert (done.returncode, done.stderr) == (
        1,
        f"error: .venv does not work (its Python is gone){advice}",
    )


@pytest.mark.parametrize(
    "setting",
    [
        "PIP_USER=1",
        pytest.param("PIP_CONSTRAINT", marks=pytest.mark.slow),
        pytest.param("PIP_TARGET", marks=pytest.mark.slow),
        pytest.param("user", marks=pytest.mark.slow),
    ],
)
def test_settings_of_pip_that_are_not_of_the_index_install_nothing_else(folder, setting):
    (folder / "constraint.txt").write_text("toy==1.0.0\n")
    (folder / "pip.conf").write_text(
        f"[install]\nuser = true\n[global]\nno-index = true\nfind-links = {folder}\n"
    )
    variables = {
        "PIP_USER=1": {"PIP_USER": "1"},
        "PIP_CONSTRAINT": {"PIP_CONSTRAINT": str(folder / "constraint.txt")},
        "PIP_TARGET": {"PIP_TARGET": str(folder / "target")},
        "user": {
            "PIP_CONFIG_FILE": str(folder / "pip.conf"),
            "PIP_NO_INDEX": "",
            "PIP_FIND_LINKS": "",
        },
    }[setting]
    done = make_venv(folder, **variables)
    assert done.returncode == 0, done.stderr
    assert {"setuptools.py", "torch.py", "toy.py"} <= {
        file.name for file in (folder / ".venv").rglob("*.py")
    }
