"""A claim that is judged alone, against the verdicts on all claims, from the committed scores."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest

from tests.analyses.small_runs import ROOT
from tests.reporting.reference import PAPERS, restored_reference
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.claim_needs import find_claim_needs
from workflow_scripts.reporting.claims.judging import (
    format_claims,
    judge_alone,
    judge_paper,
    make_claim_row,
)
from workflow_scripts.reporting.claims.outcome import Outcome
from workflow_scripts.reporting.committed.restoring import RestoredExport, list_counted_runs

# Exploratory claims of each form: a mean over models, a gain with `given`, an analysis, one that
# is extra, a number of ours on the right, a trend.
EXPLORATORY = [
    ("carma", "consistency-sst-six"),
    ("carma", "capacity-ceiling-llama-3b-to-1b"),
    ("carma", "accuracy-idm-gemma-2b"),
    ("cat", "mix-over-constant-paws"),
    ("cat", "mix-over-word-overlap-bird"),
    ("lrf", "no-gain-layer-before-cogs"),
    ("lrf", "fusion-not-collapsed-cogs"),
    ("lrf", "lrf-over-matched-cogs"),
    ("sq_transformer", "divergence-falls-with-accuracy"),
]


class Committed(NamedTuple):
    restored: RestoredExport

    def list_runs(self, paper: str, primary: bool) -> list[Run]:
        counted = list_counted_runs(self.restored, paper)
        return counted.primary if primary else counted.others

    def judge_all(self, paper: str, primary: bool) -> dict[str, Outcome]:
        runs = self.list_runs(paper, primary)
        outcomes = judge_paper(self.restored.get_paper_results(paper), runs)
        return {outcome.claim.claim: outcome for outcome in outcomes}

    def judge_one(self, paper: str, claim: str, primary: bool) -> Outcome:
        """With nothing but the runs that the claim needs."""
        needs = find_claim_needs(self.restored.catalogue, paper, (claim,), "small")
        runs = [run for run in self.list_runs(paper, primary) if run.variant_key in needs.variants]
        return judge_alone(self.restored.get_paper_results(paper), claim, runs)


@pytest.fixture(scope="module")
def committed() -> Iterator[Committed]:
    with pytest.MonkeyPatch.context() as patch, restored_reference() as restored:
        patch.chdir(ROOT)
        yield Committed(restored)


@pytest.mark.parametrize("paper", PAPERS)
def test_a_primary_claim_has_the_same_row_and_sides_as_among_all(committed: Committed, paper: str):
    together = committed.judge_all(paper, primary=True)
    primary = [name for name, outcome in together.items() if outcome.role == "primary"]
    assert len(primary) >= 3
    for name in primary:
        alone = committed.judge_one(paper, name, primary=True)
        assert format_claims({paper: [alone]}) == format_claims({paper: [together[name]]})


@pytest.mark.parametrize(("paper", "claim"), EXPLORATORY)
def test_an_exploratory_claim_has_all_but_what_the_other_claims_decide(
    committed: Committed, paper: str, claim: str
):
    together = committed.judge_all(paper, primary=False)[claim]
    alone = committed.judge_one(paper, claim, primary=False)
    together_row = make_claim_row(paper, together)
    alone_row = make_claim_row(paper, alone)
    assert alone_row.q_value is None
    expected = replace(together_row, q_value=None)
    if together_row.q_value is not None:
        smallest = together_row.smallest_effect
        if smallest is None:
            smallest = together_row.margin
        if together_row.ci_low > together_row.margin or together_row.ci_high < smallest:
            said = f"judged with all exploratory claims of the paper: ./reproduce --papers {paper}"
            expected = replace(expected, verdict="no verdict", reason=said)
    assert alone_row == expected


def test_some_of_these_claims_are_decided_together_and_not_alone(committed: Committed):
    verdicts = set()
    for paper, claim in EXPLORATORY:
        together = committed.judge_all(paper, primary=False)[claim].verdict
        verdicts.add((together, committed.judge_one(paper, claim, primary=False).verdict))
    assert ("reproduced", "no verdict") in verdicts
    assert ("inconclusive", "inconclusive") in verdicts
    assert not {("reproduced", "reproduced"), ("not reproduced", "not reproduced")} & verdicts
