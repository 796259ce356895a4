"""Where and from what a result was made."""

import shutil
import subprocess
import time
from pathlib import Path

import numpy as np

from workflow_scripts import provenance

ROOT = Path(__file__).parents[1]


def test_peak_memory_is_in_bytes_and_sees_what_was_held():
    before = provenance.peak_memory()
    block = np.ones(before // 8 + 40_000_000)
    assert block.nbytes < provenance.peak_memory() < 3 * block.nbytes


def test_cpu_seconds_count_work_and_not_sleep():
    began, clock = provenance.cpu_seconds(), time.monotonic()
    time.sleep(0.3)
    assert provenance.cpu_seconds() - began < 0.2
    while time.monotonic() - clock < 0.6:
        sum(range(1000))
    assert provenance.cpu_seconds() > began


def test_the_commit_is_that_of_the_checkout_and_dirty_when_a_tracked_file_differs(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "PROJECT", tmp_path)
    assert provenance.origin()["commit"] is None and provenance.origin()["dirty"] is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    (tmp_path / "file").write_text("one")
    for arguments in (["init", "-q"], ["add", "file"], ["commit", "-qm", "First"]):
        subprocess.run([*git, *arguments], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    assert (provenance.origin()["commit"], provenance.origin()["dirty"]) == (head, False)
    (tmp_path / "file").write_text("two")
    assert provenance.origin()["dirty"] is True
    shutil.rmtree(tmp_path / ".git")
    assert provenance.origin()["commit"] is None


def test_versions_are_those_installed():
    import torch

    assert provenance.versions()["torch"] == torch.__version__
