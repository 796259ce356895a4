"""Texts as padded batches for causal language models."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.data.prepared import read_table
from workflow_scripts.models.causal_lm.model import EOS, PAD
from workflow_scripts.tasks.batching import RaggedSequences, TensorBatch, to_sequences


@dataclass(frozen=True)
class TextBatch(TensorBatch):
    """Texts, padded on the right: ids [B, S] int64 that end with EOS; real [B, S] bool, false on padding."""

    ids: Tensor
    real: Tensor


def read_text_pieces(data: Path, split: str, bos: int | None, limit: int) -> RaggedSequences:
    """Read the token ids of a split, with `bos` (if given) before and EOS after each text, cut into pieces.

    A piece has at most `limit` tokens.
    """
    texts = to_sequences(read_table(data, split, ["ids"])["ids"])
    extra = 1 + (bos is not None)
    # Lay all texts out in one row, each with its special tokens.
    length = texts.length + extra
    start = np.cumsum(length) - length
    ids = np.full(int(length.sum()), EOS, np.int64)
    inside = np.ones(len(ids), bool)
    inside[start + length - 1] = False
    if bos is not None:
        ids[start], inside[start] = bos, False
    ids[inside] = texts.ids
    pieces = -(-length // limit)
    which = np.repeat(np.arange(len(length)), pieces)
    number = np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    piece_length = np.minimum(length[which] - number * limit, limit)
    several = piece_length > 1  # a single token predicts nothing
    return RaggedSequences(ids, (start[which] + number * limit)[several], piece_length[several])


def pad_texts(texts: RaggedSequences, rows: np.ndarray) -> TextBatch:
    """Make one padded batch of the texts of `rows`."""
    length = texts.length[rows]
    real = np.arange(length.max()) < length[:, None]
    position = np.minimum(texts.start[rows][:, None] + np.arange(length.max()), len(texts.ids) - 1)
    return TextBatch(torch.from_numpy(np.where(real, texts.ids[position], PAD)), torch.from_numpy(real))
