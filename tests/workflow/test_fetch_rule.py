"""The rule fetch, by real snakemake runs: what somebody has put into results/downloads."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from tests.workflow.projects import Project, copied

NAME = "wordnet/COPYRIGHT"  # it has no URL, so nothing is downloaded
FILE = f"results/downloads/{NAME}"
CONTENT = b"WordNet Release 3.0\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project without a mirror, that expects CONTENT."""
    monkeypatch.delenv("RECOMPOSE_MIRROR", raising=False)
    project = copied(tmp_path / "project")
    with project.edited("workflow_scripts/data/sources/sources.yaml") as sources:
        pin = {"sha256": sha256(CONTENT).hexdigest(), "bytes": len(CONTENT)}
        sources["datasets"]["wordnet"]["files"]["COPYRIGHT"] |= pin
    (project.root / FILE).parent.mkdir(parents=True)
    return project


@pytest.mark.quick_faults
def test_a_file_that_was_put_there_is_checked_and_kept(project: Project):
    """As the error for a file without a URL advises."""
    file = project.root / FILE
    file.write_bytes(CONTENT)
    project.make(f"{FILE}.json")
    assert file.read_bytes() == CONTENT
    manifest = json.loads((project.root / f"{FILE}.json").read_text())
    assert manifest["sha256"] == sha256(CONTENT).hexdigest()


@pytest.mark.faults
def test_a_wrong_file_that_was_put_there_is_refused_and_not_deleted(project: Project):
    file = project.root / FILE
    file.write_bytes(b"another release\n")
    done = project.reproduce(f"{FILE}.json")
    assert done.returncode == 1
    assert f"error: {NAME} is missing: no mirror is set, and it has no URL" in done.stderr
    assert file.read_bytes() == b"another release\n"
    assert not (project.root / ".snakemake/backups").exists()  # it may be of gigabytes
    file.write_bytes(CONTENT)
    project.make(f"{FILE}.json")
    assert file.read_bytes() == CONTENT


@pytest.mark.slow
def test_a_link_that_was_put_there_stays_one_and_what_it_leads_to_is_not_written(
    project: Project, tmp_path: Path
):
    shared = tmp_path / "COPYRIGHT"
    shared.write_bytes(b"another release\n")
    inode = shared.stat().st_ino
    file = project.root / FILE
    file.symlink_to(shared)
    assert project.reproduce(f"{FILE}.json").returncode == 1
    assert file.is_symlink()
    assert (shared.read_bytes(), shared.stat().st_ino) == (b"another release\n", inode)


@pytest.mark.slow
def test_a_file_that_is_deleted_is_fetched_again(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mirror = tmp_path / "mirror"
    (mirror / NAME).parent.mkdir(parents=True)
    (mirror / NAME).write_bytes(CONTENT)
    monkeypatch.setenv("RECOMPOSE_MIRROR", str(mirror))
    project.make(f"{FILE}.json")
    assert project.planned(f"{FILE}.json") == set()
    (project.root / FILE).unlink()
    assert project.planned(FILE) == {("fetch", FILE), ("fetch", f"{FILE}.json")}
    project.make(FILE)
    assert (project.root / FILE).read_bytes() == CONTENT
