"""Fetching and preparing where the disk is full or cannot be written: real file systems, mounted
for the test.
"""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from tests.data.file_server import serving
from tests.training.toy import assert_one_error
from workflow_scripts.__main__ import main
from workflow_scripts.commands import fetch
from workflow_scripts.data.sources.declared import Source

CONTENT = os.urandom(1_000_000)


@pytest.fixture(params=["mirror", "server"])
def origin(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Declared are a small file and one of 1 MB; both are to be had, from a folder or from a
    server.
    """
    contents = {"toy/small.txt": b"small", "toy/large.bin": CONTENT}
    with serving() as server:
        server.files.update({f"/{name}": content for name, content in contents.items()})
        sources = {}
        for name, content in contents.items():
            urls = (f"{server.url}/{name}",) if request.param == "server" else ()
            digest = hashlib.sha256(content).hexdigest()
            sources[name] = Source(
                name, urls, digest, len(content), "1", "MIT", True, "nobody", "a toy"
            )
            path = tmp_path / "mirror" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        monkeypatch.setattr(fetch, "load_sources", lambda: sources)
        if request.param == "mirror":
            monkeypatch.setenv("RECOMPOSE_MIRROR", str(tmp_path / "mirror"))
        else:
            monkeypatch.delenv("RECOMPOSE_MIRROR", raising=False)
        yield


def contents(folder: Path) -> dict[str, bytes]:
    """Every file under a folder but locks, halves of downloads and what fills the disk."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    kept = [
        path
        for path in files
        if ".locks" not in path.parts and path.suffix not in (".part", ".filler")
    ]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in kept}


def fill(disk: Path, left: int) -> Path:
    """A file that leaves `left` bytes."""
    free = os.statvfs(disk)
    filler = disk / "disk.filler"
    filler.write_bytes(bytes(free.f_bavail * free.f_frsize - left))
    return filler


def test_fetch_on_a_full_disk(origin, small_disk: Path, capsys: pytest.CaptureFixture[str]):
    downloads = small_disk / "downloads"
    assert main(["fetch", "toy/small.txt", "--downloads", str(downloads)]) == 0
    filler = fill(small_disk, left=100_000)
    before = contents(small_disk)
    capsys.readouterr()
    assert main(["fetch", "toy/large.bin", "--downloads", str(downloads)]) == 1
    assert_one_error(capsys.readouterr().err, str(downloads), "No space left on device")
    assert contents(small_disk) == before
    filler.unlink()
    assert main(["fetch", "toy", "--downloads", str(downloads)]) == 0
    got = {
        name: content for name, content in contents(downloads).items() if not name.endswith(".json")
    }
    assert got == {"toy/small.txt": b"small", "toy/large.bin": CONTENT}


def test_fetch_to_a_folder_that_cannot_be_written(
    origin, small_disk: Path, capsys: pytest.CaptureFixture[str]
):
    downloads = small_disk / "downloads"
    assert main(["fetch", "toy/small.txt", "--downloads", str(downloads)]) == 0
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    before = contents(small_disk)
    capsys.readouterr()
    for place in (downloads, small_disk / "elsewhere"):
        assert main(["fetch", "toy/large.bin", "--downloads", str(place)]) == 1
        assert_one_error(capsys.readouterr().err, str(place), "Read-only file system")
    assert contents(small_disk) == before


# Text lines, and records: written by different code.
@pytest.mark.parametrize("task", ["cogs", "idm"])
def test_prepare_where_nothing_can_be_written(
    task, small_disk: Path, capsys: pytest.CaptureFixture[str]
):
    out = small_disk / "data" / task
    command = ["prepare", "--task", task, "--scale", "demo", "--out", str(out)]
    assert main(command) == 0
    before = contents(small_disk)
    assert f"data/{task}/dataset.json" in before

    filler = fill(small_disk, left=8192)  # all of its files take more
    capsys.readouterr()
    assert main(command) == 1
    assert_one_error(capsys.readouterr().err, str(out), "No space left on device")
    assert contents(small_disk) == before

    filler.unlink()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert main(command) == 1
    assert_one_error(capsys.readouterr().err, str(out.parent), "is not writable")
    assert contents(small_disk) == before

    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    assert main(command) == 0
    after, record = contents(small_disk), f"data/{task}/record.json"  # which says when it was made
    assert after.keys() == before.keys() and after.pop(record) != before.pop(record)
    assert after == before
