"""Sequence pairs of a data folder.

Their sources are words, or pieces of a pre-trained encoder. Phrases may be marked in them.
"""

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
from workflow_scripts.data.token_ids import PAD
from workflow_scripts.tasks.batching import Batch, RaggedSequences, SequencePairs, to_sequences

CONTINUES = 1  # mark of a token that belongs to the phrase of the token before it


def read_pairs(folder: Path, split: str, pieces: Any = None) -> SequencePairs:
    """Read the id columns of a split.

    With `pieces` (`find_pieces`) the sources are split into these. Raises UserError with file and
    row for a token outside the vocabulary.
    """
    if pieces is not None:
        table = pieces.tokenise(read_table(folder, split, ["source", "source_ids", "target_ids"]))
        return SequencePairs(to_sequences(table["source_ids"]), to_sequences(table["target_ids"]))
    vocabulary = read_vocabularies(folder)
    # One side after the other, because each is in memory twice while it is read.
    source = _read_side(folder, split, "source", len(vocabulary["source"]))
    target = _read_side(folder, split, "target", len(vocabulary["target"]))
    return SequencePairs(source, target)


def _read_side(folder: Path, split: str, side: str, vocabulary_size: int) -> RaggedSequences:
    column = f"{side}_ids"
    sequences = to_sequences(read_table(folder, split, [column])[column])
    ids = sequences.ids
    if ids.max(initial=0) >= vocabulary_size or ids.min(initial=0) < 0:
        place = int(np.argmax((ids >= vocabulary_size) | (ids < 0)))
        row = int(np.searchsorted(sequences.start, place, side="right")) - 1
        raise UserError(
            f"{folder / split}.parquet: row {row} has the {side} token {ids[place]}, "
            f"but vocabulary.json ends at {vocabulary_size - 1}; "
            f"delete {folder} and prepare it again"
        )
    return sequences


@dataclass(frozen=True)
class PhraseBatch(Batch):
    """A batch with words [B, S] int64: the phrase, or word outside of phrases, of a source token.

    EOS is a word of its own; padding is -1.
    """

    words: Tensor


@dataclass(frozen=True)
class PhrasePairs(SequencePairs):
    """Pairs with `phrases`: sequences of the lengths of `source`.

    They have CONTINUES or 0 at each source token.
    """

    phrases: RaggedSequences

    def make_batch(self, rows: np.ndarray) -> PhraseBatch:
        """Make one padded batch of the pairs of `rows`."""
        batch = super().make_batch(rows)
        begins_word = self.phrases.pad(rows) != CONTINUES
        words = torch.from_numpy(begins_word.cumsum(axis=1) - 1)
        words = words.masked_fill(batch.source.eq(PAD), -1)
        return PhraseBatch(batch.source, batch.target_in, batch.target_out, words)


def mark_phrases(pairs: SequencePairs, sentences: Sequence[str], phrase: str) -> PhrasePairs:
    """Find the phrases in the sources `sentences` (tokens joined by one space) of the pairs.

    A phrase is a match of the regular expression `phrase` that begins and ends with whole tokens.
    Of overlapping matches the first counts. Raises UserError for an invalid regular expression.
    """
    try:
        whole_tokens = re.compile(rf"(?<!\S)(?:{phrase})(?!\S)")
    except re.error as error:
        raise UserError(f"phrases is {phrase!r}, not a regular expression: {error}") from error
    marks = np.zeros_like(pairs.source.ids)
    for start, sentence in zip(pairs.source.start.tolist(), sentences, strict=True):
        for match in whole_tokens.finditer(sentence):
            first_token = start + sentence.count(" ", 0, match.start())
            last_token = first_token + match.group().count(" ")
            marks[first_token + 1 : last_token + 1] = CONTINUES
    phrases = RaggedSequences(marks, pairs.source.start, pairs.source.length)
    return PhrasePairs(pairs.source, pairs.target, phrases)
