"""What is shown where there is no terminal; the bar itself is tested with the train command."""

import pytest

from workflow_scripts.common import progress
from workflow_scripts.common.progress import Reporter


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves: its first element is the time in seconds."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_says_position_speed_time_left_and_values(capsys, clock):
    with Reporter("a/b/c/seed-1", 1000, "lines") as reporter:
        reporter.update_values({"loss": 2.34567, "exact_match": 0.38937})
        clock[0] += 20
        reporter.advance(40)
    line = "a/b/c/seed-1: 40/1,000 steps  2.0/s  8:00 left  loss 2.346 exact_match 0.3894%\n"
    assert capsys.readouterr().err == line


@pytest.mark.parametrize(("elapsed", "seconds", "lines"), [(0, 15, 15), (1000, 150, 15)])
def test_lines_come_every_second_at_first_and_every_ten_seconds_in_a_long_job(
    capsys, clock, elapsed, seconds, lines
):
    with Reporter("run", 10**6, "lines") as reporter:
        clock[0] += elapsed
        reporter.advance()
        capsys.readouterr()
        for _ in range(8 * seconds):
            clock[0] += 1 / 8
            reporter.advance()
        assert capsys.readouterr().err.count("\n") == lines


def test_speed_counts_only_what_this_process_has_done(capsys, clock):
    with Reporter("run", 1000, "lines") as reporter:
        clock[0] += 50
        reporter.resume(900)
        clock[0] += 10
        reporter.advance(10)
    resumed, line = capsys.readouterr().err.splitlines()
    assert resumed == "run: resumes after 900 of 1,000 steps"
    assert line == "run: 910/1,000 steps  1.0/s  1:30 left"


@pytest.mark.parametrize("done_before", [0, 900])
def test_without_a_step_of_this_process_there_is_no_speed_to_show(capsys, clock, done_before):
    """As of a batch of which the first pass has answered no prompt."""
    with Reporter("run", 1000, "lines") as reporter:
        reporter.resume(done_before)
        clock[0] += 10
        reporter.advance(0)
        reporter.advance(100)
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith(f"run: {done_before + 100:,}/1,000 steps  10.0/s  ")


def test_a_total_may_be_known_only_when_the_data_are_read(capsys, clock):
    with Reporter("run", 0, "lines") as reporter:
        reporter.set_total(200)
        clock[0] += 10
        reporter.advance(100)
    assert capsys.readouterr().err == "run: 100/200 steps  10.0/s  0:10 left\n"


def test_none_shows_nothing(capsys, clock):
    with Reporter("run", 10, "none") as reporter:
        clock[0] += 100
        reporter.advance()
        reporter.print_line("hello")
    assert capsys.readouterr().err == ""
