"""Every text file is opened as UTF-8, and the output of programs is read as such.

Without `encoding` Python takes that of the locale, which is not UTF-8 under LC_ALL=C everywhere.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("workflow_scripts", "profiles", "envs", "benchmarks")
TEXT_METHODS = ("read_text", "write_text")
PROCESSES = ("run", "Popen", "check_output")


def find_calls(source: str) -> list[str]:
    """The calls that open a text file or a process without naming its encoding."""
    calls = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        keywords = {keyword.arg for keyword in node.keywords}
        constants = [value.value for value in node.args if isinstance(value, ast.Constant)]
        if "encoding" in keywords or "utf-8" in constants or not opens_text(node, keywords):
            continue
        calls.append(f"{node.lineno}: {ast.unparse(node)[:80]}")
    return calls


def opens_text(node: ast.Call, keywords: set[str | None]) -> bool:
    if isinstance(node.func, ast.Attribute):
        owner = ast.unparse(node.func.value)
        if node.func.attr in TEXT_METHODS:
            return owner not in ("self", "reader")  # of a binary format
        return owner == "subprocess" and node.func.attr in PROCESSES and "text" in keywords
    if isinstance(node.func, ast.Name) and node.func.id == "open":
        modes = [ast.unparse(value) for value in node.args[1:2]]
        return not any("b'" in mode or ("+'" in mode and "b" in mode) for mode in modes)
    return False


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ("open(path)", True),
        ("open(path, 'w')", True),
        ("open(path, 'rb')", False),
        ("open(path, encoding='utf-8')", False),
        ("path.read_text()", True),
        ("path.write_text(text, 'utf-8')", False),
        ("subprocess.run(command, text=True)", True),
        ("subprocess.run(command)", False),
    ],
)
def test_the_search_finds_them(source: str, is_found: bool):
    assert bool(find_calls(source)) == is_found


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_text_file_is_opened_as_utf_8(folder: str):
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    for file in files:
        calls = find_calls(file.read_text(encoding="utf-8"))
        assert not calls, f"{file.relative_to(ROOT)}:{calls[0]}"
