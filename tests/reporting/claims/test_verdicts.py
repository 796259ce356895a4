"""From cells to verdicts: the whole table of cases, and what a claim may not say."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.analysis_plan import FirstPlan, PlannedClaim
from workflow_scripts.config.display_schema import Claim
from workflow_scripts.evaluation.published_numbers import Published
from workflow_scripts.evaluation.statistics import measure_superiority
from workflow_scripts.provenance.unfinished import Cause
from workflow_scripts.reporting.claims.comparison import PaperCells
from workflow_scripts.reporting.claims.verdicts import judge_claims
from workflow_scripts.reporting.evidence.selected_scores import ScoreSelection
from workflow_scripts.reporting.tables.cells import Cell

MANY = list(range(1, 9))


def cell(
    key, values=None, protocol="reduced", printed=None, seeds=None, weights="", unit="percent"
):
    published = (
        Published(str(printed), printed, None, 5, unit, "T9", "") if printed is not None else None
    )
    seeds = dict(zip(seeds or range(1, len(values or ()) + 1), values or (), strict=True))
    status, protocol = ("measured", protocol) if seeds else ("not run", "")
    more = {"published": published, "seeds": seeds, "protocol": protocol, "weights": weights or key}
    return Cell("p", *key.split("/"), unit, 2, status, **more)


def sides(new, plain, **more):
    return [cell("d/New/J/m", new, **more), cell("d/Plain/J/m", plain, **more)]


def computed(key, value):
    return replace(cell(key), status="computed", computed=value, protocol="reduced")


def claim(relation="greater", at_least=0, left="d/New/J/m", right="d/Plain/J/m", **more):
    entry = {
        "claim": "c",
        "statement": "s",
        "source": "T9",
        "left": left,
        "right": right,
        "unit": "points",
    }
    return Claim.model_validate(entry | {"relation": relation, "at_least": at_least} | more)


def judged(claims, cells, verdicts=True, plan=None, departures=None):
    by_key = {found.key: found for found in cells}
    primary = (
        [PlannedClaim("analysis_plan.yaml", plan, entry) for entry in plan.primary] if plan else []
    )
    paper_cells = PaperCells(by_key, "papers/p/claims.yaml")
    return judge_claims(claims, paper_cells, verdicts, "small", primary, departures or {})


def around(middle, half, n=4):
    """Return values with this mean whose 95% interval reaches so far on either side."""
    shape = np.array([-1.0, 1.0] * (n // 2))
    error = shape.std(ddof=1) / math.sqrt(n)
    return list(middle + shape * half / (stats.t.ppf(0.975, n - 1) * error))


def difference_cells(low, high, sign=1, printed=None):
    """Paired cells whose difference in the claimed direction has the 95% interval low to high."""
    values = around((low + high) / 2, (high - low) / 2)
    new = [50 + sign * value for value in values]
    numbers = (50 + sign * printed, 50) if printed is not None else (None, None)
    places = (("d/New/J/m", new), ("d/Plain/J/m", [50.0] * 4))
    return [
        cell(*place, weights="w", printed=number)
        for place, number in zip(places, numbers, strict=True)
    ]


@pytest.mark.parametrize(
    ("relation", "at_least", "printed", "low", "high", "expected"),
    [
        ("greater", 25, 40, 26, 60, "reproduced"),
        ("greater", 25, 40, 20, 60, "inconclusive"),
        ("greater", 25, 40, 10, 34.9, "not reproduced"),  # 25 and a quarter of 40
        ("greater", 25, 40, 10, 35.1, "inconclusive"),
        (
            "greater",
            25,
            None,
            10,
            24.9,
            "not reproduced",
        ),  # the paper prints no effect: below the margin
        ("greater", 25, None, 10, 25.1, "inconclusive"),
        ("greater", 25, -40, 10, 24.9, "not reproduced"),  # or one that contradicts the claim
        ("greater", 25, -40, 10, 25.1, "inconclusive"),
        ("less", 10, 20, 11, 30, "reproduced"),
        ("less", 10, 20, -9, 14, "not reproduced"),
        ("less", 10, 20, -9, 16, "inconclusive"),
        ("no_gain", 1, None, -0.9, 5, "reproduced"),
        ("no_gain", 1, 0, -5, -1.1, "not reproduced"),
        ("no_gain", 1, 20, -5, -0.9, "inconclusive"),
    ],
)
def test_exploratory_verdicts(relation, at_least, printed, low, high, expected):
    sign = 1 if relation == "greater" else -1
    cells = difference_cells(low, high, sign, printed)
    (outcome,) = judged([claim(relation, at_least)], cells)
    assert outcome.measurement.interval == pytest.approx((low, high))
    assert (outcome.verdict, outcome.role) == (expected, "exploratory")
    margin = -at_least if relation == "no_gain" else at_least
    left, right = (list(found.seeds.values()) for found in cells)
    smallest = margin + printed / 4 if printed and printed > 0 and relation != "no_gain" else margin
    effects = sign * (np.array(left) - right)
    # Against the margin where the effect is above it, against the smallest effect of interest where
    # it is below that.
    p_values = {bound: stats.ttest_1samp(effects, bound).pvalue for bound in (margin, smallest)}
    beyond = {margin: effects.mean() > margin}
    beyond[smallest] = beyond.get(smallest, False) or effects.mean() < smallest
    p_value = min(p_values[bound] for bound in beyond if beyond[bound])
    assert outcome.measurement.p_value == outcome.measurement.q_value == pytest.approx(p_value)
    assert outcome.comparison.published == (None if printed is None else pytest.approx(printed))
    assert outcome.comparison.printed == (
        "" if printed is None else "agree" if printed > margin else "contradict"
    )


@pytest.mark.parametrize(
    ("printed", "distance", "condition"),
    [
        (20, 5 - 2, ", if q allows"),  # from the mean, 2, to a quarter of the published effect
        (
            4,
            2 - 0,
            ", if q allows",
        ),  # to the margin: to be reproduced, it must hold among many claims, too
        (None, 2 - 0, ", if q allows"),
    ],
)
def test_inconclusive_says_how_many_seeds_would_decide(printed, distance, condition):
    (outcome,) = judged([claim()], difference_cells(-1, 5, printed=printed))
    deviation = 3 / stats.t.ppf(0.975, 3) * 2
    expected = math.ceil(
        (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) ** 2 * (deviation / distance) ** 2 + 2
    )
    said = f"about {max(5, expected)} seeds would decide{condition}"
    assert (outcome.verdict, outcome.reason) == ("inconclusive", said)


def test_a_printed_gain_is_the_published_effect():
    """The paper prints a difference, but neither of the two scores."""
    cells = [*difference_cells(1, 11), cell("t/New/J gain/m", printed=30, unit="points")]
    (outcome,) = judged([claim(at_least=5, published="t/New/J gain/m")], cells)
    compared = outcome.comparison
    assert (compared.published, compared.printed, compared.smallest) == (30, "agree", 5 + 30 / 4)
    assert (outcome.verdict, outcome.reason) == (
        "not reproduced",
        "less than 12.5, the margin of 5 plus a quarter of the published effect",
    )
    cells[-1] = cell("t/New/J gain/m", unit="points")  # the paper says "considerable gains"
    (outcome,) = judged([claim(at_least=5, published="t/New/J gain/m")], cells)
    assert outcome.comparison.published is None
    with pytest.raises(UserError, match=r"no cell t/New/J gian/m in displays\.yaml"):
        judged([claim(published="t/New/J gian/m")], cells)


def test_one_of_many_claims_needs_a_q_value():
    good = difference_cells(0.01, 6, printed=20)
    (alone,) = judged([claim()], good)
    assert (alone.verdict, alone.reason) == ("reproduced", "")
    rest = [
        cell(f"d/R{i}/J/m", [50.0 + v for v in (-1, 1, -1, 1.1)], weights="w") for i in range(9)
    ]
    claims = [claim(), *(claim(left=f"d/R{i}/J/m", claim=f"r{i}") for i in range(9))]
    first = judged(claims, [*good, *rest])[0]
    assert first.measurement.q_value == pytest.approx(10 * first.measurement.p_value)
    assert first.verdict == "inconclusive"
    assert first.reason.startswith(
        f"the interval is above the margin, but q is {first.measurement.q_value:.2g}, more than 0.05"
    )


@pytest.mark.parametrize(
    ("left", "right", "verdicts", "expected", "reason"),
    [
        (("reduced", 3), ("reduced", 3), True, "reproduced", ""),
        (("paper", 3), ("reduced", 3), True, "reproduced", ""),
        (("paper", 3), ("stand_in", 3), True, "no verdict", "generated data"),
        (("stand_in", 3), ("stand_in", 3), False, "no verdict", "generated data"),
        (("reduced", 3), ("reduced", 3), False, "no verdict", "the small scale gives no verdict"),
        (("reduced", 3), ("reduced", 0), True, "not run", "not measured at small"),
        (("reduced", 3), ("reduced", 1), True, "inconclusive", "one seed has no interval"),
    ],
)
def test_who_may_bear_a_verdict(left, right, verdicts, expected, reason):
    cells = [cell("d/New/J/m", [95.0, 96.0, 97.0][: left[1]], left[0])]
    cells += [cell("d/Plain/J/m", [40.0, 41.0, 42.0][: right[1]], right[0])]
    (outcome,) = judged([claim(at_least=25)], cells, verdicts)
    assert (outcome.verdict, outcome.reason) == (expected, reason)
    assert (outcome.measurement is None) == (right[1] == 0)
    is_tested = outcome.measurement is not None and outcome.measurement.q_value is not None
    assert is_tested == (expected not in ("no verdict", "not run") and right[1] != 1)


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        (
            [0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0],
            "all seeds of both sides are at 0%: no difference could be seen",
        ),
        (
            [100.0, 100.0],
            [100.0, 100.0],
            "all seeds of both sides are at 100%: no difference could be seen",
        ),
        (
            [50.0] * 3,
            [50.0] * 3,
            "all seeds of both sides are at 50%: no difference could be seen",
        ),
        ([0.0, 0.0, 5.0], [0.0] * 3, None),
        ([0.0] * 3, [100.0] * 3, None),
    ],
)
@pytest.mark.parametrize("relation", ["greater", "less", "no_gain"])
def test_nothing_is_seen_where_all_seeds_of_both_sides_have_one_value(
    left, right, reason, relation
):
    (outcome,) = judged([claim(relation, 1.0)], sides(left, right))
    assert (outcome.verdict == "no verdict") == (reason is not None)
    assert outcome.reason == reason or reason is None


@pytest.mark.parametrize(
    ("relation", "floor", "expected"),
    [
        ("greater", 40.0, "reproduced"),
        ("greater", 60.0, "no verdict"),
        ("greater", "d/Constant/J/m", "no verdict"),
    ],
)
def test_a_model_that_has_learnt_nothing_has_no_verdict(relation, floor, expected):
    cells = sides([57.0, 58.0, 59.0], [50.0, 51.0, 52.0])
    cells.append(computed("d/Constant/J/m", 75.1))
    (outcome,) = judged([claim(relation, floor=floor)], cells)
    assert outcome.verdict == expected
    assert ("is not beyond" in outcome.reason) == (expected == "no verdict")
    assert outcome.measurement is not None


def test_a_floor_and_a_single_seed_or_a_number():
    """One seed has no interval, so that nothing can be said of its floor; a number is compared as
    it is.
    """
    one = sides([57.0], [50.0])
    assert judged([claim(floor=60.0)], one)[0].reason == "one seed has no interval"
    number = [cell("d/New/J/m", [57.0, 58.0]), computed("d/Plain/J/m", 59.0)]
    assert "is not beyond 59.0" in judged([claim(floor=59.0)], number)[0].reason
    assert "is not beyond" not in judged([claim(floor=58.0)], number)[0].reason


def test_errors_have_their_floor_above():
    cells = sides([90.0, 91.0, 92.0], [97.0, 98.0, 99.0])
    assert judged([claim("less", floor=100.0)], cells)[0].verdict == "reproduced"
    assert judged([claim("less", floor=92.0)], cells)[0].verdict == "no verdict"


@pytest.mark.parametrize(
    ("sal", "expected", "reason"),
    [
        ([95.0, 96.0, 97.0], "reproduced", ""),
        ([0.1, 0.0, 0.2], "no verdict", "says nothing while gain is not reproduced"),
        (None, "no verdict", "says nothing while gain is not run"),
    ],
)
def test_the_absence_of_a_gain_supposes_that_there_is_one(sal, expected, reason):
    cells = [
        cell("d/SAL/J/m", sal),
        cell("d/New/J/m", [0.1, 0.2, 0.3]),
        cell("d/Plain/J/m", [0.2, 0.1, 0.3]),
    ]
    absent = claim("no_gain", 1.0, given="gain")
    gain = claim(at_least=25, left="d/SAL/J/m", claim="gain")
    first, second = judged([absent, gain], cells)
    assert (first.verdict, first.reason) == (expected, reason)
    assert second.claim is gain
    # A gain where none should be is seen without any condition.
    cells[1] = cell("d/New/J/m", [60.0, 61.0, 62.0])
    assert judged([absent, gain], cells)[0].verdict == "not reproduced"
    cells = [
        cell("d/SAL/J/m", [1.0, 2.0], "stand_in"),
        cell("d/New/J/m", [0.1, 0.2, 0.3]),
        *cells[2:],
    ]
    assert judged([absent, gain], cells)[0].reason == "says nothing while gain has no verdict"
    with pytest.raises(UserError, match=r"claims.yaml: claim c: given: no claim 'gian'; .*'gain'"):
        judged([claim("no_gain", 1.0, given="gian"), gain], cells)


def test_sides_that_start_from_the_same_weights_are_paired_by_seed():
    left, right = [5.0, 7.0, 9.0], [4.0, 5.0, 8.5]
    cells = sides(left, right, weights="parent")
    (outcome,) = judged([claim()], cells)
    oracle = stats.ttest_rel(left, right).confidence_interval(0.95)
    assert outcome.measurement.interval == pytest.approx((oracle.low, oracle.high))
    assert "within seeds" in outcome.measurement.effect.method and outcome.measurement.effect.n == 3
    # The seeds that both have, whatever their order; none of them cannot be compared.
    some = [cells[0], cell("d/Plain/J/m", [8.5, 5.0, 1.0], seeds=[3, 2, 4], weights="parent")]
    assert judged([claim()], some)[0].measurement.effect.value == pytest.approx(
        (7 - 5 + 9 - 8.5) / 2
    )
    none = [cells[0], cell("d/Plain/J/m", [8.5, 5.0], seeds=[4, 5], weights="parent")]
    (outcome,) = judged([claim()], none)
    assert (outcome.verdict, outcome.measurement) == ("no verdict", None)
    assert outcome.reason == "its sides start from the same weights and share no seed"


def test_sides_that_start_from_other_weights_are_independent():
    left, right = [5.0, 7.0, 9.0], [4.0, 5.0, 8.5]
    for weights in (("a", "b"), ("", "")):
        cells = [cell("d/New/J/m", left, weights=weights[0])]
        cells += [cell("d/Plain/J/m", right, seeds=[4, 5, 6], weights=weights[1])]
        (outcome,) = judged([claim()], cells)
        oracle = stats.ttest_ind(left, right, equal_var=False).confidence_interval(0.95)
        assert outcome.measurement.interval == pytest.approx((oracle.low, oracle.high))
        assert "independent" in outcome.measurement.effect.method


def test_a_claim_over_several_models_takes_the_mean_of_each_seed_first():
    a, b = np.array([5.0, 7.0, 9.0, 6.0]), np.array([15.0, 13.0, 16.0, 12.0])
    plain = [np.array([4.0, 5.0, 8.5, 7.0]), np.array([14.0, 13.5, 12.0, 12.0])]
    keys = [("d/A/J/m", a), ("d/B/J/m", b), ("d/A0/J/m", plain[0]), ("d/B0/J/m", plain[1])]
    cells = [cell(key, list(values), weights=key[2]) for key, values in keys]
    lists = {"left": ["d/A/J/m", "d/B/J/m"], "right": ["d/A0/J/m", "d/B0/J/m"]}
    (outcome,) = judged([claim(**lists)], cells)
    oracle = stats.ttest_1samp(((a - plain[0]) + (b - plain[1])) / 2, 0)
    interval = oracle.confidence_interval(0.95)
    assert outcome.measurement.interval == pytest.approx((interval.low, interval.high))
    # A seed that one model lacks counts for none.
    cells[0] = cell("d/A/J/m", [5.0, 7.0, 9.0], weights="A")
    assert judged([claim(**lists)], cells)[0].measurement.effect.n == 3
    cells[0] = cell("d/A/J/m")
    assert judged([claim(**lists)], cells)[0].verdict == "not run"


def test_ratios_are_compared_by_their_logarithms():
    new, plain = np.array([0.5, 0.7, 0.4, 0.6]), np.array([0.9, 0.8, 1.1, 0.7])
    cells = [cell("d/New/J/m", list(new), weights="w", unit="ratio", printed=0.5)]
    cells.append(cell("d/Plain/J/m", list(plain), weights="w", unit="ratio", printed=1.0))
    (outcome,) = judged([claim("less", measure="log_ratio", unit="log ratio")], cells)
    interval = stats.ttest_1samp(np.log(plain / new), 0).confidence_interval(0.95)
    assert outcome.measurement.interval == pytest.approx((interval.low, interval.high))
    assert outcome.comparison.published == pytest.approx(math.log(2))
    # 0 has no logarithm: without that seed the effect would be that of the others.
    cells[0] = cell("d/New/J/m", [0.0, *new[1:]], weights="w", unit="ratio", printed=0.0)
    (outcome,) = judged([claim("less", measure="log_ratio")], cells)
    (primary,) = judged([claim("less", measure="log_ratio")], cells, plan=plan())
    assert outcome.comparison.published is None
    for found in (outcome, primary):
        assert (found.verdict, found.measurement) == ("no verdict", None)
        assert found.reason == "seed 1 of New has 0: there is no logarithm"
    assert (outcome.n_seeds, primary.n_seeds) == (None, 4)


def test_the_best_seeds_are_not_left_out_because_they_have_no_odds():
    left = [100.0, 100.0, 100.0, 88.0, 87.0, 87.5]
    cells = sides(left, [90.0, 91.5, 92.0, 93.0, 91.0, 91.0], weights="w")
    (outcome,) = judged([claim(measure="log_odds", unit="log odds")], cells)
    assert (outcome.verdict, outcome.reason) == (
        "no verdict",
        "seed 1 of New has 100: there is no logarithm",
    )


@pytest.mark.parametrize(("right", "verdict"), [(40.0, "reproduced"), (96.0, "inconclusive")])
def test_a_control_without_seeds_is_one_number(right, verdict):
    cells = [cell("d/New/J/m", [95.0, 96.0, 97.0]), computed("d/Plain/J/m", right)]
    (outcome,) = judged([claim()], cells)
    assert (outcome.verdict, outcome.measurement.effect.value, outcome.measurement.effect.n) == (
        verdict,
        pytest.approx(96.0 - right),
        3,
    )
    (turned,) = judged([claim("less", left="d/Plain/J/m", right="d/New/J/m")], cells)
    assert (turned.verdict, turned.measurement.effect.value) == (
        verdict,
        pytest.approx(96.0 - right),
    )
    (number,) = judged([claim(right=right)], cells)
    assert (number.verdict, number.measurement.interval) == (
        verdict,
        pytest.approx(outcome.measurement.interval),
    )
    assert number.comparison.published is None


def test_two_controls_are_no_claim():
    (outcome,) = judged([claim()], [computed("d/New/J/m", 6.0), computed("d/Plain/J/m", 5.0)])
    assert outcome.verdict == "not run" and outcome.measurement is None


def test_a_claim_at_a_depth_says_which_block_that_was():
    at = {"selection": ScoreSelection(layer="25%"), "block": 1}
    cells = [
        replace(cell("d/New/J/m", [5.0, 7.0]), **at),
        replace(cell("d/Plain/J/m", [1.0, 1.5]), **at),
    ]
    assert judged([claim()], cells)[0].reason.endswith("25% of the depth is block 1")


def trend(relation="falls_with"):
    return claim(relation, 0.5, left="d/KL/*/kl", right="d/Accuracy/*/m")


def trend_cells(columns, seeds=(1, 2, 3)):
    cells = []
    for i, column in enumerate(columns):
        cells.append(
            cell(
                f"d/KL/{column}/kl",
                [1.0 / (i + 1) + seed / 100 for seed in seeds],
                seeds=list(seeds),
            )
        )
        cells.append(
            cell(f"d/Accuracy/{column}/m", [30.0 * i + seed for seed in seeds], seeds=list(seeds))
        )
    return cells


def test_a_trend_over_cells():
    cells = trend_cells(["1x", "2x", "20x", "200x"], seeds=(1, 2, 3, 4))
    (outcome,) = judged([trend()], cells)
    assert outcome.measurement.effect.value == pytest.approx(1)
    assert (outcome.verdict, outcome.reason) == ("reproduced", "")


def test_a_trend_says_which_cells_are_missing_and_needs_three():
    cells = trend_cells(["1x", "2x", "20x"], seeds=(1, 2, 3, 4))
    cells += [cell("d/KL/200x/kl"), cell("d/Accuracy/200x/m")]
    (outcome,) = judged([trend()], cells)
    assert (outcome.verdict, outcome.reason) == ("reproduced", "1 of 4 cells not run")
    (outcome,) = judged([trend()], trend_cells(["1x", "2x"]))
    assert (outcome.verdict, outcome.measurement) == ("not run", None)


def test_a_trend_uses_the_seeds_that_all_cells_have():
    cells = trend_cells(["1x", "2x", "20x"], seeds=(1, 2, 3))
    cells[0] = cell("d/KL/1x/kl", [1.5, 1.6], seeds=[2, 3])
    assert judged([trend()], cells)[0].measurement.effect.n == 2
    cells[0] = cell("d/KL/1x/kl", [1.5, 1.6], seeds=[8, 9])
    assert judged([trend()], cells)[0].reason == "its cells share no seed"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            claim(left="d/Nwe/J/m"),
            r"papers/p/claims.yaml: claim c: there is no cell d/Nwe/J/m in displays.yaml",
        ),
        (claim(left="d/*/J/m"), r"only falls_with has it"),
        (claim("falls_with"), r"only falls_with has it"),
        (claim("falls_with", left="d/*/*/m", right="d/*/J/m"), r"only falls_with has it"),
    ],
)
def test_claims_about_nothing_are_refused(wrong, message):
    cells = sides([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(UserError, match=message):
        judged([wrong], cells)


def test_claims_that_make_no_sense_are_refused():
    for message, more in (
        (
            "not about lists or a number",
            {"relation": "falls_with", "left": "d/New/*/m", "right": 1.0},
        ),
        ("lists of one length", {"left": ["a", "b"]}),
        ("lists of one length", {"left": ["a", "b"], "right": ["a", "b", "c"]}),
        ("greater and less", {"relation": "no_gain", "measure": "log_ratio"}),
        ("the seeds of two cells", {"right": 1.0, "measure": "success_rate"}),
    ):
        with pytest.raises(ValueError, match=message):
            claim(**more)


# Primary claims


def plan(seeds=(1, 2, 3, 4), pilots=(90,), **entry):
    spread = {"sd": 1.0, "freedom": 9, "paired": True}
    primary = {"claim": "c", "published": 20.0, "smallest": 5.0, "spread": spread} | entry
    content = {
        "scale": "small",
        "written": "2026-01-01",
        "seeds": list(seeds),
        "quantile": 0.95,
        "stop": "all",
    }
    content |= {"pilots": {"seeds": list(pilots), "source": "scores.csv"}, "primary": [primary]}
    return FirstPlan.model_validate(content, strict=False)


def at_90(low, high):
    """Paired cells whose 90% interval, that of a plan with one primary claim, is low to high."""
    half = (high - low) / 2 * stats.t.ppf(0.975, 3) / stats.t.ppf(0.95, 3)
    return difference_cells((low + high) / 2 - half, (low + high) / 2 + half)


@pytest.mark.parametrize(
    ("low", "high", "expected", "reason"),
    [
        (0.1, 9, "reproduced", ""),
        (0.1, 4.9, "reproduced", "smaller than of interest"),
        (-1, 4.9, "not reproduced", "less than 5, a quarter of the published effect"),
        (-9, 0.5, "not reproduced", "less than 5, a quarter of the published effect"),
        (-9, -0.5, "not reproduced", "the whole interval is below 0, opposite to the claim"),
        (-1, 9, "inconclusive", "seeds would decide"),
    ],
)
def test_primary_verdicts(low, high, expected, reason):
    (outcome,) = judged([claim()], at_90(low, high), plan=plan())
    assert outcome.measurement.interval == pytest.approx((low, high))
    assert (
        outcome.role,
        outcome.verdict,
        outcome.comparison.n_planned,
        outcome.comparison.quantile,
    ) == (
        "primary",
        expected,
        4,
        0.95,
    )
    assert outcome.reason == reason or (expected == "inconclusive" and reason in outcome.reason)
    assert outcome.measurement.q_value is None and outcome.comparison.smallest == 5


def test_the_share_of_the_published_effect_and_the_margin_are_said():
    """The interval may still hold two thirds of the published effect."""
    (outcome,) = judged([claim()], at_90(-1, 9), plan=plan(smallest=10.0))
    assert (outcome.verdict, outcome.reason) == (
        "not reproduced",
        "less than 10, half of the published effect",
    )
    margin = plan(margin=8.0, smallest=13.0)
    (outcome,) = judged([claim(at_least=8)], at_90(-1, 12.9), plan=margin)
    said = "less than 13, the margin of 8 plus a quarter of the published effect"
    assert (outcome.verdict, outcome.reason) == ("not reproduced", said)


def test_no_loss_has_one_limit():
    no_loss = plan(published=None, margin=-2.0, smallest=-2.0)
    expected = {(-1.9, 1): "reproduced", (-9, -2.1): "not reproduced", (-9, 1): "inconclusive"}
    for (low, high), verdict in expected.items():
        (outcome,) = judged([claim("no_gain", 2)], at_90(-high, -low), plan=no_loss)
        assert (outcome.measurement.interval, outcome.verdict) == (
            pytest.approx((low, high)),
            verdict,
        )


def test_a_primary_claim_whose_runs_depart_from_the_plan_has_no_verdict():
    cells = at_90(6, 9)
    assert judged([claim()], cells, plan=plan())[0].verdict == "reproduced"
    (outcome,) = judged(
        [claim()], cells, plan=plan(), departures={"c": "a run was trained in tf32"}
    )
    assert (outcome.verdict, outcome.reason) == ("no verdict", "a run was trained in tf32")
    (other,) = judged(
        [claim()], cells, plan=plan(), departures={"another": "a run was trained in tf32"}
    )
    assert other.verdict == "reproduced"


def test_a_primary_claim_waits_for_its_planned_seeds_and_counts_no_others():
    cells = difference_cells(-1, 9)
    three = [replace(one, seeds={seed: one.seeds[seed] for seed in (1, 2, 3)}) for one in cells]
    (outcome,) = judged([claim()], three, plan=plan())
    assert (outcome.verdict, outcome.reason, outcome.n_seeds) == ("no verdict", "3 of 4 seeds", 3)
    assert outcome.measurement is None and outcome.role == "primary"
    more = [replace(one, seeds=one.seeds | {90: 99.0, 91: 1.0}) for one in cells]
    assert (
        judged([claim()], more, plan=plan())[0].measurement
        == judged([claim()], cells, plan=plan())[0].measurement
    )
    pilots_only = [replace(one, seeds={90: 1.0}) for one in cells]
    assert judged([claim()], pilots_only, plan=plan())[0].reason == "0 of 4 seeds"
    # At another scale the plan says nothing.
    assert judged([claim()], cells)[0].role == "exploratory"


@pytest.mark.parametrize(
    ("control", "reason"),
    [
        ({"floor": 40.0}, ""),
        ({"floor": 48.0}, "is not beyond 48.0"),  # by less than the smallest effect of interest
        ({"floor": "d/Constant/J/m"}, "is not beyond 75.1 (d/Constant/J/m)"),
        ({"floor": "d/Missing/J/m"}, "a control is not measured: d/Missing/J/m"),
        ({"perfect": 100.0}, ""),
        ({"perfect": 55.0}, "no room"),
        ({"requires": [{"cell": "d/Fit/J/m", "at_least": 90.0}]}, ""),
        (
            {"requires": [{"cell": "d/Fit/J/m", "at_least": 97.0}]},
            "a control fails: d/Fit/J/m is 96.0",
        ),
        (
            {"requires": [{"cell": "d/Half/J/m", "at_least": 90.0}]},
            "a control is not measured: d/Half/J/m",
        ),
        (
            {"requires": [{"cell": "d/Constant/J/m", "at_least": 90.0}]},
            "a control fails: d/Constant/J/m is 75.1",
        ),
        ({"same_sign": "up"}, ""),
        ({"same_sign": "down"}, "a control fails: down has the other sign"),
        ({"same_sign": "half"}, "a control is not measured: half"),
    ],
)
def test_controls(control, reason):
    # The seed 90 is a pilot: it counts for no control.
    cells = [*at_90(0.1, 9), computed("d/Constant/J/m", 75.1)]
    cells += [cell("d/Fit/J/m", [95.0, 97.0, 95.0, 97.0, 0.0], seeds=[1, 2, 3, 4, 90])]
    cells += [cell("d/Up/J/m", [60.0, 61.0, 62.0, 61.0, -900.0], seeds=[1, 2, 3, 4, 90])]
    cells += [cell("d/Half/J/m", [95.0, 97.0])]
    others = [claim(left="d/Up/J/m", claim="up"), claim(right="d/Up/J/m", claim="down")]
    others += [claim(left="d/Half/J/m", claim="half")]
    outcome = judged([claim(), *others], cells, plan=plan(control=control))[0]
    assert outcome.verdict == ("no verdict" if reason else "reproduced")
    assert reason in outcome.reason


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(-9, 0.5, "not reproduced"), (-1, 9, "inconclusive")]
)
def test_only_a_reproduced_claim_needs_another_one_of_the_same_sign(low, high, verdict):
    """Near no effect at all the two signs differ by chance."""
    cells = at_90(low, high)
    reversed_claim = claim("less", claim="reversed")
    outcome = judged([claim(), reversed_claim], cells, plan=plan(control={"same_sign": "reversed"}))
    assert outcome[0].verdict == verdict


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ([50.0 + i for i in range(8)], ""),
        ([1.5 + i for i in range(8)], "other has the other sign"),  # 28 of 64 pairs: above 0 too
        ([2.0 + i for i in range(8)], "other has the other sign"),  # half of the pairs
    ],
)
def test_the_sign_of_a_chance_is_its_side_of_one_half(other, reason):
    cells = [*sides([90.0 + i for i in range(8)], [2.0 + i for i in range(8)])]
    cells.append(cell("d/Other/J/m", other))
    chance = {"measure": "superiority", "at_least": 0.5, "unit": "chance"}
    planned = plan(
        MANY,
        measure="superiority",
        margin=0.5,
        smallest=0.8,
        published=0.8,
        spread=None,
        control={"same_sign": "other"},
    )
    claims = [claim(**chance), claim(left="d/Other/J/m", claim="other", **chance)]
    outcome, of_other = judged(claims, cells, plan=planned)
    assert of_other.measurement.effect.value == pytest.approx(
        np.mean([(a > b) + (a == b) / 2 for a in other for b in cells[1].seeds.values()])
    )
    assert outcome.verdict == ("no verdict" if reason else "reproduced")
    assert reason in outcome.reason


@pytest.mark.parametrize(
    ("perfect", "reason"),
    [
        (0.0, ""),
        (45.0, "no room: the worse side has 50.0, and 45 is the best possible"),
        (55.0, "no room: the worse side has 50.0, and 55 is the best possible"),
    ],
)
def test_room_of_a_claim_on_errors_is_measured_from_the_side_with_more(perfect, reason):
    """That is 50. The plan's published effect is 20, and half of it is room enough."""
    cells = difference_cells(0.1, 9, sign=-1)
    (outcome,) = judged([claim("less")], cells, plan=plan(control={"perfect": perfect}))
    assert outcome.verdict == ("no verdict" if reason else "reproduced")
    assert reason in outcome.reason


SHARES = {"reproduced": [(8, 0), (5, 0), (4, 0)], "inconclusive": [(3, 0), (7, 4), (2, 0)]}
SHARES["not reproduced"] = [(0, 0), (1, 0)]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [(*sides, verdict) for verdict, found in SHARES.items() for sides in found],
)
def test_the_share_of_seeds_that_succeed(left, right, expected):
    """Of 8 seeds a side, at the level of one primary claim; by scipy's exact tests."""
    rates = plan(MANY, published=None, smallest=0.5, threshold=50.0, spread=None)
    cells = sides(
        *([60.0 + i if i < wins else 3.0 + i for i in range(8)] for wins in (left, right))
    )
    (outcome,) = judged([claim(measure="success_rate", unit="share of seeds")], cells, plan=rates)
    p = stats.fisher_exact([[left, 8 - left], [right, 8 - right]], alternative="greater").pvalue
    upper = stats.binomtest(left, 8, alternative="less").proportion_ci(0.95, "exact").high
    assert expected == (
        "reproduced" if p <= 0.05 else "not reproduced" if upper < 0.5 else "inconclusive"
    )
    assert outcome.verdict == expected
    assert outcome.reason == f"above 50: {left} of 8 seeds against {right} of 8"
    assert outcome.measurement.rates.difference == (left - right) / 8


def test_that_no_seed_succeeds_is_seen_where_all_score_nothing():
    rates = plan(MANY, published=None, smallest=0.5, threshold=50.0, spread=None)
    cells = sides([0.0] * 8, [0.0] * 8)
    (outcome,) = judged([claim(measure="success_rate")], cells, plan=rates)
    assert outcome.verdict == "not reproduced"
    # A floor is in the unit of the scores: the smallest share of interest does not add to it.
    floor = plan(
        MANY, published=None, smallest=0.5, threshold=50.0, spread=None, control={"floor": 59.9}
    )
    cells[0] = cell("d/New/J/m", [60.0 + i / 100 for i in range(8)])
    assert judged([claim(measure="success_rate")], cells, plan=floor)[0].verdict == "reproduced"


def test_a_share_of_seeds_has_no_verdict_without_a_plan():
    cells = sides([60.0] * 8, [3.0] * 8)
    (outcome,) = judged([claim(measure="success_rate")], cells)
    assert (outcome.verdict, outcome.reason[:22]) == ("no verdict", "a share of seeds that ")


@pytest.mark.parametrize(
    ("deviation", "truth", "wrong"),
    [(2.4, 0.0, "reproduced"), (2.4, 5.0, "not reproduced"), (1.0, 20.0, "not reproduced")],
)
@pytest.mark.parametrize("n", [4, 6, 9])
def test_wrong_primary_verdicts_are_as_rare_as_the_plan_says(deviation, truth, wrong, n):
    """At the margin, at the smallest effect of interest, and at the published one; the level here
    is 5% a side.
    """
    generator, seeds, trials = np.random.default_rng(n), list(range(1, n + 1)), 1000
    found = 0
    for draws in generator.normal(truth, deviation, (trials, n)):
        cells = sides(list(50 + draws), [50.0] * n, weights="w", seeds=seeds)
        found += judged([claim()], cells, plan=plan(seeds))[0].verdict == wrong
    assert found / trials <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)


def test_odds_are_compared_by_their_logarithm():
    """Paired seeds: the mean of ln(odds of left / odds of right), by scipy's t test."""
    left, right = [60.0, 70.0, 65.0, 72.0], [50.0, 52.0, 49.0, 55.0]
    cells = sides(left, right, weights="w")
    (outcome,) = judged([claim(measure="log_odds", unit="log odds")], cells)
    ratios = np.log([a / (100 - a) / (b / (100 - b)) for a, b in zip(left, right, strict=True)])
    oracle = stats.ttest_1samp(ratios, 0)
    assert outcome.measurement.effect.value == pytest.approx(ratios.mean())
    assert outcome.measurement.interval == pytest.approx(tuple(oracle.confidence_interval(0.95)))
    assert outcome.measurement.p_value == pytest.approx(oracle.pvalue)
    # Of an error rate the lower one is the better one.
    (errors,) = judged([claim("less", measure="log_odds", unit="log odds")], cells)
    assert errors.measurement.effect.value == pytest.approx(-ratios.mean())


def test_the_published_odds_ratio_is_that_of_the_printed_numbers():
    cells = [
        cell("d/New/J/m", [60.0, 61.0], printed=80.0),
        cell("d/Plain/J/m", [50.0, 51.0], printed=50.0),
    ]
    (outcome,) = judged([claim(measure="log_odds", unit="log odds")], cells)
    assert outcome.comparison.published == pytest.approx(math.log(4))


def test_a_seed_without_odds_leaves_a_primary_claim_without_a_verdict():
    cells = sides([60.0, 70.0, 65.0, 100.0], [50.0, 52.0, 49.0, 55.0], weights="w")
    odds = plan(published=1.0, smallest=0.25, measure="log_odds")
    (outcome,) = judged([claim(measure="log_odds", unit="log odds")], cells, plan=odds)
    assert (outcome.verdict, outcome.reason) == (
        "no verdict",
        "seed 4 of New has 100: there is no logarithm",
    )
    assert outcome.n_seeds == 4


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ([90.0 + i for i in range(8)], "reproduced"),  # each seed above each of the other side
        ([9.5 - i for i in range(8)], "not reproduced"),  # half of the pairs
        ([11.0 - i for i in range(8)], "inconclusive"),
    ],
)
def test_the_chance_that_a_seed_is_above_one_of_the_other_side(left, expected):
    right = [2.0 + i for i in range(8)]
    cells = sides(left, right)
    chance = plan(MANY, measure="superiority", margin=0.5, smallest=0.8, published=0.8, spread=None)
    compared = claim(measure="superiority", at_least=0.5, unit="chance")
    (outcome,) = judged([compared], cells, plan=chance)
    pairs = [(a > b) + (a == b) / 2 for a in left for b in right]
    assert outcome.measurement.effect.value == pytest.approx(np.mean(pairs))
    assert outcome.measurement.effect.value == pytest.approx(
        stats.mannwhitneyu(left, right).statistic / 64
    )
    assert outcome.verdict == expected
    low, high = outcome.measurement.interval
    assert 0 <= low < outcome.measurement.effect.value <= high <= 1
    assert expected == (
        "reproduced" if low > 0.5 else "not reproduced" if high < 0.8 else "inconclusive"
    )
    # The other side is below: the chance is the rest.
    swapped = claim("less", 0.5, "d/Plain/J/m", "d/New/J/m", measure="superiority", unit="chance")
    (other,) = judged([swapped], cells, plan=chance)
    assert (other.measurement.effect.value, other.measurement.interval) == (
        pytest.approx(outcome.measurement.effect.value),
        pytest.approx((low, high)),
    )


def test_both_exploratory_verdicts_need_the_same_q():
    """Ten claims, nine with a large p and one with p = 0.03: its q is 0.3, whichever bound its
    interval is beyond.
    """
    # of the 95% interval, if p is 0.03 at distance 1
    half = stats.t.ppf(0.985, 3) / stats.t.ppf(0.975, 3)
    for middle in (1.0, -1.0):
        cells = [*difference_cells(middle - 1 / half, middle + 1 / half)]
        alone = judged([claim()], cells)[0]
        assert alone.measurement.p_value == pytest.approx(0.03)
        assert alone.verdict == ("reproduced" if middle > 0 else "not reproduced")
        cells.append(
            cell("d/Same/J/m", [50.0 + shift for shift in (-1.0, 1.01, -1.0, 1.0)], weights="w")
        )
        others = [claim(left="d/Same/J/m", claim=f"other-{number}") for number in range(9)]
        among = judged([claim(), *others], cells)[0]
        assert among.measurement.q_value == pytest.approx(0.3)
        assert among.verdict == "inconclusive"
        assert "q is 0.3, more than 0.05: among many claims this can be chance" in among.reason


def test_many_seeds_can_be_reproduced_and_smaller_than_of_interest():
    """6 of 19 against none: more than by chance, and surely below 0.7."""
    seeds = list(range(1, 20))
    rates = plan(seeds, published=None, smallest=0.7, threshold=50.0, spread=None)
    cells = sides(
        [60.0 + i if i < 6 else 3.0 + i / 10 for i in range(19)], [3.0 + i / 10 for i in range(19)]
    )
    (outcome,) = judged([claim(measure="success_rate", unit="share of seeds")], cells, plan=rates)
    assert stats.fisher_exact([[6, 13], [0, 19]], alternative="greater").pvalue <= 0.05
    assert stats.binomtest(6, 19, alternative="less").proportion_ci(0.95, "exact").high < 0.7
    assert outcome.verdict == "reproduced" and outcome.reason.endswith("; smaller than of interest")


def draw_two_peaks(generator, shape, chance):
    """Seeds near 100 with this chance, else anywhere from 0 to 40, as on SCAN."""
    high = generator.random(shape) < chance
    return np.where(high, generator.uniform(95, 100, shape), generator.uniform(0, 40, shape))


@pytest.mark.parametrize("chance", [0.0, 0.25, 0.5, 0.75])
def test_the_interval_of_superiority_covers_the_chance_of_seeds_with_two_peaks(chance):
    """Either end is beyond the true chance in at most 2.5% of drawn sets of 12 seeds (and
    simulation error).
    """
    generator, trials = np.random.default_rng(int(100 * chance)), 1000
    truth = chance + (1 - chance) / 2  # right has no high peak
    above = below = 0
    for _ in range(trials):
        left, right = draw_two_peaks(generator, 12, chance), draw_two_peaks(generator, 12, 0.0)
        low, high = measure_superiority(left, right).compute_interval(0.975)
        above += low > truth
        below += high < truth
    assert max(above, below) / trials <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / trials)


FAILED = Cause(word="failed", sentence="train jump/new/a/seed-5 failed")


def with_cause(cells):
    """The cells of a claim, of whose left side seeds are not finished."""
    left, *others = cells
    return [replace(left, cause=FAILED), *others]


def test_a_claim_says_why_its_runs_are_not_finished():
    (outcome,) = judged([claim()], with_cause(sides(None, [1.0, 2.0])))
    assert (outcome.verdict, outcome.reason) == (
        "not run",
        "not run: train jump/new/a/seed-5 failed",
    )
    (outcome,) = judged([claim()], with_cause(difference_cells(2.0, 9.0)))
    assert outcome.verdict == "reproduced"
    assert outcome.reason.endswith("not run: train jump/new/a/seed-5 failed")
    (outcome,) = judged([claim()], with_cause(difference_cells(2.0, 9.0)), plan=plan(MANY))
    assert (outcome.verdict, outcome.reason) == (
        "no verdict",
        "4 of 8 seeds; not run: train jump/new/a/seed-5 failed",
    )


def test_two_seeds_without_spread_decide_nothing():
    """Each of four seeds above four others has a chance of 1 in 70, of two above two 1 in 6."""
    reason = "the 2 seeds of a side have the same value: an interval needs 4 of them"
    for cells in (sides([1.0, 1.0], [0.0, 0.0]), sides([3.0, 4.0], [1.0, 2.0], weights="w")):
        (outcome,) = judged([claim()], cells)
        assert (outcome.verdict, outcome.reason) == ("inconclusive", reason)
        assert outcome.measurement.interval is None
        assert outcome.measurement.p_value is None
    (outcome,) = judged([claim()], sides([1.0] * 4, [0.0] * 4))
    assert outcome.verdict == "reproduced"


def test_a_chance_is_compared_with_that_of_equal_sides():
    worse = [10.0, 20.0, 30.0, 40.0, 51.0]
    better = [50.0, 60.0, 70.0, 80.0, 90.0]
    entry = {"measure": "superiority", "unit": "chance"}
    (outcome,) = judged([claim(at_least=None, **entry)], sides(worse, better))
    assert outcome.measurement.effect.value == pytest.approx(0.04)
    assert outcome.verdict == "not reproduced"
    assert outcome.reason == "the whole interval is below 0.5, opposite to the claim"
    (outcome,) = judged([claim(at_least=None, **entry)], sides(better, worse))
    assert outcome.verdict == "reproduced"
    # A quarter of what the published chance is above that of equal sides.
    published = cell("d/Chance/J/m", printed=1.0)
    named = claim(at_least=None, published="d/Chance/J/m", **entry)
    (outcome,) = judged([named], [*sides(better, worse), published])
    assert outcome.comparison.smallest == 0.625


def test_the_q_value_of_a_precise_claim_is_that_of_its_margin():
    """The interval is between both bounds, and the verdict is by the margin alone."""
    cells = difference_cells(0.02, 0.52, printed=40.0)
    (alone,) = judged([claim()], cells)
    assert alone.reason == "smaller than of interest"
    error = 0.25 / stats.t.ppf(0.975, 3)
    assert alone.measurement.p_value == pytest.approx(2 * stats.t.sf(0.27 / error, 3))
    assert alone.measurement.p_value == pytest.approx(0.041, abs=0.001)
