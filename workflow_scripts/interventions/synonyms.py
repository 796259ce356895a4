"""Synonym replacement.

Words of the content of a prompt, not of its template, are replaced by candidates. In a content of n
words, max(1, floor(rate * n)) words are replaced, or all words with candidates if these are fewer.
So the realised share can differ from the rate.

Every content has its own random generator, seeded by (seed, rate, item), so that the texts do not
depend on the order or the selection of items.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from workflow_scripts.common.errors import UserError
from workflow_scripts.interventions.candidates import Candidates, split_words
from workflow_scripts.interventions.synonym_resources import normalise_spelling


def perturb(
    contents: Sequence[str],
    candidates: Candidates,
    rate: float,
    seed: int,
    *,
    items: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
) -> tuple[list[str], list[float]]:
    """Return each content with some words replaced, and the share of its words that were replaced.

    `candidates` is from `candidates.read_candidates`. `items` [N] are stable keys (default: the
    contents). `labels` [N] are words that a replacement must not be or contain; without them
    nothing is excluded, as in the official code. Raises UserError for a content that the table
    lacks.
    """
    keys = contents if items is None else items
    banned = labels or [None] * len(contents)
    texts = []
    shares = []
    for content, key, label in zip(contents, keys, banned, strict=True):
        if content not in candidates:
            raise UserError(
                f"synonyms: the table of candidates has no content of item {key!r}; "
                "rerun candidates"
            )
        eligible = candidates[content]
        if label is not None:
            eligible = _drop_label_candidates(eligible, label)
        text, share = _replace(content, eligible, rate, _make_generator(seed, rate, key))
        texts.append(text)
        shares.append(share)
    return texts, shares


def _drop_label_candidates(eligible: dict[int, list[str]], label: str) -> dict[int, list[str]]:
    """Leave out candidates that are or contain the label, and positions without another one.

    Spaces do not tell a candidate from the label, and the label is compared in plain spelling.
    """
    plain_label = normalise_spelling(label).strip()
    label_without_spaces = plain_label.replace(" ", "")
    allowed = {}
    for position, candidates in eligible.items():
        allowed_candidates = []
        for candidate in candidates:
            contains_label = f" {plain_label} " in f" {candidate} "
            equals_label = candidate.replace(" ", "") == label_without_spaces
            if not contains_label and not equals_label:
                allowed_candidates.append(candidate)
        if allowed_candidates:
            allowed[position] = allowed_candidates
    return allowed


def _make_generator(seed: int, rate: float, key: str) -> np.random.Generator:
    """Make the random generator of one content, of which `key` is the item."""
    name = json.dumps([seed, float(rate), key])
    digest = hashlib.sha256(name.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest))


def _replace(
    content: str, eligible: dict[int, list[str]], rate: float, random: np.random.Generator
) -> tuple[str, float]:
    """Return the content with some words replaced, and the share of its words that were.

    eligible: position -> candidates of the words that may be replaced.

    Positions are sampled without replacement, then one candidate for each from left to right, both
    uniformly.
    """
    words = split_words(content)
    # Exact, so that 0.29 of 100 words is 29.
    by_rate = math.floor(Fraction(str(rate)) * len(words))
    count = min(max(1, by_rate), len(eligible))
    if not count:
        return content, 0.0
    parts = []
    end = 0  # of the text that is in `parts`
    for position in np.sort(random.choice(sorted(eligible), size=count, replace=False)):
        word = words[position]
        candidates = eligible[int(position)]
        new = candidates[random.integers(len(candidates))]
        if word.core[0].isupper():
            new = new[0].upper() + new[1:]
        parts.append(content[end : word.start])
        parts.append(new)
        end = word.start + len(word.core)
    parts.append(content[end:])
    return "".join(parts), count / len(words)
