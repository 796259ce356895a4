"""What an analysis plan may say."""

import datetime

import pytest
from pydantic import ValidationError
from scipy import stats

from workflow_scripts.config.analysis_plan import FirstPlan, LaterPlan
from workflow_scripts.reporting.claims.power_analysis import compute_power

MEAN = {"published": 11.4, "smallest": 2.85, "spread": {"sd": 1.14, "freedom": 14, "paired": False}}


def plan(*primary: dict, **given: object) -> FirstPlan:
    content = {
        "scale": "small",
        "written": datetime.date(2026, 1, 31),
        "seeds": [101, 102, 103, 104, 105, 106],
        "pilots": {"seeds": [91, 92], "source": "scores.csv"},
        "quantile": 1 - 0.05 / len(primary),
        "primary": list(primary),
        "stop": "all seeds, no more",
    }
    return FirstPlan(**content | given)


def rates(claim: str, seeds: list[int], smallest: float) -> dict:
    return {"claim": claim, "seeds": seeds, "threshold": 50.0, "smallest": smallest}


def test_claims_about_rates_and_means_stand_side_by_side_with_seeds_of_their_own():
    found = plan(
        rates("addjump", [*range(101, 109)], 0.6),
        rates("around-right", [*range(101, 106)], 0.6),
        {
            "claim": "errors",
            "control": {"requires": [{"cell": "table2/SAL/BLEU/bleu", "at_least": 40.0}]},
            **MEAN,
        },
    )
    assert [len(found.select_seeds(entry)) for entry in found.primary] == [8, 5, 6]
    for entry in found.primary:
        for power in compute_power(entry, len(found.select_seeds(entry)), found):
            assert 0.3 < power.reproduced + power.not_reproduced <= 1


def test_a_published_chance_is_above_that_of_equal_sides():
    chance = {"measure": "superiority", "margin": 0.5, "smallest": 0.75}
    assert plan({"claim": "one", "published": 1.0, **chance}).primary[0].published == 1.0
    with pytest.raises(ValidationError, match=r"published is 0\.5, but the effect of equal sides"):
        plan({"claim": "one", "published": 0.5, **chance})


@pytest.mark.parametrize("quantile", [1.5, 1.0, 0.0, -1.0])
def test_a_written_quantile_is_a_share(quantile: float):
    with pytest.raises(ValidationError, match=r"quantile\n.* should be (less|greater) than"):
        plan(rates("one", [*range(101, 107)], 0.6), quantile=quantile)


@pytest.mark.parametrize(
    ("n", "smallest", "possible"),
    [(5, 0.5, False), (5, 0.57, True), (8, 0.5, True), (8, 0.4, False)],
)
def test_a_rate_must_be_able_to_be_not_reproduced(n: int, smallest: float, possible: bool):
    claims = [
        rates("one", [*range(101, 101 + n)], smallest),
        {"claim": "two", **MEAN},
        {"claim": "three", **MEAN},
    ]
    limit = (
        stats.binomtest(0, n, alternative="less").proportion_ci(1 - 0.05 / 3, method="exact").high
    )
    assert (limit < smallest) == possible
    if possible:
        assert plan(*claims)
    else:
        with pytest.raises(ValidationError, match=f"the share can still be {limit:.2f}"):
            plan(*claims)


def test_a_rate_must_be_able_to_be_reproduced():
    """Four of four against none of four has p = 1/70 by Fisher's exact test: too much for one of
    four claims.
    """
    others = [{"claim": name, **MEAN} for name in ("two", "three", "four")]
    assert plan(rates("one", [101, 102, 103, 104], 0.8), *others[:2])
    with pytest.raises(
        ValidationError, match="one has 4 seeds; with so few it could never be reproduced"
    ):
        plan(rates("one", [101, 102, 103, 104], 0.8), *others)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"quantile": 0.95}, "quantile is 0.95; with 2 primary claims it is 0.9750"),
        ({"seeds": [101, 102, 103]}, "3 seeds; a primary claim needs at least 4"),
        ({"seeds": [101, 102, 103, 91]}, "seed 91 is a pilot; planned seeds are fresh"),
        ({"secondary": ["two"]}, "claim two is named twice"),
        ({"draws": 1}, "greater than 1"),
    ],
)
def test_what_contradicts_itself_is_refused(given: dict, message: str):
    with pytest.raises(ValidationError, match=message):
        plan({"claim": "one", **MEAN}, {"claim": "two", **MEAN}, **given)


def test_a_plan_leaves_out_the_quantile_which_follows():
    """Plans of until 2026-11-23 may have it, rounded, and are judged by it as it is written."""
    three = [{"claim": name, **MEAN} for name in ("one", "two", "three")]
    assert plan(*three, quantile=None).limit_quantile == 1 - 0.05 / 3
    assert plan(*three, quantile=0.98333).limit_quantile == 0.98333
    assert (
        plan(*three, quantile=0.98333, written=datetime.date(2026, 11, 23)).limit_quantile
        == 0.98333
    )
    assert (
        plan(*three, quantile=None, written=datetime.date(2026, 11, 24)).limit_quantile
        == 1 - 0.05 / 3
    )
    with pytest.raises(ValidationError, match=r"quantile is 0\.98333; leave it out, it follows"):
        plan(*three, quantile=0.98333, written=datetime.date(2026, 11, 24))


ODDS = {"claim": "one", "measure": "log_odds", "base_rate": 30.0, "published": 0.8, "smallest": 0.4}
ODDS["spread"] = {"sd": 0.1, "freedom": 6, "paired": False}
CHANCE = {
    "claim": "two",
    "measure": "superiority",
    "margin": 0.5,
    "smallest": 0.7,
    "published": 0.9,
}


def later(*primary: dict, **given: object) -> LaterPlan:
    content = {
        "scale": "small",
        "written": datetime.date(2026, 1, 31),
        "seeds": [201, 202, 203, 204],
        "pilots": {"seeds": [61, 62], "source": "scores.csv"},
        "unit": "a training",
        "device": "cpu",
        "seen": "the pilots",
        "primary": list(primary),
        "stop": "all seeds, no more",
    }
    return LaterPlan(**content | given)


def test_the_level_of_a_later_plan_follows_from_its_claims():
    assert later(ODDS).limit_quantile == 0.95
    assert later(ODDS, CHANCE).limit_quantile == 0.975
    with pytest.raises(ValidationError, match="quantile"):
        later(ODDS, quantile=0.95)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (ODDS | {"measure": None}, "one has no measure"),
        (ODDS | {"base_rate": None}, "one has no base_rate"),
        (ODDS | {"spread": None}, "spread is missing; add that of the pilots"),
        (ODDS | {"control": {"perfect": 100.0}}, "one of measure log_odds has perfect"),
        (ODDS | {"smallest": 0.5}, "it must be margin \\+ q x published"),
        (CHANCE | {"margin": 0.0}, "both are chances"),
        (
            CHANCE | {"smallest": 0.65},
            "it must be margin \\+ q x published",
        ),  # 0.15 of 0.4 above 0.5
    ],
)
def test_a_later_plan_says_its_scale(changed: dict, message: str):
    with pytest.raises(ValidationError, match=message):
        later(changed)
