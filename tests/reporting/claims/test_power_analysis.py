"""Power of primary claims against simulation, noncentral t, and scipy's exact tests."""

import datetime

import numpy as np
import pytest
from scipy import stats

from workflow_scripts.config.analysis_plan import AnalysisPlan, FirstPlan, LaterPlan, PrimaryClaim
from workflow_scripts.evaluation.statistics import measure_superiority
from workflow_scripts.reporting.claims.power_analysis import (
    compute_mean_power,
    compute_power,
    compute_rates_power,
    count_seeds_to_decide,
    select_spread,
)

DRAWS = 40_000


def entry(**given) -> PrimaryClaim:
    spread = {"sd": given.pop("sd"), "freedom": 14, "paired": given.pop("paired")}
    return PrimaryClaim(claim="a-claim", spread=spread, **given)


def plan_of(claim: PrimaryClaim, count: int, **more: object) -> AnalysisPlan:
    """A plan with `count` primary claims, all like this one."""
    names = ["a-claim", *(f"another-{number}" for number in range(1, count))]
    content = {
        "scale": "small",
        "written": datetime.date(2026, 1, 31),
        "seeds": [*range(101, 121)],
        "pilots": {"seeds": [91, 92], "source": "scores.csv"},
        "primary": [claim.model_dump() | {"claim": name} for name in names],
        "stop": "all seeds, no more",
    }
    if more:
        return LaterPlan(**content, **more)
    return FirstPlan(**content, quantile=1 - 0.05 / count)


def simulated(claim: PrimaryClaim, truth: float, n: int, quantile: float) -> tuple[float, float]:
    """Shares of drawn sets of seeds that are reproduced, and not reproduced."""
    generator, sd = np.random.default_rng(1), claim.spread.sd
    if claim.spread.paired:
        effects = generator.normal(truth, sd, (DRAWS, n))
        mean, error, freedom = effects.mean(1), effects.std(1, ddof=1) / np.sqrt(n), n - 1
    else:
        left, right = generator.normal(truth, sd, (DRAWS, n)), generator.normal(0, sd, (DRAWS, n))
        parts = np.stack([left.var(1, ddof=1) / n, right.var(1, ddof=1) / n])
        freedom = parts.sum(0) ** 2 / (parts**2 / (n - 1)).sum(0)
        mean, error = left.mean(1) - right.mean(1), np.sqrt(parts.sum(0))
    half = stats.t.ppf(quantile, freedom) * error
    above, below = mean - half > claim.margin, mean + half < claim.smallest
    return above.mean(), (below & ~above).mean()


CASES = [
    entry(published=6.0, smallest=1.5, sd=1.0, paired=True),
    entry(margin=-2.0, smallest=-2.0, sd=0.8, paired=True),
    entry(published=15.0, smallest=3.75, sd=2.4, paired=False),
    entry(
        published=2.0, margin=1.0, smallest=3.0, sd=0.7, paired=False
    ),  # intervals fit between margin and smallest
]


@pytest.mark.parametrize("n", [4, 6, 9])
@pytest.mark.parametrize("claim", CASES)
def test_power_of_means_is_what_simulated_seeds_come_to(claim: PrimaryClaim, n: int):
    truths = (0.0, 2 * claim.margin if claim.published is None else claim.published / 2)
    for truth, power in zip(truths, compute_power(claim, n, plan_of(claim, 4)), strict=True):
        found = simulated(claim, truth, n, 0.9875)
        assert (power.reproduced, power.not_reproduced) == pytest.approx(found, abs=0.01), truth
        assert 0 <= power.reproduced + power.not_reproduced <= 1


def test_power_of_paired_means_is_noncentral_t():
    claim, n, quantile, truth = (
        entry(published=3.0, smallest=0.75, sd=1.3, paired=True),
        7,
        0.9833,
        1.0,
    )
    needed, error = stats.t.ppf(quantile, n - 1), 1.3 / np.sqrt(n)
    power = compute_mean_power(claim, claim.spread, truth, n, quantile)
    assert power.reproduced == pytest.approx(stats.nct.sf(needed, n - 1, truth / error), abs=1e-3)
    assert power.not_reproduced == pytest.approx(
        stats.nct.cdf(-needed, n - 1, (truth - 0.75) / error), abs=1e-3
    )


def test_power_of_success_rates_is_what_simulated_seeds_come_to():
    n, smallest, quantile = 8, 0.5, 0.9833
    generator = np.random.default_rng(2)
    for better, other in ((0.05, 0.05), (0.9, 0.1), (0.5, 0.2)):
        pairs, counts = np.unique(
            generator.binomial(n, [better, other], (4 * DRAWS, 2)), axis=0, return_counts=True
        )
        shares = {"reproduced": 0.0, "not": 0.0}
        for (ours, theirs), count in zip(pairs.tolist(), counts / counts.sum(), strict=True):
            table = [[ours, n - ours], [theirs, n - theirs]]
            limit = (
                stats.binomtest(ours, n, alternative="less")
                .proportion_ci(quantile, method="exact")
                .high
            )
            if ours > theirs and stats.fisher_exact(table, "greater").pvalue <= 1 - quantile:
                shares["reproduced"] += count
            elif limit < smallest:
                shares["not"] += count
        power = compute_rates_power(better, other, n, smallest, quantile)
        assert (power.reproduced, power.not_reproduced) == pytest.approx(
            tuple(shares.values()), abs=0.005
        )
        assert power.reproduced + power.not_reproduced <= 1


def test_eight_seeds_decide_on_success_rates_more_often_than_not():
    claim = PrimaryClaim(claim="a-claim", threshold=50.0, smallest=0.5)
    rare, works = compute_power(claim, 8, plan_of(claim, 3))
    assert (rare.truth, works.truth) == ("5:5%", "90:10%")
    assert rare.not_reproduced > 0.6 and works.reproduced > 0.8


LATER = {"unit": "a training", "device": "cpu", "seen": "the pilots"}


def test_later_plans_count_seeds_by_the_upper_limit_of_the_spread():
    """The 80% limit of a standard deviation of 14 degrees of freedom, by the chi-squared
    distribution.
    """
    claim = entry(published=6.0, smallest=1.5, sd=1.0, paired=True)
    claim = claim.model_copy(update={"measure": "difference", "base_rate": 50.0})
    upper = float(np.sqrt(14 / stats.chi2.ppf(0.2, 14)))
    first, later = plan_of(claim, 2), plan_of(claim, 2, **LATER)
    assert select_spread(first, claim).sd == 1.0
    assert select_spread(later, claim).sd == pytest.approx(upper)
    wider = claim.model_copy(update={"spread": claim.spread.model_copy(update={"sd": upper})})
    for ours, expected in zip(
        compute_power(claim, 7, later), compute_power(wider, 7, first), strict=True
    ):
        assert (ours.reproduced, ours.not_reproduced) == pytest.approx(
            (expected.reproduced, expected.not_reproduced)
        )


@pytest.mark.parametrize("claim", CASES)
def test_the_seeds_for_80_percent_are_the_fewest(claim: PrimaryClaim):
    plan = plan_of(claim, 2)
    for truth, enough in enumerate(count_seeds_to_decide(claim, plan)):
        assert enough is not None
        with_enough, with_fewer = (
            compute_power(claim, n, plan)[truth] for n in (enough, max(4, enough - 1))
        )
        assert with_enough.reproduced + with_enough.not_reproduced >= 0.8
        assert enough == 4 or with_fewer.reproduced + with_fewer.not_reproduced < 0.8


def test_an_effect_that_no_number_of_seeds_decides_has_none():
    claim = entry(published=1.0, smallest=0.25, sd=5.0, paired=False)
    assert count_seeds_to_decide(claim, plan_of(claim, 2)) == [None, None]


def test_power_of_superiority_is_that_of_shifted_normal_seeds():
    """Only ranks count: normal seeds with the same chance to be above have nearly the same power."""
    claim = PrimaryClaim(
        claim="a-claim", measure="superiority", margin=0.5, smallest=0.98, published=0.98
    )
    plan = plan_of(claim, 2, **LATER)
    none, half = compute_power(claim, 12, plan)
    # P(left > right) is 0.74
    generator, shift = (
        np.random.default_rng(5),
        np.sqrt(2) * stats.norm.ppf(0.74),
    )
    found = {"reproduced": 0, "not": 0}
    for left, right in generator.normal(0, 1, (2000, 2, 12)):
        low, high = measure_superiority(left + shift, right).compute_interval(0.975)
        found["reproduced"] += low > 0.5
        found["not"] += low <= 0.5 and high < 0.98
    assert (none.truth, half.truth) == ("0.5", "0.74")
    assert half.reproduced == pytest.approx(found["reproduced"] / 2000, abs=0.06)
    assert half.not_reproduced == pytest.approx(found["not"] / 2000, abs=0.06)
    assert none.reproduced <= 0.025 and none.not_reproduced > 0.9
