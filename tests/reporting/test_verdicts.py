"""From cells to verdicts: the whole table of cases, and what a claim may not say."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from workflow_scripts.catalogue.loading import load_catalogue
from workflow_scripts.errors import UserError
from workflow_scripts.reporting.cells import Cell
from workflow_scripts.reporting.first_page import overview_html
from workflow_scripts.reporting.published import Published
from workflow_scripts.reporting.spec import Claim
from workflow_scripts.reporting.statistics import Effect
from workflow_scripts.reporting.verdicts import judge, verdict


def cell(key, values=None, protocol="reduced", printed=None, seeds=None, weights=""):
    display, row, column, metric = key.split("/")
    published = Published(str(printed), *printed, 5, "percent", "T9", "") if printed else None
    seeds = dict(zip(seeds or range(1, len(values or ()) + 1), values or (), strict=True))
    status = "measured" if seeds else "not run"
    return Cell(
        "p",
        display,
        row,
        column,
        metric,
        "percent",
        2,
        status,
        published=published,
        seeds=seeds,
        protocol=protocol if seeds else "",
        weights=weights or key,
    )


def claim(relation="greater", at_least=0, left="d/New/J/m", right="d/Plain/J/m", **more):
    entry = {"claim": "c", "statement": "s", "source": "T9", "left": left, "right": right, "unit": "points"}
    return Claim.model_validate(entry | {"relation": relation, "at_least": at_least} | more)


def judged(claims, cells, verdicts=True):
    return judge(claims, {found.key: found for found in cells}, verdicts, "small", "papers/p/claims.yaml")


@pytest.mark.parametrize(
    ("relation", "at_least", "low", "high", "expected"),
    [
        ("greater", 25, 26, 60, "reproduced"),
        ("greater", 25, 20, 60, "inconclusive"),
        ("greater", 25, 10, 24, "not reproduced"),
        ("greater", 0, 0, 0, "not reproduced"),
        ("greater", 0, 0, 1, "inconclusive"),
        ("less", 10, -30, -11, "reproduced"),
        ("less", 10, -30, -9, "inconclusive"),
        ("less", 10, -9, 40, "not reproduced"),
        ("no_gain", 1, -5, 1, "reproduced"),
        ("no_gain", 1, -5, 2, "inconclusive"),
        ("no_gain", 1, 2, 9, "not reproduced"),
        ("falls_with", 0.5, -1, -0.6, "reproduced"),
        ("falls_with", 0.5, -1, -0.4, "inconclusive"),
        ("falls_with", 0.5, -0.4, 0.9, "not reproduced"),
        ("greater", 0, None, None, "inconclusive"),
        ("no_gain", 0, None, None, "inconclusive"),
    ],
)
def test_verdict_by_interval(relation, at_least, low, high, expected):
    middle = 0.0 if low is None else (low + high) / 2
    assert verdict(claim(relation, at_least), Effect(middle, low, high, 0.5, 0.1, 3, "")) == expected


@pytest.mark.parametrize(
    ("left", "right", "verdicts", "expected", "reason"),
    [
        (("reduced", 3), ("reduced", 3), True, "reproduced", ""),
        (("paper", 3), ("reduced", 3), True, "reproduced", ""),
        (("paper", 3), ("stand_in", 3), True, "no verdict", "made-up data"),
        (("stand_in", 3), ("stand_in", 3), False, "no verdict", "made-up data"),
        (("reduced", 3), ("reduced", 3), False, "no verdict", "the small scale bears no verdict"),
        (("reduced", 3), ("reduced", 0), True, "not run", "not measured at small"),
        (("reduced", 3), ("reduced", 1), True, "inconclusive", "one seed has no interval"),
    ],
)
def test_who_may_bear_a_verdict(left, right, verdicts, expected, reason):
    cells = [
        cell("d/New/J/m", [95.0, 96.0, 97.0][: left[1]], left[0]),
        cell("d/Plain/J/m", [40.0, 41.0, 42.0][: right[1]], right[0]),
    ]
    (outcome,) = judged([claim(at_least=25)], cells, verdicts)
    assert (outcome.verdict, outcome.reason) == (expected, reason)
    assert (outcome.effect is None) == (right[1] == 0)
    assert (outcome.p_holm is None) == (expected in ("no verdict", "not run") or right[1] == 1)


def test_holm_counts_only_the_claims_that_bear_a_verdict():
    cells = [cell("d/New/J/m", [95.0, 96.0, 97.0]), cell("d/Plain/J/m", [40.0, 41.0, 42.0]), cell("d/Other/J/m")]
    unmeasured = claim(right="d/Other/J/m")
    alone = judged([claim(), unmeasured], cells)
    assert [outcome.p_holm for outcome in alone] == [pytest.approx(0.1), None]
    both = judged([claim(), claim("no_gain"), unmeasured], cells)
    assert [outcome.p_holm for outcome in both] == [pytest.approx(0.2), pytest.approx(0.2), None]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], "inconclusive"),
        ([100.0, 100.0], [100.0, 100.0], "inconclusive"),
        ([50.0, 50.1, 50.2], [50.0, 50.1, 50.3], "reproduced"),
    ],
)
def test_no_gain_cannot_be_seen_where_both_sides_score_nothing_or_everything(left, right, expected):
    cells = [cell("d/New/J/m", left), cell("d/Plain/J/m", right)]
    (outcome,) = judged([claim("no_gain", 1.0)], cells)
    assert outcome.verdict == expected


@pytest.mark.parametrize(
    ("relation", "value", "unit", "expected"),
    [
        ("greater", 0.0, "percent", "inconclusive"),
        ("less", 100.0, "percent", "inconclusive"),
        ("greater", 0.0, "share of seeds", "not reproduced"),
        ("greater", 50.0, "percent", "not reproduced"),
    ],
)
def test_nor_can_a_gain_be_missed_there(relation, value, unit, expected):
    cells = [replace(cell(f"d/{name}/J/m", [value] * 3), unit=unit) for name in ("New", "Plain")]
    (outcome,) = judged([claim(relation)], cells)
    assert (outcome.verdict, "no gain could be seen" in outcome.reason) == (expected, expected == "inconclusive")


@pytest.mark.parametrize(
    ("sal", "expected", "reason"),
    [
        ([95.0, 96.0, 97.0], "reproduced", ""),
        ([0.1, 0.0, 0.2], "inconclusive", "says nothing while gain is not reproduced"),
        (None, "inconclusive", "says nothing while gain is not run"),
    ],
)
def test_the_absence_of_a_gain_supposes_that_there_is_one(sal, expected, reason):
    cells = [cell("d/SAL/J/m", sal), cell("d/New/J/m", [0.1, 0.2, 0.3]), cell("d/Plain/J/m", [0.2, 0.1, 0.3])]
    absent = claim("no_gain", 1.0, given="gain")
    gain = claim(at_least=25, left="d/SAL/J/m", claim="gain")
    first, second = judged([absent, gain], cells)
    assert (first.verdict, first.reason) == (expected, reason)
    assert first.p_holm is not None and second.claim is gain
    # A gain where none should be is seen without any condition.
    cells[1] = cell("d/New/J/m", [60.0, 61.0, 62.0])
    assert judged([absent, gain], cells)[0].verdict == "not reproduced"
    cells = [cell("d/SAL/J/m", [1.0, 2.0], "stand_in"), cell("d/New/J/m", [0.1, 0.2, 0.3]), *cells[2:]]
    assert judged([absent, gain], cells)[0].reason == "says nothing while gain has no verdict"
    with pytest.raises(UserError, match=r"claims.yaml: claim c: given: no claim 'gian'; .*'gain'"):
        judged([claim("no_gain", 1.0, given="gian"), gain], cells)


def test_the_papers_own_effect_has_welchs_interval():
    cells = [
        cell("d/New/J/m", [1.0, 2.0], printed=(99.42, 0.98)),
        cell("d/Plain/J/m", [1.0, 2.0], printed=(40.04, 17.3)),
    ]
    value, half = judged([claim()], cells)[0].published
    assert value == pytest.approx(59.38)
    # A difference as large as half the interval is one of which Welch's test says p = 5%.
    at_the_edge = stats.ttest_ind_from_stats(half, 0.98, 5, 0.0, 17.3, 5, equal_var=False)
    assert at_the_edge.pvalue == pytest.approx(0.05, abs=1e-6)


def test_sides_that_start_from_the_same_weights_are_paired_by_seed():
    left, right = [5.0, 7.0, 9.0], [4.0, 5.0, 8.5]
    cells = [cell("d/New/J/m", left, weights="parent"), cell("d/Plain/J/m", right, weights="parent")]
    (outcome,) = judged([claim()], cells)
    oracle = stats.ttest_rel(left, right).confidence_interval(0.95)
    assert (outcome.effect.low, outcome.effect.high) == pytest.approx((oracle.low, oracle.high))
    assert "within seeds" in outcome.effect.method and outcome.effect.n == 3
    # The seeds that both have, whatever their order; none of them cannot be compared.
    some = [cells[0], cell("d/Plain/J/m", [8.5, 5.0, 1.0], seeds=[3, 2, 4], weights="parent")]
    assert judged([claim()], some)[0].effect.value == pytest.approx((7 - 5 + 9 - 8.5) / 2)
    none = [cells[0], cell("d/Plain/J/m", [8.5, 5.0], seeds=[4, 5], weights="parent")]
    with pytest.raises(
        UserError, match=r"claims.yaml: claim c: its two sides start from the same weights but share no"
    ):
        judged([claim()], none)


def test_sides_that_start_from_other_weights_are_independent():
    left, right = [5.0, 7.0, 9.0], [4.0, 5.0, 8.5]
    for weights in (("a", "b"), ("", "")):
        cells = [
            cell("d/New/J/m", left, weights=weights[0]),
            cell("d/Plain/J/m", right, seeds=[4, 5, 6], weights=weights[1]),
        ]
        (outcome,) = judged([claim()], cells)
        oracle = stats.ttest_ind(left, right, equal_var=False).confidence_interval(0.95)
        assert (outcome.effect.low, outcome.effect.high) == pytest.approx((oracle.low, oracle.high))
        assert "independent" in outcome.effect.method


@pytest.mark.parametrize(
    ("right", "expected"), [(40.0, "reproduced"), (96.0, "inconclusive"), (99.9, "not reproduced")]
)
def test_a_control_without_seeds_is_one_number(right, expected):
    control = replace(cell("d/Plain/J/m"), status="computed", computed=right, protocol="reduced")
    cells = [cell("d/New/J/m", [95.0, 96.0, 97.0]), control]
    (outcome,) = judged([claim()], cells)
    assert (outcome.verdict, outcome.effect.value, outcome.effect.n) == (expected, pytest.approx(96.0 - right), 3)
    (turned,) = judged([claim("less", left="d/Plain/J/m", right="d/New/J/m")], cells)
    assert (turned.verdict, turned.effect.value) == (expected, pytest.approx(right - 96.0))


@pytest.mark.parametrize(
    ("right", "expected"), [(40.0, "reproduced"), (96.0, "inconclusive"), (99.9, "not reproduced")]
)
def test_a_claim_against_a_number(right, expected):
    (outcome,) = judged([claim(right=right)], [cell("d/New/J/m", [95.0, 96.0, 97.0], "stand_in")])
    assert (outcome.verdict, outcome.reason) == ("no verdict", "made-up data")
    (outcome,) = judged([claim(right=right)], [cell("d/New/J/m", [95.0, 96.0, 97.0], printed=(9.0, 1.0))])
    assert (outcome.verdict, outcome.effect.value, outcome.effect.n) == (expected, pytest.approx(96.0 - right), 3)
    half = stats.t.ppf(0.975, 2) / np.sqrt(3)  # the deviation is 1
    assert (outcome.effect.low, outcome.effect.high) == pytest.approx((96 - right - half, 96 - right + half))
    assert outcome.published is None
    (outcome,) = judged([claim(right=right)], [cell("d/New/J/m")])
    assert outcome.verdict == "not run"


def test_a_trend_is_not_against_a_number():
    with pytest.raises(ValueError, match="not about a number"):
        claim("falls_with", left="d/New/*/m", right=1.0)


def test_two_sides_that_are_wholly_at_one_end_of_the_scale_say_nothing():
    for end in (0.0, 100.0):
        cells = [cell("d/New/J/m", [end] * 3), cell("d/Plain/J/m", [end] * 3)]
        (outcome,) = judged([claim("no_gain", 1)], cells)
        assert (outcome.verdict, outcome.reason) == (
            "inconclusive",
            f"both sides at {end:g}%: no gain could be seen",
        )
    for left, right in (([0.0, 0.0, 5.0], [0.0] * 3), ([0.0] * 3, [100.0] * 3), ([50.0] * 3, [50.0] * 3)):
        (outcome,) = judged([claim()], [cell("d/New/J/m", left), cell("d/Plain/J/m", right)])
        assert outcome.reason == ""


def test_two_controls_are_no_claim():
    control = replace(cell("d/Plain/J/m"), status="computed", computed=5.0, protocol="reduced")
    (outcome,) = judged([claim()], [replace(control, row="New"), control])
    assert outcome.verdict == "not run" and outcome.effect is None


def test_a_claim_at_a_depth_says_which_block_that_was():
    at = {"selection": {"layer": "25%"}, "block": 1}
    cells = [replace(cell("d/New/J/m", [5.0, 7.0]), **at), replace(cell("d/Plain/J/m", [4.0, 5.0]), **at)]
    assert judged([claim()], cells)[0].reason == "25% of the depth is block 1"


def trend(relation="falls_with"):
    return claim(relation, 0.5, left="d/KL/*/kl", right="d/Accuracy/*/m")


def trend_cells(columns, seeds=(1, 2, 3)):
    cells = []
    for i, column in enumerate(columns):
        cells.append(cell(f"d/KL/{column}/kl", [1.0 / (i + 1) + seed / 100 for seed in seeds], seeds=list(seeds)))
        cells.append(cell(f"d/Accuracy/{column}/m", [30.0 * i + seed for seed in seeds], seeds=list(seeds)))
    return cells


def test_a_trend_over_cells():
    (outcome,) = judged([trend()], trend_cells(["1x", "2x", "20x", "200x"]))
    assert outcome.effect.value == pytest.approx(-1)
    assert (outcome.verdict, outcome.reason) == ("reproduced", "")


def test_a_trend_says_which_cells_are_missing_and_needs_three():
    cells = [*trend_cells(["1x", "2x", "20x"]), cell("d/KL/200x/kl"), cell("d/Accuracy/200x/m")]
    (outcome,) = judged([trend()], cells)
    assert (outcome.verdict, outcome.reason) == ("reproduced", "1 of 4 cells not run")
    (outcome,) = judged([trend()], trend_cells(["1x", "2x"]))
    assert (outcome.verdict, outcome.effect) == ("not run", None)


def test_a_trend_uses_the_seeds_that_all_cells_have():
    cells = trend_cells(["1x", "2x", "20x"], seeds=(1, 2, 3))
    cells[0] = cell("d/KL/1x/kl", [1.5, 1.6], seeds=[2, 3])
    assert judged([trend()], cells)[0].effect.n == 2
    cells[0] = cell("d/KL/1x/kl", [1.5, 1.6], seeds=[8, 9])
    with pytest.raises(UserError, match="its cells share no seed"):
        judged([trend()], cells)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (claim(left="d/Nwe/J/m"), r"papers/p/claims.yaml: claim c: there is no cell d/Nwe/J/m in displays.yaml"),
        (claim(left="d/*/J/m"), r"only falls_with has it"),
        (claim("falls_with"), r"only falls_with has it"),
        (claim("falls_with", left="d/*/*/m", right="d/*/J/m"), r"only falls_with has it"),
    ],
)
def test_claims_about_nothing_are_refused(wrong, message):
    cells = [cell("d/New/J/m", [1.0, 2.0]), cell("d/Plain/J/m", [1.0, 2.0])]
    with pytest.raises(UserError, match=message):
        judged([wrong], cells)


def test_the_effect_is_left_less_right():
    left, right = [90.0, 92.0, 95.0], [50.0, 40.0, 45.0]
    (outcome,) = judged([claim()], [cell("d/New/J/m", left), cell("d/Plain/J/m", right)])
    assert outcome.effect.value == pytest.approx(np.mean(left) - np.mean(right))


def test_the_least_p_that_few_seeds_can_have_is_that_of_holm():
    """Beside a claim with a smaller p, five seeds can come down to 0.0625: a bound of twice that would lie above p."""
    cells = [
        cell("d/Many/J/m", [10.0 + seed for seed in range(10)], weights="w"),
        cell("d/Few/J/m", [11.0, 12.5, 11.5, 12.0, 13.0], weights="w"),
        cell("d/Plain/J/m", [1.0] * 10, weights="w"),
    ]
    claims = [claim(left="d/Many/J/m", claim="many"), claim(left="d/Few/J/m", claim="few")]
    outcomes = judged(claims, cells)
    assert [outcome.p_holm for outcome in outcomes] == pytest.approx([4 / 1024, 0.0625])
    text = overview_html(load_catalogue(), "small", {"sq_transformer": outcomes}, [])
    assert re.findall("p [0-9.]+, corrected [0-9.]+|cannot go under p [0-9.]+", text) == [
        "p 0.002, corrected 0.004",
        "p 0.062, corrected 0.062",
        "cannot go under p 0.062",
    ]
