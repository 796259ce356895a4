"""Statistics of few seeds: intervals, exact tests, Holm's correction, and a bootstrap over test examples.

The unit of replication is the training seed. Every function says what it assumes; `method` carries it to the report.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

CONFIDENCE = 0.95
RESAMPLES = 50_000  # permutations: all of them are gone through up to this number, so many are drawn above it
BOOTSTRAP_RESAMPLES = 10_000
GENERATOR_SEED = 20240609  # resampling has a generator of its own: reruns give the same p values

SEED_INTERVAL = (
    "95% interval by Student's t over seeds, taken as independent draws from a normal distribution "
    "(near 0 or 100 it can reach beyond)"
)


@dataclass(frozen=True)
class Summary:
    """Mean over seeds; `std` (n - 1 below the line) and the 95% interval are None for a single seed."""

    mean: float
    std: float | None
    n: int
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Effect:
    """An effect with its 95% interval and the p value of no effect at all; None where a side has a single seed."""

    value: float
    low: float | None
    high: float | None
    p_value: float | None
    smallest_p: float  # the least two-sided p that any outcome of so many seeds could have
    n: int  # seeds, of the side that has fewer
    method: str


def summarise(values: Sequence[float]) -> Summary:
    """Mean, standard deviation and 95% t interval of `values` [seeds], one value a seed."""
    mean, std, low, high = _t_interval(np.asarray(values, dtype=float))
    return Summary(mean, std, len(values), low, high)


def _t_interval(values: np.ndarray) -> tuple[float, float | None, float | None, float | None]:
    mean, n = float(values.mean()), len(values)
    if n < 2:
        return mean, None, None, None
    std = float(values.std(ddof=1))
    half = _t_quantile(n - 1) * std / math.sqrt(n)
    return mean, std, mean - half, mean + half


def _t_quantile(freedom: float) -> float:
    """Within plus and minus this lies CONFIDENCE of Student's t."""
    # What stats.t.ppf calls. All of scipy.stats would take as long to import as a table to make.
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def independent_difference(left: Sequence[float], right: Sequence[float]) -> Effect:
    """mean(left) - mean(right) of two independent sets of seeds, `left` [m] and `right` [n].

    Interval: Welch's (Satterthwaite's degrees of freedom), which assumes independent, normal seeds but not equal
    variances. It has no width when no seed differs from its side's mean. p: exact permutation test, which assumes
    that the labels of the seeds can be exchanged if the two sides do not differ; two-sided, twice the smaller tail.
    """
    a, b = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    value, n = float(a.mean() - b.mean()), min(len(a), len(b))
    smallest_p = _smallest_p(math.comb(len(a) + len(b), n))
    method = "95% interval by Welch's t, p by exact permutation of seeds; the seeds of both sides are independent"
    if n < 2:
        return Effect(value, None, None, None, smallest_p, n, method)
    half = welch_half_width(float(a.std(ddof=1)), len(a), float(b.std(ddof=1)), len(b))
    p_value = _permutation_p((a, b), lambda x, y, axis: x.mean(axis) - y.mean(axis), "independent")
    return Effect(value, value - half, value + half, p_value, smallest_p, n, method)


def welch_half_width(left_std: float, left_n: int, right_std: float, right_n: int) -> float:
    """Half of Welch's 95% interval of a difference of means, for at least two seeds a side."""
    parts = np.array([left_std**2 / left_n, right_std**2 / right_n])
    if not parts.any():
        return 0.0
    freedom = parts.sum() ** 2 / (parts**2 / [left_n - 1, right_n - 1]).sum()
    return _t_quantile(freedom) * math.sqrt(parts.sum())


def paired_difference(left: Sequence[float], right: Sequence[float]) -> Effect:
    """Mean of left - right over seeds, `left` and `right` [seeds] in one order: the values of a seed belong together.

    Interval: Student's t of the differences, which assumes that they are independent and normal.
    p: exact test over all changes of sign, which assumes that they are symmetric around 0 if there is no effect.
    """
    differences = np.asarray(left, dtype=float) - np.asarray(right, dtype=float)
    return _one_sample(differences, "95% interval by Student's t of the differences within seeds")


def difference_from_constant(values: Sequence[float], constant: float, constant_right: bool = True) -> Effect:
    """mean(values) - constant over `values` [seeds], or the other way round: the constant has no seeds.

    Interval and p as in `paired_difference`, with the same assumptions.
    """
    differences = (1 if constant_right else -1) * (np.asarray(values, dtype=float) - constant)
    return _one_sample(differences, "95% interval by Student's t of the seeds against a number that has none")


def _one_sample(differences: np.ndarray, interval: str) -> Effect:
    value, _, low, high = _t_interval(differences)
    n = len(differences)
    p_value = None if n < 2 else _permutation_p((differences,), lambda x, axis: x.mean(axis), "samples")
    return Effect(value, low, high, p_value, _smallest_p(2**n), n, f"{interval}, p by exact change of signs")


def _permutation_p(samples: tuple[np.ndarray, ...], statistic: Callable, kind: str) -> float:
    from scipy.stats import permutation_test

    def rounded(*resampled: np.ndarray, axis: int) -> np.ndarray:
        """Equal sums, added up in another order, differ in their last digits: they must count as equal."""
        return np.round(statistic(*resampled, axis=axis), 9)

    result = permutation_test(
        samples,
        rounded,
        permutation_type=kind,
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(GENERATOR_SEED),
    )
    return float(result.pvalue)


def association(left: np.ndarray, right: np.ndarray) -> Effect:
    """Mean over seeds of Kendall's tau-b between `left` and `right` [seeds, cells]: -1 where left falls as right rises.

    Interval: Student's t over the seeds' taus, each seed being one independent run through all cells. Ties keep tau-b
    from reaching 1; a seed in which a side does not vary at all counts as 0.
    p: exact, over all orders of the cells of `right` within each seed (drawn at random where there are too many).
    """
    left, right = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    seeds, cells = left.shape
    value, _, low, high = _t_interval(kendall_tau(left, right))
    total = math.factorial(cells) ** seeds
    if total <= RESAMPLES:
        within = np.array(list(permutations(range(cells))))  # [orders, cells]
        taus = np.stack([kendall_tau(a[None], b[within]) for a, b in zip(left, right, strict=True)])  # [seeds, orders]
        means = np.array([sum(choice) / seeds for choice in product(*taus)])
    else:
        generator = np.random.default_rng(GENERATOR_SEED)
        drawn = generator.permuted(np.broadcast_to(right, (RESAMPLES, seeds, cells)), axis=-1)
        means = np.append(kendall_tau(left, drawn).mean(-1), value)
    tails = ((means <= value + 1e-9).mean(), (means >= value - 1e-9).mean())
    return Effect(
        value,
        low,
        high,
        float(min(1.0, 2 * min(tails))),
        _smallest_p(total),
        seeds,
        "Kendall's tau over the cells, 95% interval by Student's t over seeds, p by exact permutation of the cells",
    )


def kendall_tau(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Kendall's tau-b over the last axis of `left` and `right` [..., cells]; 0 where a side does not vary."""
    first, second = np.triu_indices(left.shape[-1], k=1)
    rises = np.sign(left[..., first] - left[..., second])
    falls = np.sign(right[..., first] - right[..., second])
    scale = np.sqrt((rises**2).sum(-1) * (falls**2).sum(-1))
    concordance = (rises * falls).sum(-1)
    return np.divide(concordance, scale, out=np.zeros_like(concordance), where=scale > 0)


def _smallest_p(outcomes: int) -> float:
    """Least two-sided p of a permutation test with so many equally likely outcomes."""
    return min(1.0, 2 / min(outcomes, RESAMPLES + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction of `p_values` [tests]; it holds whatever the tests have in common."""
    order = np.argsort(p_values, kind="stable")
    adjusted = np.asarray(p_values, dtype=float)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(adjusted))
    return corrected.tolist()


def bootstrap_over_examples(
    left: np.ndarray, right: np.ndarray, resamples: int = BOOTSTRAP_RESAMPLES
) -> tuple[float, float]:
    """One-sided p that `left` is not better, and that it is not worse, than `right`: the paper's test (alpha 0.01).

    `left` [seeds, N] and `right` [seeds, N] hold 1 where an example was right. Paired bootstrap (Koehn 2004): the N
    examples are drawn anew with replacement, p is the share of draws in which left's mean does not lie above right's.
    It takes the examples as independent and the trained models as given: it says nothing about other seeds.
    """
    difference = left.mean(0) - right.mean(0)
    # An example matters only by its difference, so drawing counts of the distinct ones is drawing the examples.
    values, counts = np.unique(np.round(difference, 9), return_counts=True)
    generator = np.random.default_rng(GENERATOR_SEED)
    drawn = generator.multinomial(counts.sum(), counts / counts.sum(), size=resamples) @ values
    not_better, not_worse = (drawn <= 1e-6).sum(), (drawn >= -1e-6).sum()
    return float((1 + not_better) / (1 + resamples)), float((1 + not_worse) / (1 + resamples))
