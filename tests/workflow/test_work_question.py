"""./reproduce asks before it does long work again."""

import os
import signal
import subprocess
import time

import pytest

from tests.limits import HANGS
from tests.terminal import QUESTION, answer
from tests.workflow.projects import RUN, TRAINED, Project


def make_stale(made: Project) -> None:
    """A finished run, whose training now takes hours."""
    for file in ("kinds.yaml", "scan.yaml"):
        made.edit(f"catalogue/tasks/{file}", "max_steps: 3,", "max_steps: 3000000,")


@pytest.mark.quick_faults
def test_a_call_asks_before_long_work_that_was_done_already(made):
    make_stale(made)
    before = (made.root / TRAINED).read_bytes()
    written, code = answer(["./reproduce", TRAINED], "\n", made.root)
    assert code == 1
    plain = written.replace("\r", "")
    line = next(line for line in plain.splitlines() if " again because " in line)
    assert line.startswith("1 training again because training.max_steps was 3 and is 3000000 (")
    assert line.endswith("-hours; `why` lists them; --touch keeps them")
    assert "error: nothing was started" in plain and "Traceback" not in plain
    assert (made.root / TRAINED).read_bytes() == before
    assert not (made.root / "results/demo/earlier").exists()


@pytest.mark.faults
@pytest.mark.parametrize("with_yes", [False, True])
def test_without_a_terminal_or_with_yes_the_line_is_printed_and_the_call_goes_on(made, with_yes):
    make_stale(made)
    log = made.root / f"results/demo/logs/train/{RUN}.log"
    log.unlink()
    words = ["--yes"] if with_yes else []
    process = subprocess.Popen(
        ["./reproduce", *words, TRAINED],
        cwd=made.root,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + HANGS
    while not (log.exists() and log.read_text()):
        assert time.monotonic() < deadline and process.poll() is None, "the training did not begin"
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=HANGS)[1]
    assert "1 training again because" in said and QUESTION not in said
