"""The files that `new-method` writes."""

import shutil
from pathlib import Path

import pytest

from workflow_scripts.__main__ import main

ROOT = Path(__file__).parents[2]
EXAMPLE = "docs/examples/near_layers"
OBJECTIVE = "workflow_scripts/objectives/mine/objective.py"
FILES = {
    "catalogue/methods/mine.yaml",
    "papers/mine/NOTES.md",
    "papers/mine/claims.yaml",
    "papers/mine/displays.yaml",
    "papers/mine/experiments.yaml",
    "papers/mine/published.csv",
    "workflow_scripts/objectives/mine/__init__.py",
    OBJECTIVE,
    "workflow_scripts/objectives/mine/settings.py",
}


@pytest.fixture
def here(copy_here: Path) -> Path:
    """The working directory: a copy of what a user can edit, with the example."""
    shutil.copytree(ROOT / EXAMPLE, copy_here / EXAMPLE)
    return copy_here


def list_files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def test_the_files_are_those_of_the_example_under_the_new_name(
    here: Path, capsys: pytest.CaptureFixture[str]
):
    before = list_files(here)
    assert main(["new-method", "mine"]) == 0
    written = {file for file in list_files(here) - before if ".locks" not in file}
    assert written == FILES
    *listed, run, change, schemas = capsys.readouterr().out.splitlines()
    assert set(listed) == FILES
    assert run.startswith("./reproduce --papers mine ")
    assert change.endswith(OBJECTIVE)
    assert schemas == "`lint` updates catalogue/schemas/, which editors read: commit it, too"
    for file in FILES:
        text = (here / file).read_text()
        assert not any(name in text for name in ("near_layers", "near-layers", "near layers"))
    assert (
        "from workflow_scripts.objectives.mine.settings import Settings"
        in (here / OBJECTIVE).read_text()
    )


@pytest.mark.parametrize("name", ["", "Mine", "my-method", "2nd", "../x", "a" * 51, "-n"])
def test_a_bad_name_is_refused_in_one_line(name: str, here: Path, capsys):
    before = list_files(here)
    assert main(["new-method", "--", name]) == 1
    assert capsys.readouterr().err.startswith(f"error: the name {name!r} cannot name a method ")
    assert list_files(here) == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lambda", "the name 'lambda' is a word of Python; choose another name"),
        ("off", "the name 'off' is no text in YAML; choose another name"),
        ("null", "the name 'null' is no text in YAML; choose another name"),
        (
            "hidden_states",
            "workflow_scripts/objectives/hidden_states.py exists; choose another name",
        ),
        (
            "compositional",
            "workflow_scripts/objectives/compositional exists; choose another name",
        ),
        ("transformer", "the method transformer exists; choose another name"),
        ("cat", "the method cat exists; choose another name"),
        ("mine", "papers/mine/NOTES.md exists; choose another name"),
    ],
)
def test_nothing_is_overwritten(name: str, message: str, here: Path, capsys):
    notes = here / "papers/mine/NOTES.md"
    if name == "mine":
        notes.parent.mkdir()
        notes.write_text("of my own")
    objectives = here / "workflow_scripts/objectives"
    (objectives / "compositional").mkdir(parents=True)
    (objectives / "hidden_states.py").touch()
    before = list_files(here)
    assert main(["new-method", name]) == 1
    assert capsys.readouterr().err == f"error: {message}\n"
    assert {file for file in list_files(here) if ".locks" not in file} == before


def test_it_is_run_in_the_root_of_the_repository(here: Path, capsys, monkeypatch):
    monkeypatch.chdir(here / "catalogue")
    assert main(["new-method", "mine"]) == 1
    assert "run this in the root of the repository" in capsys.readouterr().err
