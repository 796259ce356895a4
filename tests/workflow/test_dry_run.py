"""Snakemake's dry run as data."""

from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.workflow.dry_run import list_planned_jobs, read_overrides

ROOT = Path(__file__).parents[2]
SNAKEFILE = """
rule all:
    input: "second.txt"
rule one:
    output: "first.txt"
    shell: "echo 1 > {output}"
rule two:
    input: "first.txt"
    output: "second.txt"
    shell: "cp {input} {output}"
"""


@pytest.fixture
def workflow(tmp_path, monkeypatch):
    """A workflow of two jobs, in the current folder."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles/plugins").symlink_to(ROOT / "profiles/plugins")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_dry_run_is_a_list_of_jobs(workflow):
    first, second = list_planned_jobs()
    assert (first["rule"], first["output"]) == ("one", ["first.txt"])
    assert (second["rule"], second["input"]) == ("two", ["first.txt"])
    assert not Path("first.txt").exists()
    assert [job["rule"] for job in list_planned_jobs("first.txt")] == ["one"]


def test_an_error_of_snakemake_is_one_line(workflow):
    with pytest.raises(UserError, match=r"^no rule makes nothing\.txt; .*; settings go after --config$"):
        list_planned_jobs("nothing.txt")
    (workflow / "Snakefile").write_text("rule one:\n    nothing: 1\n")
    with pytest.raises(UserError, match=r"^snakemake --dry-run failed: .+$"):
        list_planned_jobs()


def test_overrides_have_types():
    given = read_overrides(["scale=small", "papers=[sq_transformer]", "seeds=[1, 2]", "extra=true"])
    assert given == {"scale": "small", "papers": ["sq_transformer"], "seeds": [1, 2], "extra": True}
