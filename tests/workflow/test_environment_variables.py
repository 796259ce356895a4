"""What the calling shell exports decides nothing but what docs/start.md lists."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.projects import ROOT, copied

CALL = ("./reproduce", "-n", "--papers", "lrf")
HOSTILE = {
    "BASH_FUNC_cd%%": "() { builtin cd /; }",
    "BASH_FUNC_grep%%": "() { false; }",
    "CDPATH": "/tmp:/",
    "COLUMNS": "20",
    "FORCE_COLOR": "1",
    "GIT_DIR": "/nowhere",
    "GREP_OPTIONS": "-v",
    "LC_ALL": "POSIX",
    "LANGUAGE": "de",
    "POSIXLY_CORRECT": "1",
    "PYTHONHOME": "/nowhere",
    "PYTHONOPTIMIZE": "2",
    "PYTHONPATH": "/nowhere",
    "PYTHONSAFEPATH": "1",
    "PYTHONUTF8": "0",
    "PYTHONWARNINGS": "error",
    "SHELLOPTS": "braceexpand:hashall:interactive-comments:noclobber",
    "SNAKEMAKE_OUTPUT_CACHE": "/nowhere",
    "TERM": "dumb",
}
PLAIN = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}


def read_patterns() -> list[str]:
    lines = (ROOT / "envs/variables.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def run(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=PLAIN | variables, capture_output=True, text=True, errors="replace"
    )


def test_the_documentation_lists_the_variables_that_are_kept():
    section = (
        (ROOT / "docs/start.md")
        .read_text()
        .split("## What it takes from your shell")[1]
        .split("\n## ")[0]
    )
    documented = set(re.findall(r"`([A-Z][A-Z0-9_]*\*?)`", section))
    kept = {name for name in read_patterns() if name.isupper() or name.endswith("*")}
    lower = {name for name in read_patterns() if name not in kept}
    assert {name.upper() for name in lower} <= kept
    # Of RECOMPOSE_* each one is named, too.
    assert {name for name in documented if not re.fullmatch("RECOMPOSE_[A-Z]+", name)} == kept


def test_a_hostile_shell_changes_no_line(tmp_path: Path):
    project = copied(tmp_path / "project")
    expected = run(project.root, *CALL)
    assert expected.returncode == 0, expected.stderr
    actual = run(project.root, *CALL, **HOSTILE)
    assert (actual.stderr, actual.returncode) == (expected.stderr, 0)
    # Snakemake lists jobs in any order.
    assert sorted(actual.stdout.splitlines()) == sorted(expected.stdout.splitlines())


def test_functions_that_are_exported_are_not_called(tmp_path: Path):
    (tmp_path / "envs").mkdir()
    for name in ("clean_environment", "variables.txt"):
        shutil.copy(ROOT / "envs" / name, tmp_path / "envs")
    printed = run(
        tmp_path, "bash", "-c", ". envs/clean_environment; compgen -e; declare -F", **HOSTILE
    ).stdout.split()
    assert "declare" not in printed
    assert {"HOME", "PATH", "LC_ALL", "PYTHONUTF8"} <= set(printed)
    assert not {
        "CDPATH",
        "GIT_DIR",
        "PYTHONSAFEPATH",
        "POSIXLY_CORRECT",
        "SHELLOPTS",
    } & set(printed)


@pytest.mark.parametrize(
    "variables", [{"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}, HOSTILE]
)
def test_a_command_by_itself_reads_utf_8_and_no_other_variable(variables):
    python = {
        name: value
        for name, value in variables.items()
        if name not in ("PYTHONHOME", "PYTHONSAFEPATH")
    }
    process = run(ROOT, sys.executable, "-m", "workflow_scripts", "lint", **python)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == "config.yaml, catalogue/ and papers/: no problem found\n"


def test_a_cache_that_cannot_be_written_is_replaced(tmp_path: Path):
    (tmp_path / "file").touch()
    (tmp_path / "envs").mkdir()
    for name in ("clean_environment", "variables.txt"):
        shutil.copy(ROOT / "envs" / name, tmp_path / "envs")
    command = ". envs/clean_environment; echo $XDG_CACHE_HOME"
    no_folder = str(tmp_path / "file" / "cache")
    assert (
        run(tmp_path, "bash", "-c", command, XDG_CACHE_HOME=no_folder).stdout
        == f"{tmp_path}/.snakemake/cache\n"
    )
    writable = str(tmp_path / "cache")
    assert run(tmp_path, "bash", "-c", command, XDG_CACHE_HOME=writable).stdout == f"{writable}\n"


def test_a_command_runs_in_a_folder_whose_name_is_not_ascii_whatever_the_locale(tmp_path: Path):
    """Python then reads paths as ASCII, and pydantic cannot be imported from such a path."""
    project = copied(tmp_path / "Ordner für alles")
    (project.root / ".venv").unlink()
    (project.root / ".venv").symlink_to(ROOT / ".venv")
    without_utf8 = {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    process = run(project.root, sys.executable, "-m", "workflow_scripts", "lint", **without_utf8)
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.parametrize("is_writable", [True, False])
def test_matplotlib_has_a_folder_where_the_home_cannot_be_written(tmp_path: Path, is_writable):
    code = (
        "import os; from workflow_scripts.common.environment import clean_environment; "
        "clean_environment(); print(os.environ.get('MPLCONFIGDIR'))"
    )
    home = str(tmp_path) if is_writable else "/dev/null"
    process = run(ROOT, sys.executable, "-c", code, HOME=home)
    folder = None if is_writable else ROOT / ".snakemake/matplotlib"
    assert process.stdout == f"{folder}\n", process.stderr
