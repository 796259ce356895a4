"""Claims that compare planned seeds with pilots say so: invented sides, and all committed claims."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from tests.analyses.small_runs import ROOT
from tests.reporting.reference import PAPERS, restored_reference
from workflow_scripts.config.analysis_plan import FirstPlan
from workflow_scripts.config.display_schema import Claim
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.evaluation.statistics import compare_independent
from workflow_scripts.reporting.claims.comparison import Comparison, Side
from workflow_scripts.reporting.claims.judging import judge_paper, make_claim_row
from workflow_scripts.reporting.claims.outcome import MeasuredEffect, Outcome
from workflow_scripts.reporting.claims.side_seeds import (
    add_seed_caveat,
    describe_side_seeds,
    format_seeds,
)
from workflow_scripts.reporting.committed.restoring import list_counted_runs
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.tables.cells import Cell

PLAN = FirstPlan.model_validate(
    {
        "scale": "small",
        "written": "2026-01-31",
        "seeds": [101, 102, 103, 104],
        "pilots": {"seeds": [21, 22, 23], "source": "scores.csv"},
        "quantile": 0.95,
        "stop": "all seeds",
        "primary": [
            {
                "claim": "a",
                "seeds": [201, 202, 203, 204],
                "published": 8.0,
                "smallest": 2.0,
                "spread": {"sd": 1.0, "freedom": 9, "paired": True},
            }
        ],
    },
    strict=False,
)
FRESH, PILOTS = range(101, 105), (21, 22, 23)


def side(*seeds_by_cell) -> Side:
    cells = (
        Cell(
            "p",
            "d",
            "row",
            str(i),
            "accuracy",
            "percent",
            1,
            "measured",
            seeds={seed: 50.0 + seed for seed in seeds},
        )
        for i, seeds in enumerate(seeds_by_cell)
    )
    return Side(tuple(cells))


def outcome(left: Side, right: Side, **more: object) -> Outcome:
    claim = Claim(
        claim="b",
        statement="s",
        quote="q",
        source="Section 1",
        left="d/a/b",
        right="d/a/c",
        relation="greater",
        unit="points",
        **more,
    )
    effect = compare_independent([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])
    measured = MeasuredEffect(effect, effect.compute_interval())
    return Outcome(Comparison(claim, (left, right), None), "no verdict", "", measured)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([FRESH], [FRESH], ""),
        ([PILOTS], [PILOTS], ""),
        ([PILOTS], [(24, 25)], ""),
        (
            [FRESH],
            [PILOTS],
            "planned seeds (101 to 104) on the left are compared with pilots (21 to 23) on the right",
        ),
        (
            [PILOTS],
            [FRESH],
            "pilots (21 to 23) on the left are compared with planned seeds (101 to 104) on the right",
        ),
        (
            [FRESH],
            [(1, 21)],
            "planned seeds (101 to 104) on the left are compared with other seeds (1, 21) on the right",
        ),
        # Of a claim that has its own planned seeds.
        (
            [(201, 202)],
            [(21,)],
            "planned seeds (201, 202) on the left are compared with pilots (21) on the right",
        ),
        (
            [FRESH, PILOTS],
            [FRESH, FRESH],
            "planned seeds (101 to 104) and pilots (21 to 23) on the left are compared with "
            "planned seeds (101 to 104) on the right",
        ),
        ([FRESH], [()], ""),
    ],
)
def test_sides_with_seeds_of_two_kinds_are_named(left, right, expected):
    one = outcome(side(*left), side(*right))
    assert describe_side_seeds(one, [PLAN]) == expected
    assert (
        describe_side_seeds(one, [])
        == describe_side_seeds(replace(one, measurement=None), [PLAN])
        == ""
    )
    assert (add_seed_caveat(one, [PLAN]).claim.caveat or "") == expected


def test_a_number_without_seeds_is_no_side_of_pilots():
    number = Side((replace(side(()).cells[0], status="computed", computed=75.1),))
    assert describe_side_seeds(outcome(side(FRESH), number), [PLAN]) == ""


def test_it_follows_the_caveat_of_the_claim_and_is_in_its_row():
    told = add_seed_caveat(
        outcome(side(FRESH), side(PILOTS), caveat="the paper has no number"), [PLAN]
    )
    row = make_claim_row("p", told)
    assert row.caveat.startswith(
        "the paper has no number; planned seeds (101 to 104) on the left are"
    )


@pytest.mark.parametrize(
    ("seeds", "text"),
    [([21], "21"), ([22, 21], "21, 22"), ([1, 2, 3, 7, 9, 10], "1 to 3, 7, 9, 10"), ([], "")],
)
def test_three_seeds_in_a_row_are_a_range(seeds, text):
    assert format_seeds(seeds) == text


@pytest.mark.slow
def test_nineteen_committed_claims_compare_planned_seeds_with_pilots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(ROOT)
    catalogue, found = load_catalogue(ROOT), set()
    with restored_reference() as restored:
        for paper in PAPERS:
            runs = list_counted_runs(restored, paper).others
            plans = list(catalogue.papers[paper].plans.values())
            judged = judge_paper(PaperResults(catalogue, paper, "small", restored.results), runs)
            found |= {(paper, one.claim.claim) for one in judged if describe_side_seeds(one, plans)}
    parts = [
        (part, data)
        for part in ("decomposition", "mixing", "nuance", "consistency")
        for data in ("paws", "sst2")
    ]
    parts += [(part, data) for part, _ in parts[::2] for data in ("bird", "bird-abba")]
    expected = {("cat", f"{part}-helps-{data}") for part, data in [*parts, ("codebook", "sst2")]}
    expected |= {("carma", f"finer-tokens-gain-more-{gain}") for gain in ("cap", "accuracy")}
    assert found == expected and len(found) == 19
    # From the seeds in claim_sides.csv, without this code.
    sides: dict[tuple[str, str], dict[str, set[bool]]] = {}
    for row in csv.DictReader(
        io.StringIO((ROOT / "results/reference/small/claim_sides.csv").read_text())
    ):
        if row["seed"] and row["value"]:
            claim = sides.setdefault((row["paper"], row["claim"]), {"left": set(), "right": set()})
            claim[row["side"]].add(int(row["seed"]) > 100)
    assert {
        key
        for key, both in sides.items()
        if both["left"] and both["right"] and both["left"] != both["right"]
    } == found
