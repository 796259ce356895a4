"""plan: GPU-hours of papers, tables and claims, what a budget affords, and what the docs say of it."""

import re
import shlex
from pathlib import Path

import pytest

from tests.workflow.projects import Project
from workflow_scripts.__main__ import main

ROOT = Path(__file__).parents[2]
FULL = ("plan", "--scale", "full")


def read_lines(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main([*FULL, *words]) == 0
    return capsys.readouterr().out.splitlines()


def read_docs_table() -> dict[str, list[str]]:
    """The rows of the table of docs/cluster.md by their paper: runs, measured, hours, memory."""
    rows = {}
    for line in (ROOT / "docs/cluster.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and re.fullmatch(r"\d+", cells[1]):
            rows[cells[0]] = cells[1:]
    return rows


def test_the_table_of_the_docs_is_what_the_plan_says(capsys: pytest.CaptureFixture[str]):
    table = read_docs_table()
    hours = {}
    for line in read_lines(capsys, "--by", "paper"):
        words = line.split()
        if words and words[0] in table:
            hours[words[0]] = words[-3:]
    assert hours == {name: row[:3] for name, row in table.items()}
    memory = {}
    for line in read_lines(capsys):
        heading = re.match(r"(\w+) at scale full: ", line)
        if heading:
            paper = heading[1]
        largest = re.match(r"  GPU memory ([0-9.]+ GB) at most, estimated", line)
        if largest:
            memory[paper] = largest[1]
    assert memory == {name: row[3] for name, row in table.items() if name != "together"}


def test_no_paper_at_full_has_unknown_hours(capsys: pytest.CaptureFixture[str]):
    lines = read_lines(capsys)
    hours = [line for line in lines if line.startswith("  GPU-hours  ")]
    assert len(hours) == 5
    assert not any("without" in line or "unknown" in line for line in hours)


def test_a_paper_that_trains_nothing_has_no_hours(capsys: pytest.CaptureFixture[str]):
    lines = read_lines(capsys, "--papers", "recompose", "--config", "only=paper")
    assert "  runs       0" in lines
    assert not any(line.startswith("  GPU-hours") for line in lines)


def test_each_table_and_each_claim_has_its_hours(capsys: pytest.CaptureFixture[str]):
    tables = read_lines(capsys, "--by", "table", "--papers", "lrf")
    assert any(re.match(r"lrf/table-cogs +table +\d+ +\d+ +[0-9.,-]+$", line) for line in tables)
    claims = read_lines(capsys, "--by", "claim", "--papers", "lrf")
    pattern = r"lrf/lrf-over-matched-cter-instance +primary +\d+ +\d+ +[0-9.,-]+$"
    assert any(re.match(pattern, line) for line in claims)


def test_each_model_has_its_memory_and_card(capsys: pytest.CaptureFixture[str]):
    lines = read_lines(capsys, "--by", "model", "--papers", "carma", "--jobs", "2")
    (llama,) = [line.split() for line in lines if line.startswith("llama-large ")]
    text = " ".join(llama)
    assert re.match(r"llama-large 3,213 M 51\.\d GB estimated 80 GB 12\.9 GB 141\.4 GB ", text)
    # The two largest: Llama-3B and Qwen-3B, or two seeds of Llama.
    assert any(
        f"the 2 largest trainings at once need {2 * 141.36:.1f} GB" in line for line in lines
    )


def test_a_budget_lists_claims_and_the_command_that_runs_them(capsys: pytest.CaptureFixture[str]):
    words = ("--papers", "sq_transformer", "--budget", "12")
    names = read_lines(capsys, *words, "--names")
    lines = read_lines(capsys, *words)
    (line,) = [line for line in lines if line.startswith("They are run by: ")]
    command = shlex.split(line.removeprefix("They are run by: "))
    assert command == ["./reproduce", "--scale", "full", "--budget", "12", *words[:2]]
    assert names[0] == "sq_transformer/sal-success-addjump"
    assert f"{len(names)} of " in "\n".join(lines)
    rows = [line.split() for line in lines if line.split()[:1] == [names[0]]]
    assert rows == [[names[0], "primary", rows[0][2], rows[0][3]]]
    left_out = [line for line in lines if line.startswith("primary, left out: ")]
    assert any("sq-over-transformer-cter-instance" in line for line in left_out)


@pytest.mark.parametrize("words", [["--budget", "9"], ["--by", "claim"], ["lrf"], ["--count"]])
def test_hours_are_of_the_papers_own_models_alone(words, capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--scale", "small", *words]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: GPU-hours are of the papers' own models, not of the scale small; add --scale full"
    ]


def test_a_target_that_does_not_exist_is_one_line(capsys: pytest.CaptureFixture[str]):
    assert main([*FULL, "cat/tabel2"]) == 1
    assert "did you mean 'table2'?" in capsys.readouterr().err


def test_reproduce_runs_the_claims_of_a_budget(project: Project):
    done = project.reproduce("--scale", "full", "--papers", "lrf", "--budget", "40", "-n")
    assert done.returncode == 0, done.stderr
    shown = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("claim ")}
    names = project.command(
        "plan", "--scale", "full", "--papers", "lrf", "--budget", "40", "--names"
    )
    assert shown == set(names.stdout.split()) and len(shown) > 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--budget", "many"], "--budget needs a number of GPU-hours, such as --budget 200"),
        (["--budget"], "--budget needs a number of GPU-hours, such as --budget 200"),
        (["--budget", "9", "--claim", "cat/a"], "--budget chooses the claims; leave out --claim"),
        (["--scale", "full", "--budget", "0.001"], "no claim fits into 0.001 GPU-hours"),
    ],
)
def test_a_wrong_budget_is_one_line(project: Project, words: list[str], problem: str):
    done = project.reproduce(*words, "-n")
    assert done.returncode == 1
    assert f"error: {problem}" in done.stderr and len(done.stderr.splitlines()) == 1
