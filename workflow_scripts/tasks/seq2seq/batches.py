"""Sequence pairs of a data folder, whose sources are words or pieces of a pre-trained encoder, with marked phrases."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.prepared import read_table, read_vocabularies
from workflow_scripts.tasks.batching import PAD, Batch, RaggedSequences, SequencePairs, to_sequences

CONTINUES = 1  # mark of a token that belongs to the phrase of the token before it


def read_pairs(folder: Path, split: str, pieces: Any = None) -> SequencePairs:
    """Read the id columns of a split, or split sources into `pieces` (`find_pieces`) if they are given.

    Raises UserError with file and row for a token outside the vocabulary.
    """
    if pieces is not None:
        table = pieces.tokenise(read_table(folder, split, ["source", "source_ids", "target_ids"]))
        return SequencePairs(to_sequences(table["source_ids"]), to_sequences(table["target_ids"]))
    sides, vocabulary = [], read_vocabularies(folder)
    for side in ("source", "target"):
        # One side after the other, because each is in memory twice while it is read.
        found = to_sequences(read_table(folder, split, [f"{side}_ids"])[f"{side}_ids"])
        known = len(vocabulary[side])
        if found.ids.max(initial=0) >= known or found.ids.min(initial=0) < 0:
            place = int(np.argmax((found.ids >= known) | (found.ids < 0)))
            row = int(np.searchsorted(found.start, place, side="right")) - 1
            raise UserError(
                f"{folder / split}.parquet: row {row} has the {side} token {found.ids[place]}, but vocabulary.json "
                f"ends at {known - 1}; delete {folder} and prepare it again"
            )
        sides.append(found)
    return SequencePairs(*sides)


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
    return PhrasePairs(
        pairs.source, pairs.target, RaggedSequences(marks, pairs.source.start, pairs.source.length)
    )
