"""Questions are asked where somebody can answer, and only there."""

import subprocess
import sys

import pytest

from tests.terminal import QUESTION, answer

ASK = "from workflow_scripts.common.questions import is_confirmed; print(is_confirmed())"
# Of a parent that has the terminal, and a child in a process group of its own, as Snakemake is
# with jobs that share a GPU.
IN_OWN_GROUP = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {ASK!r}], process_group=0, check=True)
print("ours again:", input())
"""
# The same with a parent that has not: it was started with `&`.
IN_BACKGROUND = f"""
import os, signal, subprocess, sys
inner = [sys.executable, "-c", {ASK!r}]
outer = [sys.executable, "-c", f"import subprocess; subprocess.run({{inner}}, process_group=0)"]
subprocess.run(outer, process_group=0, check=True)
"""


@pytest.mark.quick_faults
@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ("y\n", True),
        ("YES\n", True),
        ("\n", False),
        ("no\n", False),
        ("\x04", False),
        ("\x03", False),
    ],
)
def test_only_a_yes_is_one(answers: str, expected: bool):
    """Ctrl-D and Ctrl-C are none."""
    written, code = answer([sys.executable, "-c", ASK], answers)
    assert QUESTION in written and str(expected) in written and code == 0


def test_a_process_group_of_its_own_gets_the_keyboard_and_gives_it_back():
    written, code = answer([sys.executable, "-c", IN_OWN_GROUP], "y\nafterwards\n")
    assert "True" in written and "ours again: afterwards" in written and code == 0


def test_nothing_is_asked_where_another_program_has_the_terminal():
    written, code = answer([sys.executable, "-c", IN_BACKGROUND], "")
    assert QUESTION not in written and "True" in written and code == 0


def test_nothing_is_asked_without_a_terminal():
    done = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, start_new_session=True
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
