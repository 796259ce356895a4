"""The committed verdicts follow from the committed scores, by seed, of the same folder."""

import pytest

from tests.analyses.small_runs import ROOT
from tests.reporting.reference import committed_results, rows_of
from workflow_scripts.catalogue.loading import load_catalogue
from workflow_scripts.reporting.claims import claim_row, judge_paper, side_rows


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return committed_results(tmp_path_factory.mktemp("reference"), load_catalogue(ROOT))


@pytest.mark.parametrize("paper", ["carma", "cat", "lrf", "sq_transformer"])
def test_verdicts_follow_from_scores(results, monkeypatch, paper):
    monkeypatch.chdir(ROOT)
    folder, asked = results
    outcomes = judge_paper(load_catalogue(), paper, "small", asked, folder)
    assert [claim_row(paper, outcome) for outcome in outcomes] == [
        row for row in rows_of("claims.csv") if row["paper"] == paper
    ]
    assert [row for outcome in outcomes for row in side_rows(paper, outcome)] == [
        row for row in rows_of("claim_sides.csv") if row["paper"] == paper
    ]
