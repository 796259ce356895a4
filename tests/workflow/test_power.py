"""`plan --power` as a user reads it."""

import csv
import re
import shutil
from pathlib import Path

import pytest

from tests.config.as_json import resolve_run
from tests.config.copies import edit, name_planned_seeds, remove_plans
from tests.config.test_requested import SEEDS, plan
from workflow_scripts.__main__ import main
from workflow_scripts.commands import power_table
from workflow_scripts.commands.power_table import PowerRow, format_power_lines
from workflow_scripts.config.loading import load_catalogue, read_catalogue

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what plan reads, without analysis plans, as the working directory."""
    for folder in ("catalogue", "papers"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for file in tmp_path.glob("papers/*/experiments.yaml"):
        edit(file, lambda content: name_planned_seeds(content, list(range(101, 110))))
        remove_plans(file.parent)
    shutil.copy(ROOT / "config.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    read_catalogue.cache_clear()
    return tmp_path


def recorded_hours(variants: list[tuple[str, str, str]], seeds: int) -> float:
    """Of all jobs, added up by hand: steps times the recorded times of a step, 1.2 times in
    training and 0.15 times in evaluation, 8 s to start a job, and 15 s for the data of a task.
    """
    with open("catalogue/step_times.csv", newline="") as stream:
        times = {
            tuple(row[key] for key in ("task", "method", "variant")): row
            for row in csv.DictReader(stream)
            if row["scale"] == "small" and row["device"] == "cpu"
        }
    hours = 15 / 3600 * len({task for task, _, _ in variants})
    for variant in variants:
        steps = resolve_run(load_catalogue(), "/".join(variant) + "/seed-1", "small")["training"][
            "max_steps"
        ]
        updates = steps * float(times[variant]["seconds_per_step"])
        hours += seeds * (1.35 * updates + 2 * 8) / 3600
    return hours


def test_each_claim_has_its_power_runs_and_hours(project: Path, capsys: pytest.CaptureFixture[str]):
    plan(project)
    assert main(["plan", "--power", "--papers", "sq_transformer", "lrf"]) == 0
    said = capsys.readouterr().out
    lines = {line.split()[0]: line.split() for line in said.splitlines() if line}
    pair = [("scan-jump-x2", "sq-transformer", "sal"), ("scan-jump-x2", "transformer", "default")]
    hours = recorded_hours(pair, len(SEEDS))
    # d = 4, sd 1: half of the interval is about 1.4 wide.
    assert lines["a-planned-one"][1:4] == ["1", "(9)", "4"]
    none, if_none, half, if_half = lines["a-planned-one"][4:8]
    assert (if_none, if_half) == ("(0)", "(4)")
    wrong, right = (int(percent) for percent in none.rstrip("%").split("+"))
    assert right > 50 > wrong and int(half.split("+")[0]) > 90
    assert lines["a-planned-one"][8:11] == ["4", "&", "4"]  # seeds for 80%
    assert lines["a-planned-one"][11] == lines["sum"][1] == "8"
    assert float(lines["sum"][2]) == pytest.approx(hours, rel=0.05)
    assert "lrf: no analysis plan" in said.splitlines()
    assert all(len(line) <= 100 for line in said.splitlines())


def test_runs_of_several_claims_are_counted_once(project: Path, capsys: pytest.CaptureFixture[str]):
    """Each claim of CAT on BiRD has BERT's side, and what its runs start from; their sum has it
    once.
    """
    seeds = list(range(101, 110))
    spread = "spread: {sd: 2.4, freedom: 20, paired: false}"
    (project / "papers/cat/analysis_plan.yaml").write_text(
        f"scale: small\nwritten: 2026-01-31\nseeds: {seeds}\nstop: never\nquantile: 0.975\n"
        "pilots: {seeds: [21], source: scores.csv}\nprimary:\n"
        f"  - {{claim: comp-over-bert-bird, published: 14.94, smallest: 3.74, {spread}}}\n"
        f"  - {{claim: mix-over-bert-bird, published: 8.22, smallest: 4.11, {spread}}}\n"
    )
    assert main(["plan", "--power", "--papers", "cat"]) == 0
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line}
    # Pre-training, fine-tuning on PAWS and BiRD, of two models; in the sum of BERT, and of CAT with
    # two fine-tunings.
    assert lines["comp-over-bert-bird"][-2] == lines["mix-over-bert-bird"][-2] == str(9 * 6)
    assert lines["sum"][1] == str(9 * 8)


def test_a_claim_has_the_runs_that_its_own_call_would_train(capsys: pytest.CaptureFixture[str]):
    """The control of CARMA's gain under CAP reads an analysis of all models on both tasks."""
    assert main(["plan", "--scale", "small", "carma/cap-first-sst-six"]) == 0
    runs, hours = capsys.readouterr().out.splitlines()[1].split()[2:4]
    assert main(["plan", "--scale", "small", "--power", "--papers", "carma"]) == 0
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line}
    assert lines["cap-first-sst-six"][-2:] == [runs, hours]
    assert int(runs) == 150


def test_shares_have_power_too_and_another_scale_is_said(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    plan(project, measure="success_rate", threshold=50.0, smallest=0.6, published=None, spread=None)
    assert main(["plan", "--power", "--papers", "sq_transformer"]) == 0
    (line,) = (
        line for line in capsys.readouterr().out.splitlines() if line.startswith("a-planned-one")
    )
    assert "shares" in line and "(5:5%)" in line and "(90:10%)" in line
    assert main(["plan", "--power", "--papers", "sq_transformer", "--scale", "demo"]) == 0
    assert capsys.readouterr().out.startswith(
        "sq_transformer: analysis_plan.yaml is of the scale small\n"
    )


ROWS = [
    PowerRow(
        "srl-over-transformer-compounds",
        ["0.101 (5)", "6", "5+95% (0)", "100+0% (0.319)", "4 & 4", "12", "?"],
    ),
    PowerRow("sum", ["", "", "", "", "", "12", "?"]),
]


def test_numbers_are_next_to_a_claim_where_there_is_room_else_below_it():
    wide = list(format_power_lines(ROWS, 200))
    assert len(wide) == 4
    assert wide[2].startswith("srl-over-transformer-compounds  0.101 (5)      6  5+95% (0)")
    narrow = list(format_power_lines(ROWS, 80))
    assert narrow[2] == "srl-over-transformer-compounds"
    assert narrow[3].split() == wide[2].split()[1:]
    for lines in (wide, narrow):
        plain = [re.sub(r"\[/?(bold)?\]", "", line) for line in lines]
        places = [plain[-1].index("12"), plain[-2].index(" 12 ") + 1]
        assert plain[-1].split() == ["sum", "12", "?"] and places[0] == places[1]
        assert max(map(len, plain)) <= (80 if lines is narrow else 200)


@pytest.mark.parametrize("columns", ["80", "200"])
def test_every_claim_of_the_papers_is_in_one_piece(columns: str, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(power_table, "WIDTH", int(columns))
    assert main(["plan", "--power"]) == 0
    said = capsys.readouterr().out
    for paper in load_catalogue().papers.values():
        for planned in paper.list_primary_claims():
            assert re.search(rf"^{planned.name}(\s|$)", said, re.MULTILINE), planned.name
