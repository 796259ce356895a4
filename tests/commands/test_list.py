"""The names that `list` prints."""

from pathlib import Path

import pytest

from workflow_scripts.__main__ import main
from workflow_scripts.config.loading import load_catalogue

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)


def print_lines(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["list", *words]) == 0
    return capsys.readouterr().out.splitlines()


def test_every_method_stands_below_each_kind_of_task_that_it_can_be_trained_on(capsys):
    found = {}
    for line in print_lines(capsys):
        if line.startswith(("tasks of kind ", "methods for ")):
            names = found.setdefault(line, [])
        elif line.startswith("  "):
            names.append(line.split()[0])
    catalogue = load_catalogue(ROOT)
    wanted = {}
    for name, task in catalogue.tasks.items():
        wanted.setdefault(f"tasks of kind {task.kind}", []).append(name)
    for name, method in catalogue.methods.items():
        for kind in method.kinds:
            wanted.setdefault(f"methods for {kind}", []).append(name)
    assert found == wanted


def test_of_a_method_the_variants_and_its_place_are_printed(capsys):
    head, place, title, *variants = print_lines(capsys, "transformer-lrf")
    assert head.startswith("method transformer-lrf: ") and head.endswith(" of kind seq2seq")
    file, line, name = place.strip().split(":")
    assert (ROOT / file).read_text().splitlines()[int(line) - 1] == f"{name.strip()}:"
    assert title == "variants"
    assert [text.split()[0] for text in variants] == ["lrf", "matched"]


def test_of_a_task_the_methods_are_printed(capsys):
    head, place, title, *methods = print_lines(capsys, "squad")
    assert head.startswith("task squad: ") and head.endswith(", of kind question_answering")
    assert place.strip().startswith("catalogue/tasks/") and place.endswith(": squad")
    assert title == "methods for question_answering"
    assert {"cat", "bert"} <= {text.split()[0] for text in methods}


def test_a_paper_is_answered_with_what_lists_its_tables_and_claims(capsys):
    assert main(["list", "carma"]) == 1
    assert capsys.readouterr().err == (
        "error: carma is a paper, no task or method; `plan --papers carma --by table` lists its "
        "tables and figures, `--by claim` its claims\n"
    )
    assert main(["plan", "--scale", "small", "--papers", "carma", "--by", "claim"]) == 0
    assert "carma/cv-six" in capsys.readouterr().out


def test_an_unknown_name_is_answered_with_the_nearest_one(capsys):
    assert main(["list", "lrff"]) == 1
    wanted = "error: no task or method has the name 'lrff'; did you mean 'lrf'?\n"
    assert capsys.readouterr().err == wanted
