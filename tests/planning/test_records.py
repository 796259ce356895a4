"""Snakemake's records as files, and its dry run as data."""

import subprocess
import sys
from pathlib import Path

import pytest

from workflow_scripts.errors import UserError
from workflow_scripts.planning.records import jobs_of_dry_run, read_overrides, read_record, record_path
from workflow_scripts.planning.unfinished import failed_again, recorded_name

ROOT = Path(__file__).parents[2]
LONG = "/".join(["a" * 60] * 6) + "/b.txt"
SNAKEFILE = f"""
rule all:
    input: "short.txt", "{LONG}"
rule one:
    output: "short.txt"
    params: x="first"
    shell: "echo 1 > {{output}}"
rule two:
    input: "short.txt"
    output: "{LONG}"
    shell: "cp {{input}} {{output}}"
"""


@pytest.fixture
def workflow(tmp_path, monkeypatch):
    """A workflow of two jobs, in the current folder."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles/logger").symlink_to(ROOT / "profiles/logger")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_records_are_found_under_short_and_long_names(workflow):
    assert read_record("short.txt") is None
    subprocess.run([sys.executable, "-m", "snakemake", "-q", "all", "-c1"], check=True, capture_output=True)
    record = read_record("short.txt")
    assert record["rule"] == "one" and record["params"] == ["'first'"]
    assert record_path(LONG).exists() and read_record(LONG)["input"] == ["short.txt"]
    assert recorded_name(record_path(LONG)) == LONG and recorded_name(record_path("short.txt")) == "short.txt"


def test_a_job_that_failed_when_it_was_begun_again_is_missed_and_one_whose_file_was_deleted_is_not(workflow):
    """Snakemake itself has nothing to do in both cases: what was made from the file is there, and alone asked for."""
    snakefile = SNAKEFILE.replace('"short.txt", ', "").replace("echo 1", "test ! -e full && echo 1")
    run = [sys.executable, "-m", "snakemake", "-q", "all", "-c1"]
    Path("Snakefile").write_text(snakefile)
    subprocess.run(run, check=True, capture_output=True)
    Path("short.txt").unlink()
    assert (failed_again(), jobs_of_dry_run()) == (set(), [])
    Path("Snakefile").write_text(snakefile.replace("first", "second"))
    Path("full").touch()
    assert subprocess.run(run, capture_output=True).returncode == 1
    Path("full").unlink()
    assert (failed_again(), jobs_of_dry_run()) == ({"short.txt"}, [])


def test_a_dry_run_is_a_list_of_jobs(workflow):
    first, second = jobs_of_dry_run()
    assert (first["rule"], first["output"]) == ("one", ["short.txt"])
    assert (second["rule"], second["input"]) == ("two", ["short.txt"])
    assert not Path("short.txt").exists()
    assert [job["rule"] for job in jobs_of_dry_run("short.txt")] == ["one"]


def test_an_error_of_snakemake_is_one_line(workflow):
    with pytest.raises(UserError, match=r"^no rule makes nothing\.txt; .*; settings go behind --config$"):
        jobs_of_dry_run("nothing.txt")
    (workflow / "Snakefile").write_text("rule one:\n    nothing: 1\n")
    with pytest.raises(UserError, match=r"^snakemake --dry-run failed: .+$"):
        jobs_of_dry_run()


def test_overrides_have_types():
    given = read_overrides(["scale=small", "papers=[sq_transformer]", "seeds=[1, 2]", "extra=true"])
    assert given == {"scale": "small", "papers": ["sq_transformer"], "seeds": [1, 2], "extra": True}
