"""The committed verdicts follow from the committed scores, by seed, of the same folder."""

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from tests.analyses.small_runs import ROOT
from workflow_scripts.catalogue.loading import load_catalogue
from workflow_scripts.catalogue.runs import Run
from workflow_scripts.evaluation.scores import SCORE_COLUMNS
from workflow_scripts.reporting.claims import CLAIM_COLUMNS, claim_row, judge_paper
from workflow_scripts.reporting.spec import display_analyses

REFERENCE = ROOT / "results/reference/small"
PAPERS = ("carma", "cat", "lrf")  # the runs of sq_transformer are older than scores.csv


def rows_of(name: str) -> list[dict[str, str]]:
    with open(REFERENCE / name, newline="") as stream:
        return list(csv.DictReader(stream))


def write_scores(file: Path, rows: list[dict[str, str]]) -> None:
    file.parent.mkdir(parents=True)
    with open(file, "w", newline="") as stream:
        writer = csv.DictWriter(stream, SCORE_COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> tuple[Path, dict[Run, list[str]]]:
    """A folder of runs with the committed scores, and the runs."""
    folder, by_file = tmp_path_factory.mktemp("reference"), defaultdict(list)
    for row in rows_of("scores.csv"):
        run = Run(row["task"], row["method"], row["variant"], int(row["seed"]))
        by_file[run, "interventions" if row["intervention"] else "eval"].append(row)
    for (run, part), rows in by_file.items():
        write_scores(folder / f"runs/{run}/{part}/scores.csv", rows)
    return folder, {run: [] for run, _ in by_file}


@pytest.mark.parametrize("paper", PAPERS)
def test_verdicts_follow_from_scores(results, monkeypatch, paper):
    """Of claims on tables of runs, without a floor from an analysis. The p of one hangs on all claims."""
    monkeypatch.chdir(ROOT)
    folder, asked = results
    catalogue = load_catalogue()
    tables = {name: found for name, found in catalogue.papers[paper].displays.items() if found["kind"] == "table"}
    analysed = {name: display_analyses(found) for name, found in tables.items()}
    for name in {name for found in analysed.values() for name in found}:
        write_scores(folder / f"analyses/{paper}/{name}/scores.csv", [])
    committed = {row["claim"]: row for row in rows_of("claims.csv") if row["paper"] == paper}
    outcomes = judge_paper(catalogue, paper, "small", asked, folder)
    assert {outcome.claim.claim for outcome in outcomes} == set(committed)
    checked = 0
    for outcome in outcomes:
        unknown = outcome.effect is None or isinstance(outcome.claim.floor, str)
        if unknown and any(analysed[side.split("/")[0]] for side in outcome.claim.sides):
            continue
        made = dict.fromkeys(CLAIM_COLUMNS, "") | {k: str(v) for k, v in claim_row(paper, outcome).items()}
        assert made | {"p_value": ""} == committed[outcome.claim.claim] | {"p_value": ""}
        checked += outcome.effect is not None
    assert checked > 5
