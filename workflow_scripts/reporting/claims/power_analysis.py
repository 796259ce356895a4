"""Power of primary claims, for the rules of `verdicts` and the spread of the pilots."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workflow_scripts.config.analysis_plan import (
    FEWEST_SEEDS,
    AnalysisPlan,
    LaterPlan,
    PrimaryClaim,
    Spread,
)

if TYPE_CHECKING:
    from workflow_scripts.evaluation.statistics import Effect

# Points of the quadratures: over the variance of the seeds, and over how it is shared out between
# two sides.
VARIANCES = 2000
SHARES = 60

# Success rates have no effect half as large as the published one that would say how both sides do.
# What is taken instead: both succeed as rarely as by luck, or the method works and the other side
# does not.
RARE = 0.05
OFTEN = 0.9

# Effects for which there is a power: none, and half the published one or twice the margin.
TRUTHS = 2
POWER = 0.8
MOST_SEEDS = 60  # per side: more are never planned
SIMULATIONS = 2000
SIMULATION_SEED = 20261127


@dataclass(frozen=True)
class Power:
    """Probability of either verdict if `truth` is the true effect."""

    truth: str
    reproduced: float
    not_reproduced: float


def compute_power(entry: PrimaryClaim, n: int, plan: AnalysisPlan) -> list[Power]:
    """Return the power with `n` seeds per side for each of the TRUTHS."""
    return [compute_power_at(number, entry, n, plan) for number in range(TRUTHS)]


def compute_power_at(number: int, entry: PrimaryClaim, n: int, plan: AnalysisPlan) -> Power:
    """Return the power with `n` seeds per side for one of the TRUTHS: 0 is no effect."""
    quantile = plan.limit_quantile
    if entry.counts_successes:
        better, other = ((RARE, RARE), (OFTEN, 1 - OFTEN))[number]
        return compute_rates_power(better, other, n, entry.smallest, quantile)
    if entry.published is None:
        some_effect = 2 * entry.margin
    else:
        half_published = (entry.published - entry.null) / 2
        some_effect = entry.null + half_published
    truth = (entry.null, some_effect)[number]
    if entry.measure == "superiority":
        return compute_superiority_power(entry, truth, n, quantile)
    return compute_mean_power(entry, select_spread(plan, entry), truth, n, quantile)


def select_spread(plan: AnalysisPlan, entry: PrimaryClaim) -> Spread:
    """Return the spread that the seeds were counted by: in later plans its upper limit."""
    if entry.spread is None:
        raise ValueError(f"{entry.claim} has no spread")
    if isinstance(plan, LaterPlan):
        return entry.spread.model_copy(update={"sd": entry.spread.compute_upper_limit()})
    return entry.spread


def count_seeds_to_decide(entry: PrimaryClaim, plan: AnalysisPlan) -> list[int | None]:
    """Return the fewest seeds with a power of 80% for each of the TRUTHS; None above MOST_SEEDS."""
    return [_count_seeds_at(truth, entry, plan) for truth in range(TRUTHS)]


def _count_seeds_at(truth: int, entry: PrimaryClaim, plan: AnalysisPlan) -> int | None:
    """Find the fewest seeds by halving, at one of the TRUTHS, by its number.

    None if even MOST_SEEDS are too few. The power of rank tests and of shares falls at some steps,
    so that fewer seeds may be enough there.
    """

    def is_decided(n: int) -> bool:
        """Whether n seeds reach either verdict with a probability of at least POWER."""
        power = compute_power_at(truth, entry, n, plan)
        return power.reproduced + power.not_reproduced >= POWER

    if not is_decided(MOST_SEEDS):
        return None
    too_few = FEWEST_SEEDS - 1
    enough = MOST_SEEDS
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if is_decided(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def compute_mean_power(
    entry: PrimaryClaim, spread: Spread, truth: float, n: int, quantile: float
) -> Power:
    """Power of a claim about means, by `b +- t(df; quantile) se`.

    spread: over seeds. Reproduced if the interval is above the margin, else not
    reproduced if it is below the smallest effect of interest. Seeds are normal; two unpaired sides
    have the same spread and `n` seeds each. (b - margin) / se is a noncentral t, computed as the
    mean over the distribution of se, since both limits must be checked together. Welch's df are
    (n - 1) / (r^2 + (1 - r)^2), with r the share of the first variance in their sum:
    Beta((n - 1) / 2, (n - 1) / 2).
    """
    import numpy as np
    from scipy.special import betaincinv, gammaincinv, ndtr, stdtrit

    n_variances = 1 if spread.paired else 2  # that are estimated
    error = spread.sd * math.sqrt(n_variances / n)  # true standard error of the effect
    freedom = (n - 1) * n_variances
    # Measured over true variance of the seeds, [variances].
    variance_ratio = 2 * gammaincinv(freedom / 2, _list_midpoints(VARIANCES)) / freedom
    t_freedom = np.array([n - 1.0])  # [shares]
    if not spread.paired:
        share = betaincinv((n - 1) / 2, (n - 1) / 2, _list_midpoints(SHARES))
        t_freedom = (n - 1) / (share**2 + (1 - share) ** 2)
    # Half of the width of the interval [shares, variances].
    half_width = stdtrit(t_freedom, quantile)[:, None] * error * np.sqrt(variance_ratio)
    lowest_reproduced = entry.margin + half_width
    highest_not_reproduced = np.minimum(entry.smallest - half_width, lowest_reproduced)
    reproduced = ndtr((truth - lowest_reproduced) / error)
    not_reproduced = ndtr((highest_not_reproduced - truth) / error)
    return Power(f"{truth:.3g}", float(reproduced.mean()), float(not_reproduced.mean()))


def compute_superiority_power(entry: PrimaryClaim, truth: float, n: int, quantile: float) -> Power:
    """Power of a claim about the chance that a seed is above one of the other side.

    Seeds are simulated. Only ranks count. Both sides have exponential distributions, those of
    Newcombe's variance, with means whose ratio is truth / (1 - truth); then P(left > right) is
    `truth`.
    """
    import numpy as np

    from workflow_scripts.evaluation.statistics import measure_superiority

    generator = np.random.default_rng(SIMULATION_SEED)
    ratio = truth / (1 - truth)
    alpha = 2 * (1 - quantile)  # two-sided p values below it are of bounds that are excluded
    reproduced = 0
    not_reproduced = 0
    for _ in range(SIMULATIONS):
        left = generator.exponential(ratio, n)
        right = generator.exponential(1.0, n)
        effect = measure_superiority(left, right)
        if effect.value > entry.margin and _is_excluded(effect, entry.margin, alpha):
            reproduced += 1
        elif effect.value < entry.smallest and _is_excluded(effect, entry.smallest, alpha):
            not_reproduced += 1
    return Power(f"{truth:.3g}", reproduced / SIMULATIONS, not_reproduced / SIMULATIONS)


def _is_excluded(effect: "Effect", bound: float, alpha: float) -> bool:
    """Whether the test of a bound rejects it: the interval is then beyond the bound.

    Finding the ends of the interval would take longer.
    """
    p_value = effect.compute_p_value(bound)
    return p_value is not None and p_value < alpha


def _list_midpoints(count: int) -> list[float]:
    """Return the middles of `count` equal parts of the range from 0 to 1."""
    return [(index + 0.5) / count for index in range(count)]


def compute_rates_power(
    better: float, other: float, n: int, smallest: float, quantile: float
) -> Power:
    """Power of a claim about success rates.

    It is summed over all outcomes of `n` seeds that succeed with these probabilities. Reproduced if
    Fisher's one-sided p is at most 1 - quantile, else not reproduced if the upper limit (Clopper
    and Pearson, one-sided) of the better side's rate is below `smallest`.
    """
    import numpy as np
    from scipy.stats import binom

    from workflow_scripts.evaluation.statistics import compute_fisher_p, compute_upper_limit

    ours, theirs = np.mgrid[: n + 1, : n + 1]  # successes of either side, all pairs
    chance = binom.pmf(ours, n, better) * binom.pmf(theirs, n, other)
    reproduced = compute_fisher_p(ours, n, theirs, n) <= 1 - quantile
    not_reproduced = ~reproduced & (compute_upper_limit(ours, n, quantile) < smallest)
    label = f"{100 * better:.0f}:{100 * other:.0f}%"
    return Power(label, float(chance[reproduced].sum()), float(chance[not_reproduced].sum()))
