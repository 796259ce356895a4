"""envs/make_venv: what it says when it cannot do its work, and that it leaves nothing that looks done."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.workflow.projects import ROOT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project that is nothing but make_venv and a lock of one package."""
    (tmp_path / "envs").mkdir()
    shutil.copy2(ROOT / "envs/make_venv", tmp_path / "envs/make_venv")
    (tmp_path / "envs/requirements.lock").write_text("torch==0.0.0\n")
    return tmp_path


def make_venv(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    captured = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": 120}
    return subprocess.run(["envs/make_venv"], cwd=folder, env=os.environ | environment, **captured)


def test_no_python_is_one_line(folder):
    (folder / "bin").mkdir()
    for name in ("python3", "python3.11", "python3.12", "python3.13"):
        stub = folder / "bin" / name
        stub.write_text("#!/bin/sh\nexit 1\n")
        stub.chmod(0o755)
    done = make_venv(folder, PATH=f"{folder / 'bin'}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: no Python 3.11, 3.12 or 3.13 with its venv and ensurepip modules on PATH; install one first"
    ]


def test_failed_installation_is_not_taken_for_a_whole_one(folder):
    done = make_venv(folder, PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull)
    assert done.returncode == 1
    assert "error: pip could not make .venv: ERROR: No matching distribution found for torch==0.0.0" in done.stderr
    assert (folder / ".venv").is_dir()
    assert not (folder / ".venv/made-from.lock").exists()


def test_environment_of_this_very_lock_is_left_alone(folder):
    (folder / ".venv").mkdir()
    shutil.copy2(folder / "envs/requirements.lock", folder / ".venv/made-from.lock")
    done = make_venv(folder)
    assert (done.returncode, done.stderr) == (0, "")


def test_another_process_at_work_is_said(folder):
    (folder / ".venv").mkdir()
    (folder / ".venv/maker.pid").write_text(str(os.getpid()))
    done = make_venv(folder)
    assert done.returncode == 1
    assert done.stderr == f"error: process {os.getpid()} is making .venv; wait until it is done\n"
    assert (folder / ".venv").is_dir()
