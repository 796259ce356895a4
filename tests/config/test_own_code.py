"""Mistakes in the code of an objective, a model or another module of a user: each is one line with
file and line before anything runs.
"""

import shutil
from pathlib import Path

import pytest

from tests.workflow.projects import ROOT, Project, copied
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import describe_failed_import
from workflow_scripts.config import own_code
from workflow_scripts.config.own_code import (
    check_definition,
    check_entry_points,
    check_settings,
)

FOLDER = "workflow_scripts/objectives/near_layers"
SETTINGS = f"{FOLDER}/settings.py"
OBJECTIVE = f"{FOLDER}/objective.py"


def test_the_projects_own_code_has_no_mistake():
    assert list(check_settings()) == []
    assert list(check_entry_points()) == []


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with the documented objective of one's own."""
    project = copied(tmp_path)
    shutil.copytree(ROOT / "docs/examples/near_layers", project.root, dirs_exist_ok=True)
    return project


def list_errors(project: Project, *words: str) -> list[str]:
    done = project.command(*words)
    assert done.returncode == 1 and done.stdout == "", done.stdout
    return done.stderr.splitlines()


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (
            SETTINGS,
            "weight: NonNegative",
            "weight: NonNegativ",
            "11: cannot be imported: name 'NonNegativ' is not defined (NameError); correct it",
        ),
        (
            SETTINGS,
            "class Settings(ObjectiveOfKind):",
            "class Settings(ObjectiveOfKind)",
            "7: cannot be imported: expected ':' (SyntaxError); correct it",
        ),
        (
            SETTINGS,
            "from workflow_scripts.common.validation",
            "import nothing_of_this_name\nfrom workflow_scripts.common.validation",
            "3: cannot be imported: No module named 'nothing_of_this_name' (ModuleNotFoundError); "
            "correct the name, or install the package",
        ),
        (
            SETTINGS,
            "class Settings(",
            "class Setings(",
            "1: class `Settings`, a StrictModel, is missing; write it",
        ),
        (OBJECTIVE, "def build(", "def biuld(", "12: `build` is missing; rename `biuld`"),
        (
            OBJECTIVE,
            "def build(settings: Settings, loss: Loss) -> Loss:",
            "def build(settings: Settings, loss: Loss) -> Loss",
            "12: cannot be imported: expected ':' (SyntaxError); correct it",
        ),
    ],
)
def test_a_mistake_in_an_objective_is_one_line(project: Project, file, old, new, message):
    project.edit(file, old, new)
    assert list_errors(project, "lint") == [f"error: {file}:{message}"]
    if file == SETTINGS:
        assert list_errors(project, "plan", "--papers", "near_layers") == [
            f"error: {file}:{message}"
        ]


@pytest.mark.parametrize(
    ("default", "message"),
    [
        ("", "key 'objective.weight' is missing"),
        (' = "high"', "key 'objective.weight' is 'high'; input should be a valid number"),
    ],
)
def test_a_missing_setting_and_a_wrong_default_have_the_place_of_the_objective(
    project: Project, default, message
):
    project.edit(SETTINGS, "weight: NonNegative = 0.1", f"weight: NonNegative{default}")
    methods = "catalogue/methods/near_layers.yaml"
    project.edit(methods, ", objective: {weight: 0.1}", "")
    (said,) = list_errors(project, "lint")
    assert said == (
        f"error: {methods}:6: near-layers: settings of scan-jump-x2/near-layers/weak: {message}"
    )


def test_a_dry_run_says_the_same(project: Project):
    project.edit(SETTINGS, "weight: NonNegative", "weight: NonNegativ")
    done = project.reproduce("-n", "--papers", "near_layers")
    assert done.returncode != 0 and "Traceback" not in done.stdout + done.stderr
    said = f"{SETTINGS}:11: cannot be imported: name 'NonNegativ' is not defined (NameError)"
    assert said in done.stdout + done.stderr


def test_other_mistakes_are_named_with_it(project: Project):
    project.edit(SETTINGS, "weight: NonNegative", "weight: NonNegativ")
    project.edit("config.yaml", "device: auto", "device: gpu")
    errors = list_errors(project, "lint")
    assert len(errors) == 2
    assert any("config.yaml" in line for line in errors) and any(
        SETTINGS in line for line in errors
    )


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("def draw(): ...", []),
        ("try:\n    from a import draw\nexcept ImportError:\n    draw = None", []),
        ("from a import *", []),
        ("draw: int = 1", []),
        ("def other(): ...", ["module.py:1: `draw` is missing; write it"]),
        ("X = 1\ndef drawn(): ...", ["module.py:2: `draw` is missing; rename `drawn`"]),
        ("class Other:\n    def draw(self): ...", ["module.py:1: `draw` is missing; write it"]),
    ],
)
def test_a_definition_is_found_without_an_import(tmp_path, monkeypatch, text, problems):
    monkeypatch.setattr(own_code, "PROJECT", tmp_path)
    (tmp_path / "module.py").write_text(text)
    assert list(check_definition("module", "draw")) == problems


def test_a_missing_module_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(own_code, "PROJECT", tmp_path)
    assert list(check_definition("module", "draw")) == [
        "module.py is missing; write it, with `draw`"
    ]


def test_a_failure_of_several_lines_is_one_line():
    assert describe_failed_import("a.b", ValueError("one\ntwo")) == (
        "a/b.py:1: cannot be imported: one (ValueError); correct it"
    )
    assert "\n" not in str(UserError(describe_failed_import("a.b", ValueError("\n"))))
