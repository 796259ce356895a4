"""The last lines of ./reproduce."""

import csv
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.analyses.small_runs import ROOT
from tests.reporting.reference import REFERENCE
from workflow_scripts.__main__ import main
from workflow_scripts.commands.summary import format_time_taken
from workflow_scripts.common.files import write_json

CONFIG = {"papers": ["cat"], "scale": "small"}
NEXT = [
    ".venv/bin/python -m workflow_scripts verify cat/comp-over-bert-bird",
    "./reproduce --claim cat/comp-over-bert-bird --scale small",
    "./reproduce --papers cat --scale small",
    ".venv/bin/python -m workflow_scripts plan --scale full",
]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("catalogue", "papers", "config.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(
        REFERENCE,
        tmp_path / "results/reference/small",
        ignore=shutil.ignore_patterns("predictions"),
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def add_results(checkout: Path, scale: str) -> Path:
    """Results of a scale: the committed tables, figures and claims, and two trainings."""
    folder = checkout / "results" / scale
    shutil.copytree(checkout / "results/reference/small", folder)
    write_json(folder / "config.json", CONFIG | {"scale": scale})
    return folder


def summarise(capsys: pytest.CaptureFixture, *words: str) -> list[str]:
    assert main(["summary", *words]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_time_is_in_words():
    assert [format_time_taken(seconds) for seconds in (12, 312, 7500)] == [
        "12 s",
        "5 min 12 s",
        "2 h 5 min",
    ]


def test_the_demo_ends_with_what_works_and_with_the_committed_verdicts(checkout, capsys):
    folder = add_results(checkout, "demo")
    for run in ("paws/cat/mix/seed-1", "paws/bert/ft/seed-1"):
        write_json(folder / f"runs/{run}/run.json", {})
    first, verdicts, page, *more = summarise(
        capsys, "--seconds", "312", "--", "--config", "papers=[cat]"
    )
    tables = len(list((folder / "tables/cat").glob("*.csv")))
    figures = len(list((folder / "figures/cat").glob("*.csv")))
    assert first.startswith("Everything works: 2 trainings, ") and first.endswith(" in 5 min 12 s")
    made = [int(word) for word in first.split() if word.isdigit()]
    assert 0 < made[1] <= tables and 0 <= made[2] <= figures
    with open(REFERENCE / "claims.csv", newline="") as stream:
        counts = Counter(
            row["verdict"] for row in csv.DictReader(stream) if row["role"] == "primary"
        )
    for verdict in ("reproduced", "not reproduced", "inconclusive"):
        assert f"{counts[verdict]} {verdict}" in verdicts
    assert page == (
        "Page: results/demo/index.html (cat alone; ./reproduce --finished shows all papers of "
        "config.yaml)"
    )
    assert [line.partition("#")[0].strip() for line in more] == ["Next:", *NEXT]
    assert not any("no verdict" in line for line in [first, verdicts, *more])


def test_a_call_with_nothing_to_do_says_so_and_ends_alike(checkout, capsys):
    add_results(checkout, "demo")
    words = ("--", "--config", "papers=[cat]")
    first, *rest = summarise(capsys, *words)
    assert first.startswith("Everything works, nothing to do: ") and first.endswith(" up to date")
    assert rest == summarise(capsys, "--seconds", "1", *words)[1:]


def test_a_scale_with_verdicts_ends_with_its_primary_claims(checkout, capsys):
    folder = add_results(checkout, "small")
    lines = summarise(capsys, "--seconds", "60", "--", "--config", "papers=[cat]", "scale=small")
    with open(folder / "claims.csv", newline="") as stream:
        primary = [row for row in csv.DictReader(stream) if row["role"] == "primary"]
    named = [
        line
        for line in lines[: lines.index("Next:")]
        if line.startswith("  ") and ": " in line and "/" in line.split()[0]
    ]
    assert len(named) == 10  # the first of the decided ones
    verdict_of = {f"{row['paper']}/{row['claim']}": row["verdict"] for row in primary}
    for line in named:
        name, _, said = line.strip().partition(" ")
        assert said.strip().startswith(f"{verdict_of[name]}: ")
    assert len(lines) <= 22
    assert not any(line.startswith("The papers, by") for line in lines)


def read_hours(line: str) -> float:
    return float(re.search(r": ([\d.]+) core-hours$", line)[1])


def test_each_next_command_says_what_it_takes_and_readme_has_it(checkout, capsys):
    """The hours are those of `plan`."""
    add_results(checkout, "demo")
    lines = summarise(capsys, "--", "--config", "scale=demo")
    verify, claim, paper, plan = lines[lines.index("Next:") + 1 :]
    assert verify.endswith("# a verdict again from its committed scores: seconds")
    assert plan.endswith("# what the papers' own models cost: seconds")
    assert main(["plan", "--scale", "small", "cat/comp-over-bert-bird", "cat"]) == 0
    of_claim, of_paper = capsys.readouterr().out.splitlines()[1:3]
    assert read_hours(claim) == float(of_claim.split()[3])
    assert read_hours(paper) == float(of_paper.split()[3])
    assert read_hours(claim) < read_hours(paper) < 20
    assert lines[lines.index("Next:") - 1] == "Page: results/demo/index.html"
    readme = (ROOT / "README.md").read_text()
    for line in lines[lines.index("Next:") + 1 :]:
        command, _, _ = line.partition("#")
        assert f"    {command.strip()} " in readme or f"    {command.strip()}\n" in readme


def test_after_a_failure_no_further_command_is_named(checkout, capsys):
    add_results(checkout, "demo")
    lines = summarise(capsys, "--failed", "--", "--config", "papers=[cat]", "scale=demo")
    assert lines[-1].startswith("Page: ") and "Next:" not in lines


def test_where_no_plan_is_for_the_scale_the_summary_says_so(checkout, capsys):
    add_results(checkout, "full")
    lines = summarise(capsys, "--seconds", "60", "--", "--config", "papers=[cat]", "scale=full")
    assert "At full no claim is primary: the analysis plans are for small" in lines
    add_results(checkout, "small")
    lines = summarise(capsys, "--seconds", "60", "--", "--config", "papers=[cat]", "scale=small")
    assert not any("no claim is primary" in line for line in lines)


def test_what_is_unfinished_is_no_success(checkout, capsys):
    folder = add_results(checkout, "demo")
    write_json(folder / "unfinished.json", {})
    first, *more = summarise(capsys, "--seconds", "60", "--", "--config", "papers=[cat]")
    assert first.startswith("Finished so far: ") and "Next:" not in more


def test_nothing_is_said_of_a_scale_that_was_never_finished(checkout, capsys):
    assert summarise(capsys, "--", "--config", "papers=[cat]") == []


def add_own_paper(checkout: Path) -> None:
    """Add the paper `mine` as `new-paper` writes it, with one claim and no plan."""
    (checkout / "papers").unlink()
    shutil.copytree(ROOT / "papers", checkout / "papers")
    assert main(["new-paper", "mine"]) == 0
    folder = checkout / "results/demo"
    shutil.copytree(checkout / "results/reference/small/tables/cat", folder / "tables/cat")
    shutil.copytree(folder / "tables/cat", folder / "tables/mine")
    write_json(folder / "config.json", {"papers": ["mine"], "scale": "demo"})


def test_a_call_for_ones_own_paper_goes_on_with_that_paper(checkout, capsys):
    add_own_paper(checkout)
    capsys.readouterr()
    lines = summarise(capsys, "--seconds", "60", "--", "--config", "papers=[mine]", "scale=demo")
    assert not any("results/reference" in line for line in lines)
    (page,) = (number for number, line in enumerate(lines) if line.startswith("Page: "))
    assert lines[page].startswith("Page: results/demo/index.html (mine alone; ")
    assert lines[page - 1] == "Table: results/demo/tables/mine/table1.md"
    commands = [line.partition("#")[0].strip() for line in lines[lines.index("Next:") + 1 :]]
    assert commands[:2] == [
        "./reproduce --claim mine/transformer-above-half --scale small",
        "./reproduce --papers mine --scale small",
    ]


def test_with_a_committed_paper_the_committed_verdicts_are_said(checkout, capsys):
    add_own_paper(checkout)
    capsys.readouterr()
    words = ("--config", "papers=[mine,cat]", "scale=demo")
    lines = summarise(capsys, "--seconds", "60", "--", *words)
    assert [line for line in lines if line.startswith("The papers, by results/reference/small")]
    assert not any("/mine" in line or line.startswith("Table: ") for line in lines)


@pytest.mark.parametrize("changes", [("seeds=[3]",), ("only=paper", "extra=true")])
def test_next_commands_say_what_they_take_without_the_words_of_the_call(
    changes: tuple[str, ...], checkout, capsys
):
    """The commands are without them, too."""
    add_results(checkout, "demo")
    usual = summarise(capsys, "--", "--config", "scale=demo")
    changed = summarise(capsys, "--", "--config", "scale=demo", *changes)
    assert changed[changed.index("Next:") :] == usual[usual.index("Next:") :]


def test_no_claim_is_named_whose_runs_only_leaves_out(checkout, capsys):
    """`only: paper` in config.yaml, and a claim on our own runs."""
    add_own_paper(checkout)
    experiments = checkout / "papers/mine/experiments.yaml"
    experiments.write_text(experiments.read_text().replace("methods: {", "ours: {"))
    capsys.readouterr()
    words = ("--seconds", "60", "--", "--config", "papers=[mine]", "scale=demo")
    claim = "./reproduce --claim mine/transformer-above-half --scale small"
    with_only = summarise(capsys, *words, "only=paper")
    assert any(line.strip().startswith(claim) for line in with_only)
    text = (checkout / "config.yaml").read_text()
    (checkout / "config.yaml").unlink()
    (checkout / "config.yaml").write_text(text.replace("only:\n", "only: paper\n"))
    lines = summarise(capsys, *words)
    commands = [line.partition("#")[0].strip() for line in lines[lines.index("Next:") + 1 :]]
    assert commands == [".venv/bin/python -m workflow_scripts plan --scale full --papers mine"]
