"""Statistics for few seeds.

Intervals, t tests, success rates, false-discovery rates, and a bootstrap over examples.

The unit of replication is the training seed. Every function states its assumptions; the field
`method` names them in the report.

SciPy's tests are imported where they are called: scipy.stats takes 0.3 s of CPU more than
scipy.special, too much for a command that builds one table. Only claims and `plan --power` call
them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

CONFIDENCE = 0.95
QUANTILE = (1 + CONFIDENCE) / 2  # of Student's t, for both ends of a two-sided interval
POWER = 0.8
BOOTSTRAP_RESAMPLES = 10_000
GENERATOR_SEED = 20240609  # resampling has its own generator, so reruns give the same p-values

SEED_INTERVAL = (
    "95% interval by Student's t over seeds, taken as independent draws from a normal distribution "
    "(near 0 or 100 it can reach beyond)"
)


Values = Sequence[float] | np.ndarray  # of seeds


@dataclass(frozen=True)
class Summary:
    """Mean over seeds. `std` (divided by n - 1) and the 95% interval are None for a single seed."""

    mean: float
    std: float | None
    n: int
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Effect:
    """An effect with its standard error and the degrees of freedom of Student's t.

    error, freedom: None if a side has one seed. n: number of seeds of the side with fewer seeds.
    """

    value: float
    error: float | None
    freedom: float | None
    n: int
    method: str

    @property
    def null(self) -> float:
        """The effect if both sides are alike."""
        return 0.0

    @property
    def is_without_spread(self) -> bool:
        """Whether no seed differs from its side, so that Student's t has no error."""
        return self.error == 0

    def compute_interval(self, quantile: float = QUANTILE) -> tuple[float, float] | None:
        """Return the interval value ± t(freedom; quantile) error; None for a single seed."""
        if self.error is None or self.freedom is None:
            return None
        # scipy.stats.t.ppf calls this function.
        from scipy.special import stdtrit

        half_width = float(stdtrit(self.freedom, quantile)) * self.error
        return self.value - half_width, self.value + half_width

    @property
    def low(self) -> float | None:
        """Lower end of the 95% interval."""
        interval = self.compute_interval()
        if interval is None:
            return None
        return interval[0]

    @property
    def high(self) -> float | None:
        """Upper end of the 95% interval."""
        interval = self.compute_interval()
        if interval is None:
            return None
        return interval[1]

    def compute_p_value(self, margin: float = 0.0) -> float | None:
        """Return the two-sided p-value of the t test that the effect equals `margin`.

        None for a single seed.
        """
        if self.error is None or self.freedom is None:
            return None
        distance = abs(self.value - margin)
        if self.error == 0:
            return float(distance == 0)
        from scipy.special import stdtr

        return float(2 * stdtr(self.freedom, -distance / self.error))

    def __neg__(self) -> "Effect":
        """Return the effect with the opposite sign."""
        return replace(self, value=-self.value)

    def estimate_seeds_to_decide(self, distance: float, quantile: float = QUANTILE) -> int | None:
        """Return the seeds per side at which the interval excludes a value at `distance`.

        That is with a power of 80%. Assumes the current mean and standard deviation: (z(quantile) +
        z(0.8))^2 (sd / distance)^2 + 2, and at least one seed more than now. None for a single
        seed, a standard error of 0 or a distance that is not positive.
        """
        if not self.error or distance <= 0:
            return None
        from scipy.special import ndtri

        needed = (ndtri(quantile) + ndtri(POWER)) ** 2 * self.error**2 * self.n / distance**2 + 2
        return max(self.n + 1, math.ceil(needed))


def summarise_seeds(values: Values) -> Summary:
    """Return mean, standard deviation and 95% t interval of `values` [seeds]."""
    effect = _measure_mean(np.asarray(values, dtype=float), method="")
    std = None
    if effect.error is not None:
        std = effect.error * math.sqrt(effect.n)
    return Summary(effect.value, std, effect.n, effect.low, effect.high)


def compare_independent(left: Values, right: Values) -> Effect:
    """Return mean(left) - mean(right) of two independent sets of seeds, `left` [m] and `right` [n].

    Welch's t with Satterthwaite's degrees of freedom; m + n - 2 if no seed differs from its side.
    Assumes independent, normal seeds, but not equal variances.
    """
    left_values = np.asarray(left, dtype=float)
    right_values = np.asarray(right, dtype=float)
    value = float(left_values.mean() - right_values.mean())
    m = len(left_values)
    n = len(right_values)
    fewer = min(m, n)
    method = "Welch's t over seeds; the seeds of both sides are independent"
    if fewer < 2:
        return Effect(value, None, None, fewer, method)
    left_part = left_values.var(ddof=1) / m
    right_part = right_values.var(ddof=1) / n
    variance = left_part + right_part
    divisor = left_part**2 / (m - 1) + right_part**2 / (n - 1)
    freedom = float(m + n - 2)
    if divisor > 0:
        freedom = float(variance**2 / divisor)
    return Effect(value, math.sqrt(variance), freedom, fewer, method)


def compare_paired(left: Values, right: Values) -> Effect:
    """Return the mean of left - right over seeds. `left` and `right` [seeds] have the same order.

    Student's t of the differences. Assumes that the differences are independent and normal.
    """
    differences = np.asarray(left, dtype=float) - np.asarray(right, dtype=float)
    return _measure_mean(differences, "Student's t of the differences within seeds")


def compare_with_constant(values: Values, constant: float, constant_right: bool = True) -> Effect:
    """Return mean(values) - constant over `values` [seeds].

    If not `constant_right`, return the negative.
    """
    differences = np.asarray(values, dtype=float) - constant
    if not constant_right:
        differences = -differences
    return _measure_mean(differences, "Student's t of the seeds against a number that has none")


def _measure_mean(values: np.ndarray, method: str) -> Effect:
    """Return the mean of `values` [seeds] with its standard error, for a t test of one sample."""
    mean = float(values.mean())
    n = len(values)
    if n < 2:
        return Effect(mean, None, None, n, method)
    error = float(values.std(ddof=1)) / math.sqrt(n)
    return Effect(mean, error, n - 1.0, n, method)


def measure_association(left: np.ndarray, right: np.ndarray) -> Effect:
    """Return the mean over seeds of Kendall's tau-b between `left` and `right` [seeds, cells].

    tau-b is 1 if left and right order the cells in the same way, ties included, and -1 for opposite
    orders. A seed with a constant side counts as 0. Student's t over the taus of the seeds. Assumes
    that each seed is an independent run through all cells.
    """
    taus = compute_kendall_tau(np.asarray(left, dtype=float), np.asarray(right, dtype=float))
    return _measure_mean(taus, "Kendall's tau over the cells, Student's t over seeds")


def compute_kendall_tau(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return Kendall's tau-b over the last axis of `left` and `right` [..., cells].

    It is 0 if a side is constant.
    """
    from scipy.stats import kendalltau

    # SciPy's decorator adds `axis`.
    association = kendalltau(left, right, axis=-1)  # pyright: ignore[reportCallIssue]
    return np.nan_to_num(association.statistic)


@dataclass(frozen=True)
class Superiority(Effect):
    """P(left > right) + P(left = right) / 2 for one seed of each side.

    value: the share of pairs of seeds in which left is above right (the Mann-Whitney statistic /
    `pairs`).
    error: its standard error by the ranks of the seeds (Brunner and Munzel 2000).
    freedom: Satterthwaite's, of that error.

    Its confidence interval is by inversion. The interval is the set of all p with |value - p| <=
    t(freedom; quantile) sqrt(k V(p)). V(p) is the variance of the Mann-Whitney statistic if both
    sides have exponential distributions (Newcombe 2006, method 5). It is too small where the sides
    spread differently: k = max(1, error^2 / V(value)) corrects this. Only ranks count, so seeds
    near 0 and near 100 need no normal distribution.
    """

    left_n: int = 0
    right_n: int = 0

    @property
    def null(self) -> float:
        """The chance if both sides are alike."""
        return 0.5

    @property
    def is_without_spread(self) -> bool:
        """Never: by ranks there is an interval even if all seeds of a side have one value."""
        return False

    @property
    def pairs(self) -> int:
        """Number of pairs of a seed of left and one of right."""
        return self.left_n * self.right_n

    def compute_variance(self, probability: float) -> float:
        """Return k V(probability), the variance of `value` if `probability` is the true one."""
        if self.error is None:
            raise ValueError("one seed has no variance")
        nearest = 0.5 / self.pairs  # V is 0 at 0 and at 1
        within = min(max(self.value, nearest), 1 - nearest)
        correction = max(1.0, self.error**2 / self._compute_exponential_variance(within))
        return correction * self._compute_exponential_variance(probability)

    def _compute_exponential_variance(self, probability: float) -> float:
        """Return V(p) = p (1 - p) (1 + N ((1 - p) / (2 - p) + p / (1 + p))) / (m n).

        N = (m + n) / 2 - 1.
        """
        p = probability
        N = (self.left_n + self.right_n) / 2 - 1
        return p * (1 - p) * (1 + N * ((1 - p) / (2 - p) + p / (1 + p))) / self.pairs

    def compute_interval(self, quantile: float = QUANTILE) -> tuple[float, float] | None:
        """Return the smallest and the largest probability that is not rejected.

        None for a single seed.
        """
        if self.error is None or self.freedom is None:
            return None
        from scipy.optimize import root_scalar
        from scipy.special import stdtrit

        factor = float(stdtrit(self.freedom, quantile))

        def measure_excess(probability: float) -> float:
            """Return by how much `value` is too far from a probability; 0 at a limit."""
            error = math.sqrt(self.compute_variance(probability))
            return abs(self.value - probability) - factor * error

        # V is 0 at 0 and at 1, which are no limits.
        low = 0.0
        if self.value > 0:
            below = self.value * (1 - 1e-9)
            low = float(root_scalar(measure_excess, bracket=(0.0, below)).root)
        high = 1.0
        if self.value < 1:
            above = 1 - (1 - self.value) * (1 - 1e-9)
            high = float(root_scalar(measure_excess, bracket=(above, 1.0)).root)
        return low, high

    def compute_p_value(self, margin: float = 0.5) -> float | None:
        """Return the two-sided p-value of the test that the probability is `margin`.

        None for a single seed.
        """
        if self.error is None or self.freedom is None:
            return None
        if not 0 < margin < 1:
            return float(self.value == margin)
        from scipy.special import stdtr

        distance = abs(self.value - margin) / math.sqrt(self.compute_variance(margin))
        return float(2 * stdtr(self.freedom, -distance))

    def __neg__(self) -> "Superiority":
        """Return P(right > left) + P(right = left) / 2."""
        return replace(self, value=1 - self.value, left_n=self.right_n, right_n=self.left_n)


def measure_superiority(left: Values, right: Values) -> Superiority:
    """Return how probably a seed of `left` [m] is above one of `right` [n].

    Equal values count as 1/2. Assumes independent seeds, of any distribution. The freedom is m + n
    - 2 if the variance is 0.
    """
    left_values = np.asarray(left, dtype=float)
    right_values = np.asarray(right, dtype=float)
    differences = np.sign(left_values[:, None] - right_values[None, :])
    above = (differences + 1) / 2  # [m, n]: 1, 1/2 or 0
    value = float(above.mean())
    m, n = above.shape
    fewer = min(m, n)
    method = (
        "chance that a seed is above one of the other side, interval by inversion of a rank test"
    )
    if fewer < 2:
        return Superiority(value, None, None, fewer, method, m, n)
    left_part = above.mean(axis=1).var(ddof=1) / m
    right_part = above.mean(axis=0).var(ddof=1) / n
    variance = left_part + right_part
    freedom = float(m + n - 2)
    if variance > 0:
        divisor = left_part**2 / (m - 1) + right_part**2 / (n - 1)
        freedom = float(variance**2 / divisor)
    return Superiority(value, math.sqrt(variance), freedom, fewer, method, m, n)


@dataclass(frozen=True)
class SuccessRates:
    """Numbers of successful and of all seeds, of the method (left) and its baseline (right)."""

    left: int
    left_n: int
    right: int
    right_n: int

    @property
    def difference(self) -> float:
        """Return the success rate of left minus that of right."""
        return self.left / self.left_n - self.right / self.right_n

    def compute_fisher_p(self) -> float:
        """Return the one-sided p-value of Fisher's exact test."""
        return float(compute_fisher_p(self.left, self.left_n, self.right, self.right_n))

    def compute_upper_limit(self, quantile: float) -> float:
        """Return the one-sided upper limit of left's success rate."""
        return float(compute_upper_limit(self.left, self.left_n, quantile))


def compute_fisher_p(
    left: int | np.ndarray, left_n: int, right: int | np.ndarray, right_n: int
) -> np.float64 | np.ndarray:
    """Return the one-sided p-value of Fisher's exact test.

    There are `left` of `left_n` and `right` of `right_n` successes. The p-value is the probability
    of at least as many successes on the left if both sides have the same success rate.
    """
    # scipy.stats.fisher_exact calls it, too, but takes one table at a time: `plan --power` asks for
    # thousands.
    from scipy.stats import hypergeom

    return hypergeom.sf(left - 1, left_n + right_n, left + right, left_n)


def compute_upper_limit(successes: int | np.ndarray, n: int, quantile: float) -> np.ndarray:
    """Return the one-sided upper limit of a success rate, after `successes` of `n`.

    It is that of Clopper and Pearson. With a probability of at least `quantile`, the limit is not
    below the true rate.
    """
    # scipy.stats.binomtest(...).proportion_ci finds the same number by bisection, in 850 instead of
    # 2 microseconds.
    from scipy.special import betaincinv

    limit = betaincinv(successes + 1, n - successes, quantile)
    return np.where(np.equal(successes, n), 1.0, limit)


def compute_q_values(p_values: Values) -> list[float]:
    """Return the q-value of each of `p_values` [tests].

    It is the lowest false-discovery rate at which a test is a discovery.
    """
    if not p_values:
        return []  # SciPy has no answer
    from scipy.stats import false_discovery_control

    return false_discovery_control(p_values).tolist()


def bootstrap_over_examples(
    left: np.ndarray, right: np.ndarray, resamples: int = BOOTSTRAP_RESAMPLES
) -> tuple[float, float]:
    """Return one-sided p-values for `left` not better, and not worse, than `right`.

    This is the paper's test (alpha 0.01). `left` and `right` [seeds, N] are 1 for a right example.
    Paired bootstrap (Koehn 2004): the N examples are sampled with replacement; p is the share of
    samples in which left's mean is not above (not below) right's. Assumes that the examples are
    independent and the trained models fixed, so it does not generalise to other seeds.
    """
    difference = left.mean(0) - right.mean(0)
    # Only an example's difference matters, so sampling counts of distinct differences equals
    # sampling examples.
    values, counts = np.unique(np.round(difference, 9), return_counts=True)
    generator = np.random.default_rng(GENERATOR_SEED)
    examples = counts.sum()
    samples = generator.multinomial(examples, counts / examples, size=resamples)
    sums = samples @ values
    not_better = (sums <= 1e-6).sum()
    not_worse = (sums >= -1e-6).sum()
    p_not_better = float((1 + not_better) / (1 + resamples))
    p_not_worse = float((1 + not_worse) / (1 + resamples))
    return p_not_better, p_not_worse
