"""Padded batches of sentences and sentence pairs for encoders."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.data.prepared import read_table
from workflow_scripts.models.encoder.model import extract_vocabulary
from workflow_scripts.models.hugging_face import load_tokenizer
from workflow_scripts.tasks.batching import RaggedSequences, TensorBatch, bucket_texts
from workflow_scripts.tasks.encoders import join_sentences
from workflow_scripts.tasks.sentence_prediction.settings import Settings


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
        sides = [(side, rows) for side in (self.first, self.second) if side is not None]
        texts = [(side, None) for side in sides] if self.apart or len(sides) == 1 else [sides]
        width = int(self.length[rows].max())
        tables = [join_sentences(*text, self.limit, self.cls, self.sep, width)[:3] for text in texts]
        ids, types, real = (torch.from_numpy(np.stack(each, 1)) for each in zip(*tables, strict=True))
        return SentenceBatch(ids, types, real, torch.from_numpy(self.label[rows].astype(np.float32)))


def read_sentences(spec: dict, positions: int, tokenizer_folder: Path, data: Path, split: str) -> Sentences:
    """Read and tokenise the items of a split; a text has at most `positions` tokens.

    Raises UserError if the run compares sentences and an item has only one.
    """
    settings = parse_as(Settings, spec["problem"], "problem")
    table, tokenizer = read_table(data, split, ["first", "second", "label"]), load_tokenizer(tokenizer_folder)
    vocabulary = extract_vocabulary(tokenizer, tokenizer_folder / "tokenizer.json")
    single, apart = bool(table["second"].null_count), settings.prediction == "cosine"
    if apart and single:
        raise UserError(f"{data / split}.parquet: items have one sentence, and prediction cosine compares two")
    limit = min(settings.longest, positions)
    tokenizer.enable_truncation(limit)

    def tokenise(texts: list[str]) -> RaggedSequences:
        ids = [found.ids for found in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        length = np.array([len(row) for row in ids], np.int64)
        return RaggedSequences(np.concatenate([*ids, [0]]).astype(np.int64), np.cumsum(length) - length, length)

    first, second = tokenise(table["first"].to_pylist()), None if single else tokenise(table["second"].to_pylist())
    return Sentences(first, second, table["label"].to_numpy(), apart, limit, vocabulary.cls, vocabulary.sep)


def make_sentence_batches(
    sentences: Sentences, batch_tokens: int, batch_sentences: int | None, device: torch.device
) -> tuple[list[np.ndarray], list[SentenceBatch]]:
    """Return (rows of each batch, batches on `device`) of similar length; see `bucket_texts`."""
    rows = bucket_texts(sentences.length, batch_tokens, batch_sentences)
    return rows, [sentences.make_batch(chosen).to(device) for chosen in rows]
