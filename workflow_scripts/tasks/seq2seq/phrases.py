"""Phrases of source sentences, as spans for objectives over words if every word is one token."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.tasks.batching import PAD, Batch, RaggedSequences, SequencePairs

CONTINUES = 1  # mark of a token that belongs to the phrase of the token before it


@dataclass(frozen=True)
class PhraseBatch(Batch):
    """A batch with words [B, S] int64: the phrase, or word outside of phrases, of a source token.

    EOS is a word of its own; padding is -1.
    """

    words: Tensor


@dataclass(frozen=True)
class PhrasePairs(SequencePairs):
    """Pairs with `phrases`: sequences of the lengths of `source`, with CONTINUES or 0 at each source token."""

    phrases: RaggedSequences

    def make_batch(self, rows: np.ndarray) -> PhraseBatch:
        """Make one padded batch of the pairs of `rows`."""
        batch = super().make_batch(rows)
        words = torch.from_numpy((self.phrases.pad(rows) != CONTINUES).cumsum(axis=1) - 1)
        words = words.masked_fill(batch.source.eq(PAD), -1)
        return PhraseBatch(batch.source, batch.target_in, batch.target_out, words)


def mark_phrases(pairs: SequencePairs, sentences: Sequence[str], phrase: str) -> PhrasePairs:
    """Find the phrases in the sources `sentences` (tokens joined by one space) of the pairs.

    A phrase is a match of the regular expression `phrase` that begins and ends with whole tokens. Of overlapping
    matches the first counts. Raises UserError for an invalid regular expression.
    """
    try:
        whole_tokens = re.compile(rf"(?<!\S)(?:{phrase})(?!\S)")
    except re.error as error:
        raise UserError(f"phrases is {phrase!r}, not a regular expression: {error}") from error
    marks = np.zeros_like(pairs.source.ids)
    for start, sentence in zip(pairs.source.start.tolist(), sentences, strict=True):
        for match in whole_tokens.finditer(sentence):
            second = start + sentence.count(" ", 0, match.start()) + 1
            marks[second : second + match.group().count(" ")] = CONTINUES
    return PhrasePairs(pairs.source, pairs.target, RaggedSequences(marks, pairs.source.start, pairs.source.length))
