"""The last lines of a call for single files."""

import os
from pathlib import Path

import pytest

from tests.analyses.small_runs import ROOT, add_run
from workflow_scripts.__main__ import main
from workflow_scripts.evaluation.scores import read_scores, write_scores

SCORES = "results/small/runs/{}/eval/scores.csv"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the catalogue and the papers, without results."""
    for name in ("catalogue", "papers"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)


def show(capsys: pytest.CaptureFixture[str], *files: str) -> list[str]:
    assert main(["made", *files]) == 0
    return capsys.readouterr().out.splitlines()


def add_scores(run: str, name: str = "small") -> str:
    """A run with three scores: of two whole splits, and of a subset."""
    add_run(Path("results") / name, run)
    file = Path(SCORES.format(run))
    (score,) = read_scores(file)
    in_distribution = score._replace(split="in_distribution", value=99.5)
    write_scores(file, [score, in_distribution, score._replace(subset="run", value=1.0)])
    return str(file)


def test_a_call_for_the_scores_of_a_run_ends_with_them(capsys):
    file = add_scores("scan-jump-x2/transformer/default/seed-61")
    first, *scores = show(capsys, file)
    assert first == f"Made: {file}"
    assert [" ".join(line.split()) for line in scores] == [
        "test exact_match 12.50 percent, n 100",
        "in_distribution exact_match 99.50 percent, n 100",
    ]


def test_scores_of_a_planned_seed_are_not_shown(capsys):
    file = add_scores("scan-jump-x2/transformer/default/seed-101")
    assert show(capsys, file) == [
        f"Made: {file}",
        "  a planned seed: tables show its scores when all planned seeds have theirs",
    ]


def test_of_many_files_some_are_named(capsys):
    files = [f"results/small/{number}.csv" for number in range(8)]
    Path("results/small").mkdir(parents=True)
    for file in files:
        Path(file).touch()
    lines = show(capsys, *files, "results/small/missing.csv")
    assert lines == [f"Made: {file}" for file in files[:6]] + ["And 2 more files"]


def test_a_file_that_was_there_before_the_call_is_up_to_date(capsys):
    old, started, new = (Path(name) for name in ("old.csv", "started", "new.csv"))
    for seconds, file in enumerate((old, started, new)):
        file.touch()
        os.utime(file, (seconds, seconds))
    lines = show(capsys, "--started", str(started), str(old), str(new))
    assert lines == [f"Up to date: {old}", f"Made: {new}"]
