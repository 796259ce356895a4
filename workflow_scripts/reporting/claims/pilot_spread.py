"""Spread over seeds of the pilots of a paper, from which a plan is made, without their means.

Whoever sees the mean of each method chooses margins by them. A standard deviation says nothing
about who is better.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_csv

# Rows of pilots with equal values in these columns differ in the seed alone.
SETTINGS = ("task", "method", "variant", "change", "trained_share", "updates")
CONFIDENCE = 0.8  # of the upper limit: a standard deviation of few seeds is often too small


@dataclass(frozen=True)
class SeedSpread:
    """Standard deviation over seeds, with its degrees of freedom and its upper 80% limit."""

    name: str
    sd: float
    freedom: int

    @property
    def upper(self) -> float:
        """The one-sided 80% limit of the true standard deviation, if seeds are normal."""
        from scipy.special import gammaincinv

        # The quantile of chi-square with f degrees of freedom is 2 gammaincinv(f / 2, probability).
        chi_square = 2 * float(gammaincinv(self.freedom / 2, 1 - CONFIDENCE))
        return self.sd * math.sqrt(self.freedom / chi_square)


def print_spreads(file: str, metric: str, log_odds: bool) -> None:
    """Print the spread over seeds of the pilots of a file: of each setting, and pooled."""
    rows = read_csv(file)
    if not rows:
        raise UserError(f"{file}: no pilots; name a file such as papers/lrf/pilots.csv")
    check_columns(rows, metric, file)
    spreads = measure_spreads(rows, metric, log_odds, file)
    width = max(len(spread.name) for spread in spreads)
    scale = f"{metric} in log odds" if log_odds else metric
    print(f"{scale}: standard deviation over seeds, degrees of freedom, upper 80% limit")
    for spread in spreads:
        print(f"{spread.name:{width}}  {spread.sd:8.4g}  {spread.freedom:3}  {spread.upper:8.4g}")


def check_columns(rows: Sequence[Mapping[str, str]], metric: str, file: str) -> None:
    """Raise UserError if pilots have no seeds or lack the metric, with the names of those there."""
    header = list(rows[0])
    if "seed" not in header:
        columns = ", ".join(header)
        raise UserError(f"{file}: has no column seed, but {columns}; docs/statistics.md: Pilots")
    if metric not in header:
        metrics = ", ".join(name for name in header if _is_metric(rows, name)) or "no metric"
        raise UserError(f"{file}: has no column {metric}; name one of its metrics: {metrics}")


def _is_metric(rows: Sequence[Mapping[str, str]], name: str) -> bool:
    """Whether a column has numbers that are scores."""
    if name in ("seed", *SETTINGS):
        return False
    values = [row[name] for row in rows if row[name]]
    return bool(values) and all(map(_is_number, values))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def measure_spreads(
    rows: Sequence[Mapping[str, str]], metric: str, log_odds: bool, file: str
) -> list[SeedSpread]:
    """Return the spread of each group of pilots with more than one seed, then that of all pooled.

    rows: those of `file`, with the column `seed`; rows without the metric do not count. log_odds:
    take ln(p / (100 - p)) of a percentage p. Raises UserError for a value that is no number or has
    no log odds, and for too few seeds.
    """
    scores: dict[str, dict[str, float]] = {}  # setting -> seed -> score
    for row in rows:
        if not row[metric]:
            continue
        name = ", ".join(row[key] for key in SETTINGS if row.get(key))
        by_seed = scores.setdefault(name, {})
        if row["seed"] in by_seed:
            raise UserError(f"{file}: two rows of {name} with seed {row['seed']}; remove one")
        by_seed[row["seed"]] = _read_score(row, metric, log_odds, file)
    spreads = []
    for name, by_seed in scores.items():
        if len(by_seed) > 1:
            sd = statistics.stdev(by_seed.values())
            spreads.append(SeedSpread(name, sd, freedom=len(by_seed) - 1))
    if not spreads:
        raise UserError(f"{file}: no setting has two seeds; run one more pilot of each")
    freedom = sum(spread.freedom for spread in spreads)
    variance = sum(spread.freedom * spread.sd**2 for spread in spreads) / freedom
    return [*spreads, SeedSpread("pooled", math.sqrt(variance), freedom)]


def _read_score(row: Mapping[str, str], metric: str, log_odds: bool, file: str) -> float:
    """Return the score of a pilot, on the scale that is asked for."""
    place = f"{file}: '{metric}' of seed {row['seed']}"
    try:
        value = float(row[metric])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{place} is '{row[metric]}'; name a column of numbers")
    if not log_odds:
        return value
    if not 0 < value < 100:
        raise UserError(f"{place} has no log odds; leave out --log-odds")
    return math.log(value / (100 - value))
