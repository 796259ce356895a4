"""What killed processes leave of the folders and files that they write."""

import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workflow_scripts.common.files import check_replaceable, list_files, write_atomically
from workflow_scripts.common.scratch_folders import LOCK, remove_leftovers

ROOT = Path(__file__).parents[2]
WRITES = """
import sys, time
from pathlib import Path
from workflow_scripts.common.files import write_atomically
with write_atomically(Path(sys.argv[1])) as folder:
    folder.mkdir()
    (folder / "part").write_text("x")
    print("wrote", flush=True)
    time.sleep(60)
"""


def start(target: Path) -> tuple[subprocess.Popen, Path]:
    """A process that is in the middle of writing, and its scratch folder, made to look old."""
    before = set(target.parent.iterdir())
    process = subprocess.Popen(
        [sys.executable, "-c", WRITES, target], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "wrote\n"
    (scratch,) = set(target.parent.iterdir()) - before
    age = time.time() - 3600
    os.utime(scratch, (age, age))
    return process, scratch


@pytest.mark.quick_faults
def test_what_a_killed_process_left_is_deleted_by_the_next_one_and_what_another_writes_is_not(
    tmp_path: Path,
):
    target = tmp_path / "wikipedia[1]"
    killed, left = start(target)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    other, written = start(target)
    assert not left.exists() and (written / target.name / "part").exists()
    try:
        with write_atomically(target) as folder:
            folder.mkdir()
            (folder / "whole").write_text("y")
        assert (written / target.name / "part").exists()
    finally:
        other.kill()
        other.wait()
    assert [path.name for path in target.iterdir()] == ["whole"]
    with write_atomically(target) as folder:
        folder.mkdir()
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


@pytest.mark.parametrize(("machine", "hours"), [("this one", 1), ("another", 100)])
def test_what_is_left_is_deleted_at_once_on_this_machine_and_later_on_others(
    tmp_path: Path, machine: str, hours: float
):
    """A file system may keep the locks of each machine apart, so that those of others are unseen."""
    scratch = tmp_path / ".data.abcdefgh"
    scratch.mkdir()
    (scratch / LOCK).write_text(platform.node() if machine == "this one" else machine)
    for age, is_kept in ((hours / 2 * 3600, machine == "another"), (hours * 3600, False)):
        made = time.time() - age
        os.utime(scratch, (made, made))
        remove_leftovers(tmp_path, "data")
        assert scratch.exists() == is_kept
        if not is_kept:
            break


@pytest.mark.parametrize("name", [".data.abcdefgh", ".data2.abcdefgh", "data.abcdefgh"])
def test_folders_of_others_are_kept(tmp_path: Path, name: str):
    """One without a lock, that of another target, and one that is not hidden."""
    folder = tmp_path / name
    folder.mkdir()
    if name != ".data.abcdefgh":
        (folder / LOCK).touch()
    os.utime(folder, (0, 0))
    remove_leftovers(tmp_path, "data")
    assert folder.exists()


def test_those_of_earlier_versions_have_no_lock_and_are_deleted_after_days(tmp_path: Path):
    scratch = tmp_path / ".data.abcdefgh"
    (scratch / "data").mkdir(parents=True)
    for days, is_kept in ((2, True), (4, False)):
        made = time.time() - days * 24 * 3600
        os.utime(scratch, (made, made))
        remove_leftovers(tmp_path, "data")
        assert scratch.exists() == is_kept


@pytest.mark.quick_faults
def test_what_a_killed_process_left_in_a_folder_does_not_block_its_replacement(tmp_path: Path):
    """As the scores in the folder of a run; what a process writes there stays."""
    folder = tmp_path / "seed-1"
    folder.mkdir()
    (folder / "run.json").touch()
    killed, left = start(folder / "eval")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    other, written = start(folder / "interventions")
    try:
        assert list_files(folder) == [folder / "run.json"]
        check_replaceable(folder, ["run.json"])
        assert not left.exists() and written.exists()
    finally:
        other.kill()
        other.wait()
    check_replaceable(folder, ["run.json"])
    assert list(folder.iterdir()) == [folder / "run.json"]
