"""Phrases of source sentences: spans for objectives over words where every word is one token."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.tasks.batching import PAD, Batch, Pairs, Sequences

GOES_ON = 1  # of a token: it belongs to the phrase of the token before it


@dataclass(frozen=True)
class PhraseBatch(Batch):
    """words [B, S] int64: which phrase of its sentence, or word outside of phrases, a source token is part of; EOS is a
    word of its own, padding is -1."""

    words: Tensor


@dataclass(frozen=True)
class PhrasePairs(Pairs):
    """`phrases`: as many sequences as `source`, of the same lengths; GOES_ON or 0 at each source token."""

    phrases: Sequences

    def batch(self, rows: np.ndarray) -> PhraseBatch:
        """The pairs of `rows` as one padded batch."""
        batch = super().batch(rows)
        words = torch.from_numpy((self.phrases.padded(rows) != GOES_ON).cumsum(axis=1) - 1)
        words = words.masked_fill(batch.source.eq(PAD), -1)
        return PhraseBatch(batch.source, batch.target_in, batch.target_out, words)


def with_phrases(pairs: Pairs, sentences: Sequence[str], phrase: str) -> PhrasePairs:
    """The pairs, whose sources are `sentences` (tokens joined by one space), and the phrases in them.

    A phrase is a match of the regular expression `phrase` that begins and ends with whole tokens; of matches that
    overlap the first counts. Raises UserError when it is no regular expression.
    """
    try:
        whole_tokens = re.compile(rf"(?<!\S)(?:{phrase})(?!\S)")
    except re.error as error:
        raise UserError(f"phrases is {phrase!r}, not a regular expression: {error}") from error
    marks = np.zeros_like(pairs.source.ids)
    for start, sentence in zip(pairs.source.start.tolist(), sentences, strict=True):
        for match in whole_tokens.finditer(sentence):
            second = start + sentence.count(" ", 0, match.start()) + 1
            marks[second : second + match.group().count(" ")] = GOES_ON
    return PhrasePairs(pairs.source, pairs.target, Sequences(marks, pairs.source.start, pairs.source.length))
