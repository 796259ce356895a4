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


@pytest.mark.quick_faults
def test_a_wrong_file_that_was_put_there_is_refused_and_not_deleted(project: Project):
    file = project.root / FILE
    file.write_bytes(b"another release\n")
    done = project.reproduce(f"{FILE}.json")
    assert done.returncode == 1
    assert f"error: {NAME} is missing: no mirror is set, and it has no URL" in done.stderr
    assert file.read_bytes() == b"another release\n"
    file.write_bytes(CONTENT)
    project.make(f"{FILE}.json")
    assert file.read_bytes() == CONTENT
