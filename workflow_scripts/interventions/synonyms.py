"""Synonym replacement: how many answers of a model survive when words of the content change for synonyms.

Only the content is touched, never the template around it: the two are never put together here. Of a content of n words,
max(1, floor(rate * n)) are replaced, or all that have a candidate where those are fewer, so the realised share can lie
below the rate, and above it for short contents: it is returned with the text.

Every content has a random generator of its own, seeded by (seed, rate, item): the texts do not depend on the order or
the choice of the items.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from pydantic import Field

from workflow_scripts.checking import Strict
from workflow_scripts.errors import UserError
from workflow_scripts.interventions.candidates import Candidates
from workflow_scripts.interventions.lexical_vectors import plain
from workflow_scripts.interventions.synonym_rules import split_words
from workflow_scripts.schema import Seed

CONFIDENCE = 0.95


class Options(Strict):
    """What a synonym intervention does; the seeds only choose words and synonyms, the model stays as it is."""

    rates: list[float] = Field([0.25, 0.40], min_length=1, description="Shares of the words that are to change.")
    seeds: list[Seed] = Field([42, 123, 19, 7, 14, 23], min_length=1, description="One perturbed data set each.")
    may_be_label: bool = Field(False, description="Whether a word may become the item's own label (official code).")


def perturb(
    contents: Sequence[str],
    candidates: Candidates,
    rate: float,
    seed: int,
    *,
    items: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
) -> tuple[list[str], list[float]]:
    """Each content with some of its words replaced, and the share of its words that were.

    `candidates` is the table of `candidates.candidates_of`; `items` [N] are stable keys (without them, the contents
    themselves are); `labels` [N] are what no word may become, nor a part of what it becomes: without them nothing is
    excluded, as in the official code. Raises UserError for a rate outside (0, 1] or a content that the table lacks.
    """
    if not 0 < rate <= 1:
        raise UserError(f"synonyms: rate {rate} is not above 0 and up to 1; give a share of words such as 0.25")
    keys = contents if items is None else items
    texts, realised = [], []
    for content, key, label in zip(contents, keys, labels or [None] * len(contents), strict=True):
        if content not in candidates:
            raise UserError(f"synonyms: the table of candidates lacks the content of item {key!r}; make it again")
        text, share = _replace(content, allowed(candidates[content], label), rate, generator(seed, rate, key))
        texts.append(text)
        realised.append(share)
    return texts, realised


def generator(seed: int, rate: float, item: str) -> np.random.Generator:
    """The random generator of one item: a digest of what it is for is its seed."""
    name = json.dumps([seed, float(rate), item])
    return np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()))


def number_of_replacements(words: int, rate: float, eligible: int) -> int:
    """min(max(1, floor(rate * words)), eligible), where 0.29 of 100 words is 29."""
    return min(max(1, math.floor(Fraction(str(rate)) * words)), eligible)


def allowed(found: dict[int, list[str]], label: str | None) -> dict[int, list[str]]:
    """Position -> candidates without those that are the label or hold it as a word; none left, no position."""
    if label is None:
        return found
    banned = plain(label).strip()
    kept = {
        position: [c for c in texts if f" {banned} " not in f" {c} " and c.replace(" ", "") != banned.replace(" ", "")]
        for position, texts in found.items()
    }
    return {position: texts for position, texts in kept.items() if texts}


def _replace(
    content: str, eligible: dict[int, list[str]], rate: float, random: np.random.Generator
) -> tuple[str, float]:
    """Draw positions without replacement, then for each, from left to right, one of its candidates; both uniformly."""
    words = split_words(content)
    count = number_of_replacements(len(words), rate, len(eligible))
    if not count:
        return content, 0.0
    parts, end = [], 0
    for position in np.sort(random.choice(sorted(eligible), size=count, replace=False)):
        word, texts = words[position], eligible[int(position)]
        new = texts[random.integers(len(texts))]
        parts += [content[end : word.start], new[0].upper() + new[1:] if word.core[0].isupper() else new]
        end = word.start + len(word.core)
    return "".join([*parts, content[end:]]), count / len(words)


@dataclass(frozen=True)
class Spread:
    """A measure of spread with its 95% interval; None where it is undefined, inf where the data set no bound."""

    value: float | None
    low: float | None
    high: float | None
    n: int  # runs
    method: str


def coefficient_of_variation(values: Sequence[float]) -> Spread:
    """CV of eq. 13 over `values` [runs]: standard deviation (n - 1 below the line) over mean, with an interval.

    Interval: McKay's (1932) as modified by Vangel (1996, The American Statistician 50:21), for independent, normal
    runs and a CV under about a third. None for fewer than two runs or a mean that is not positive.
    """
    method = "95% interval by Vangel's modification of McKay's, over independent runs from a normal distribution"
    runs = np.asarray(values, dtype=float)
    n = len(runs)
    if n < 2 or not runs.mean() > 0:
        return Spread(None, None, None, n, method)
    value = float(runs.std(ddof=1) / runs.mean())
    low, high = (_vangel(value, n, probability) for probability in ((1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2))
    return Spread(value, low, high, n, method)


def cv_scores(prefix: str, values: Sequence[float], **where: Any) -> list[dict[str, Any]]:
    """Score rows `cv`, `cv_low` and `cv_high` over `values` [runs], each with `where`; none of what is undefined."""
    spread = coefficient_of_variation(values)
    found = {"cv": spread.value, "cv_low": spread.low, "cv_high": spread.high}
    what = {"unit": "ratio", "n": spread.n, **where}
    return [
        {"metric": prefix + name, "value": value, **what}
        for name, value in found.items()
        if value is not None and math.isfinite(value)
    ]


def _vangel(value: float, n: int, probability: float) -> float:
    from scipy import stats

    quantile = float(stats.chi2.ppf(probability, n - 1))
    below = ((quantile + 2) / n - 1) * value**2 + quantile / (n - 1)
    return value / math.sqrt(below) if below > 0 else math.inf


def variance_parts(values: np.ndarray) -> tuple[float | None, float | None]:
    """Variance between training seeds, and between the runs (synonym seeds) of one of them, of `values` [seeds, runs].

    One-way analysis of variance with random effects: the mean of the variances within a seed, and what the variance of
    the seeds' means exceeds its share of that by (0 if it does not). None where fewer than two values speak of it.
    """
    table = np.asarray(values, dtype=float)
    seeds, runs = table.shape
    within = float(table.var(axis=1, ddof=1).mean()) if runs > 1 else None
    if seeds < 2 or within is None:
        return None, within
    return max(0.0, float(table.mean(axis=1).var(ddof=1)) - within / runs), within
