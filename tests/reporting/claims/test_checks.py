"""Checks without training: against the official files where they are at hand, and on a grammar with a mistake."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from workflow_scripts.__main__ import main
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.data.datasets import scan
from workflow_scripts.reporting.claims.checks import OFFICIAL, audit_published_numbers, digest_pairs, verify_grammar

ROOT = Path(__file__).parents[3]
FILES = {
    "add_jump train": "tasks_train_addprim_jump.txt",
    "add_jump test": "tasks_test_addprim_jump.txt",
    "around_right train": "tasks_train_template_around_right.txt",
    "around_right test": "tasks_test_template_around_right.txt",
}


@pytest.mark.parametrize("name", FILES)
def test_the_digests_are_those_of_the_official_files(name, mirror):
    examples = scan.read_scan(mirror / "scan" / FILES[name])
    assert digest_pairs((example.source, example.target) for example in examples) == OFFICIAL[name]


def test_the_grammar_makes_the_official_sets():
    assert [check.outcome for check in verify_grammar()] == ["same"] * 4


def test_a_mistake_in_the_grammar_is_found(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setitem(scan.REPETITIONS, " thrice", 4)
    assert {check.outcome for check in verify_grammar()} == {"differs"}
    assert main(["checks"]) == 1
    said = capsys.readouterr()
    assert said.out.count("differs") >= 4
    assert said.err.startswith("error: scan add_jump train, scan add_jump test") and said.err.count("\n") == 1


def test_repeated_lines_count():
    assert digest_pairs([("a", "b")] * 2) != digest_pairs([("a", "b")])
    assert digest_pairs([("a", "b"), ("c", "d")]) == digest_pairs([("c", "d"), ("a", "b")])


def test_findings_follow_from_the_committed_numbers():
    """The numbers are those of the audit's table; claims are counted by hand from what the reference prints."""
    found = {check.check: check.found for check in audit_published_numbers(load_catalogue(ROOT))}
    with open(ROOT / "results/reference/small/tables/recompose/table-audit.csv") as stream:
        audit = {row["metric"]: row["reproduced"] for row in csv.DictReader(stream) if row["row"] == "all"}
    assert found["carma spread"] == f"{audit['cv_ratio_inside']} of {audit['cv_ratio_count']}"
    with open(ROOT / "results/reference/small/claims.csv") as stream:
        printed = [row["printed"] for row in csv.DictReader(stream) if row["kind"] == "paper" and row["printed"]]
    assert found["claims against printed numbers"] == f"{printed.count('contradict')} of {len(printed)}"


def test_they_are_written_and_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["checks", "--out", str(tmp_path / "checks.csv")]) == 0
    with open(tmp_path / "checks.csv") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["outcome"] for row in rows] == ["same"] * 4 + ["finding"] * 3
    said = capsys.readouterr().out.replace("\n", " ")
    assert "SCAN add_jump train: the 14,670 lines of the grammar against the official file's 14,670" in said


def test_they_load_no_torch():
    """They take seconds: torch alone would take as long as all of them."""
    code = "import sys; from workflow_scripts.__main__ import main; assert main(['checks']) == 0; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not {"torch", "transformers"} & set(said.split())
