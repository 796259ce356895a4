"""Output is as wide as the reader says; without a terminal no line is broken."""

import pytest

from workflow_scripts.__main__ import main
from workflow_scripts.common.console import make_console

LINE = "a line of some words that is longer than forty columns"


def test_a_line_is_broken_between_words_where_a_width_is_known(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    make_console(120).print(LINE)
    text = capsys.readouterr().out
    assert text == "a line of some words that is longer than\nforty columns\n"


@pytest.mark.parametrize("columns", [None, "", "wide"])
def test_a_line_of_a_log_stays_whole(capsys, monkeypatch, columns):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    console = make_console(40)
    console.print(LINE)
    assert (capsys.readouterr().out, console.width) == (f"{LINE}\n", 40)


@pytest.mark.parametrize(
    ("name", "advice"),
    [("verfy", "did you mean 'verify'?"), ("xyz", "--help lists the commands")],
)
def test_an_unknown_command_is_one_line_with_the_nearest(capsys, name, advice):
    assert main([name, "carma"]) == 2
    assert capsys.readouterr() == ("", f"error: there is no command '{name}'; {advice}\n")


@pytest.mark.parametrize("columns", [60, 80])
def test_the_commands_fit_the_terminal(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit):
        main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert columns - 8 < max(map(len, lines)) <= columns
