"""What is read of the answers of git, whatever else is in them."""

import os
import shutil
from pathlib import Path

import pytest

from workflow_scripts.common import system

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("answer", "commit"),
    [
        (f"{COMMIT}\n", COMMIT),
        (f"warning: no locale\n{COMMIT}\nhint: x\n", COMMIT),
        (f"{COMMIT}{COMMIT[:24]}\r\n", f"{COMMIT}{COMMIT[:24]}"),  # sha256
        ("", None),
        ("HEAD\n", None),
        (f"{COMMIT[:12]}\n", None),
    ],
)
def test_commit(answer: str, commit: str | None):
    assert system.parse_commit(answer) == commit


@pytest.mark.parametrize(
    ("answer", "entries"),
    [
        ("", []),
        (" M a b.md\0?? new.py\0", [" M a b.md", "?? new.py"]),
        ("R  new.md\0old.md\0", ["R  new.md"]),
        ("warning: slow file system\n M a.md\0", [" M a.md"]),
        ("Refresh index: 100%\r\n", []),
    ],
)
def test_status(answer: str, entries: list[str]):
    assert system.parse_status(answer) == entries


def test_a_git_that_says_more_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    git = tmp_path / "git"
    git.write_text(
        f'#!/bin/sh\necho "Loading the module git/2.4"\nexec {shutil.which("git")} "$@"\n'
    )
    git.chmod(0o755)
    expected = system.read_commit()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert system.read_commit() == expected
    if (system.PROJECT / ".git").exists():
        assert system.parse_commit(str(expected["commit"]))
