"""Padded batches of sentences and sentence pairs for encoders."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.data.prepared import read_table
from workflow_scripts.models.encoder.model import PAD
from workflow_scripts.models.encoder.vocabulary import extract_vocabulary
from workflow_scripts.tasks.batching import RaggedSequences, TensorBatch, bucket_by_length

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class SentenceBatch(TensorBatch):
    """Items of T texts: T is 1 for a sentence or a pair, 2 for a pair whose sentences are read separately.

    ids, types [B, T, S] int64: `[CLS] first [SEP]` or `[CLS] first [SEP] second [SEP]`, padded; types are 1 from the
    second sentence on. real [B, T, S] bool, false on padding. label [B] float32: number of a class, or a score.
    """

    ids: Tensor
    types: Tensor
    real: Tensor
    label: Tensor


@dataclass(frozen=True)
class StateBatch:
    """Items as states of a frozen encoder: states [B, T, d], label [B] float32."""

    states: Tensor
    label: Tensor


@dataclass(frozen=True)
class Sentences:
    """The items of a split, in the order of its file.

    second: None for single sentences. apart: whether the sentences of a pair are separate texts. limit: maximum tokens
    of a text with special ones; cls, sep: their ids.
    """

    first: RaggedSequences
    second: RaggedSequences | None
    label: np.ndarray
    apart: bool
    limit: int
    cls: int
    sep: int

    def __len__(self) -> int:
        return len(self.label)

    @cached_property
    def length(self) -> np.ndarray:
        """Number of tokens of an item's longer text [N]."""
        one = self.first.length + 2
        if self.second is None:
            return np.minimum(one, self.limit)
        other = self.second.length + 2
        return np.minimum(np.maximum(one, other) if self.apart else one + other - 1, self.limit)

    def make_batch(self, rows: np.ndarray) -> SentenceBatch:
        """Make one padded batch of the items of `rows`."""
        width = int(self.length[rows].max())
        if self.apart:
            texts = [self._laid_out(sentences, None, rows, width) for sentences in (self.first, self.second)]
        else:
            texts = [self._laid_out(self.first, self.second, rows, width)]
        ids, types, real = (torch.from_numpy(np.stack(tables, 1)) for tables in zip(*texts, strict=True))
        return SentenceBatch(ids, types, real, torch.from_numpy(self.label[rows].astype(np.float32)))

    def _laid_out(
        self, first: RaggedSequences, second: RaggedSequences | None, rows: np.ndarray, width: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (ids, types, real), all [len(rows), width].

        Of a pair that is too long, the sentence with more than half of the room is cut, or both.
        """
        room = self.limit - (2 if second is None else 3)
        one, other = first.length[rows], np.zeros(len(rows), np.int64) if second is None else second.length[rows]
        one = np.minimum(one, np.maximum(room - other, room if second is None else (room + 1) // 2))
        other = np.minimum(other, room - one)
        column, middle = np.arange(width), one[:, None] + 1
        end = middle if second is None else middle + other[:, None] + 1
        real = column <= end
        ids = np.where(real, self.sep, PAD)
        ids[:, 0] = self.cls
        for sentences, begin, stop in ((first, np.ones_like(middle), middle), (second, middle + 1, end)):
            inside = (column >= begin) & (column < stop)
            if sentences is not None:
                position = sentences.start[rows][:, None] + column - begin
                ids[inside] = sentences.ids[position[inside]]
        return ids, (real & (column > middle)).astype(np.int64), real


def read_sentences(
    data: Path, split: str, tokenizer: "Tokenizer", tokenizer_file: Path, longest: int, apart: bool
) -> Sentences:
    """Read and tokenise the items of a split. `apart`: whether the sentences of a pair are separate texts."""
    table = read_table(data, split, ["first", "second", "label"])
    vocabulary = extract_vocabulary(tokenizer, tokenizer_file)
    tokenizer.enable_truncation(longest)  # no text has more room than that
    second = table["second"]
    return Sentences(
        tokenise_texts(tokenizer, table["first"].to_pylist()),
        None if second.null_count else tokenise_texts(tokenizer, second.to_pylist()),
        table["label"].to_numpy(),
        apart and not second.null_count,
        longest,
        vocabulary.cls,
        vocabulary.sep,
    )


def tokenise_texts(tokenizer: "Tokenizer", texts: Sequence[str]) -> RaggedSequences:
    """Tokenise texts without special tokens."""
    ids = [found.ids for found in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
    length = np.array([len(row) for row in ids], np.int64)
    return RaggedSequences(np.concatenate([*ids, [0]]).astype(np.int64), np.cumsum(length) - length, length)


def make_sentence_batches(
    sentences: Sentences, batch_tokens: int, batch_sentences: int | None, device: torch.device
) -> tuple[list[np.ndarray], list[SentenceBatch]]:
    """Return (rows of each batch, batches on `device`) of similar length; see `bucket_by_length`.

    A batch has at least one item, even if that has more tokens than allowed.
    """
    length = sentences.length
    rows = bucket_by_length(length, np.zeros_like(length), max(batch_tokens, int(length.max())), batch_sentences)
    return rows, [sentences.make_batch(chosen).to(device) for chosen in rows]
