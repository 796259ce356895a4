"""Synonym replacement: words of the content of a prompt, not of its template, are replaced by candidates.

In a content of n words, max(1, floor(rate * n)) words are replaced, or all words with candidates if these are fewer.
So the realised share can differ from the rate.

Every content has its own random generator, seeded by (seed, rate, item), so that the texts do not depend on the order
or the selection of items.
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

    `candidates` is from `candidates.read_candidates`. `items` [N] are stable keys (default: the contents).
    `labels` [N] are words that a replacement must not be or contain; without them nothing is excluded, as in the
    official code. Raises UserError for a content that the table lacks.
    """
    keys = contents if items is None else items
    texts, realised = [], []
    for content, key, label in zip(contents, keys, labels or [None] * len(contents), strict=True):
        if content not in candidates:
            raise UserError(
                f"synonyms: the table of candidates has no content of item {key!r}; rerun candidates"
            )
        eligible = candidates[content]
        if label is not None:
            banned = normalise_spelling(label).strip()
            joined = banned.replace(" ", "")
            kept = {
                position: [
                    c
                    for c in words_
                    if f" {banned} " not in f" {c} " and c.replace(" ", "") != joined
                ]
                for position, words_ in eligible.items()
            }
            eligible = {position: words_ for position, words_ in kept.items() if words_}
        name = json.dumps([seed, float(rate), key])
        random = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()))
        text, share = _replace(content, eligible, rate, random)
        texts.append(text)
        realised.append(share)
    return texts, realised


def _replace(
    content: str, eligible: dict[int, list[str]], rate: float, random: np.random.Generator
) -> tuple[str, float]:
    """Sample positions without replacement, then one candidate for each from left to right, both uniformly."""
    words = split_words(content)
    # Exact, so that 0.29 of 100 words is 29.
    count = min(max(1, math.floor(Fraction(str(rate)) * len(words))), len(eligible))
    if not count:
        return content, 0.0
    parts, end = [], 0
    for position in np.sort(random.choice(sorted(eligible), size=count, replace=False)):
        word, texts = words[position], eligible[int(position)]
        new = texts[random.integers(len(texts))]
        parts += [
            content[end : word.start],
            new[0].upper() + new[1:] if word.core[0].isupper() else new,
        ]
        end = word.start + len(word.core)
    return "".join([*parts, content[end:]]), count / len(words)
