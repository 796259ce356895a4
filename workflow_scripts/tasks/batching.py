"""Padded batches of sequence pairs, made once and reused in every epoch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from workflow_scripts.common.errors import UserError

PAD, EOS, UNK = 0, 2, 3
MAX_CACHED_TOKENS = 100_000_000  # of 8 bytes each
CPU = torch.device("cpu")


class TensorBatch:
    """Base class of all batches: a dataclass of CPU tensors that can be copied to a device."""

    def to(self, device: torch.device) -> Self:
        """Copy the batch to `device`."""
        # `non_blocking`: the CPU makes the next batch while a GPU receives this one.
        return type(self)(
            *(getattr(self, field.name).to(device, non_blocking=True) for field in fields(self))
        )


@dataclass(frozen=True)
class Batch(TensorBatch):
    """One padded batch of int64 ids. Rows end with EOS and are filled with PAD.

    source [B, S]; target_in [B, T] starts with EOS and is target_out [B, T] shifted right by one.
    """

    source: Tensor
    target_in: Tensor
    target_out: Tensor


@dataclass(frozen=True)
class RaggedSequences:
    """N ragged sequences: sequence i is ids[start[i] : start[i] + length[i]], without EOS.

    start and length are int64. ids keep the width of the file, since those of 36 million pairs must fit into memory.
    """

    ids: np.ndarray
    start: np.ndarray
    length: np.ndarray

    def __len__(self) -> int:
        return len(self.length)

    def pad(self, rows: np.ndarray) -> np.ndarray:
        """Return the sequences of `rows`, each followed by EOS and PAD: [len(rows), longest + 1] int64."""
        length = self.length[rows]
        column = np.arange(length.max() + 1)
        # Positions after a sequence's end may point past the last id; they are overwritten below.
        position = np.minimum(self.start[rows][:, None] + column, max(len(self.ids) - 1, 0))
        table = (
            self.ids[position].astype(np.int64)
            if len(self.ids)
            else np.zeros((len(rows), len(column)), np.int64)
        )
        table[column > length[:, None]] = PAD
        table[np.arange(len(rows)), length] = EOS
        return table


@dataclass(frozen=True)
class SequencePairs:
    """The sequence pairs of one split, in the order of its file."""

    source: RaggedSequences
    target: RaggedSequences

    def __len__(self) -> int:
        return len(self.source)

    def make_batch(self, rows: np.ndarray) -> Batch:
        """Make one padded batch of the pairs of `rows` [B]."""
        target_out = self.target.pad(rows)
        target_in = np.concatenate([np.full((len(rows), 1), EOS), target_out[:, :-1]], axis=1)
        # The EOS of target_out would be an input after the end of shorter rows: pad it.
        target_in[np.arange(target_in.shape[1]) > self.target.length[rows][:, None]] = PAD
        return Batch(
            *(torch.from_numpy(table) for table in (self.source.pad(rows), target_in, target_out))
        )


def to_sequences(column: pa.ChunkedArray) -> RaggedSequences:
    """Convert a list<int> column. An empty list is a sequence of length 0."""
    lists = column.combine_chunks()
    # to_numpy() would load pandas.
    ids, offsets = np.from_dlpack(lists.flatten()), np.from_dlpack(lists.offsets).astype(np.int64)
    return RaggedSequences(ids, offsets[:-1] - offsets[0], np.diff(offsets))


def bucket_by_length(
    source_length: np.ndarray,
    target_length: np.ndarray,
    batch_tokens: int,
    batch_sentences: int | None = None,
    shuffle_seed: int | None = None,
) -> list[np.ndarray]:
    """Return the rows of each batch, sorted by (source, target) length.

    A batch is filled while longest side x rows <= batch_tokens and rows <= batch_sentences. Rows of equal lengths keep
    their order, or have a random one with `shuffle_seed`: in a file that enumerates a grammar, neighbours are similar.
    Lengths [N] count EOS. Raises ValueError for an example longer than `batch_tokens`.
    """
    order = np.arange(len(source_length))
    if shuffle_seed is not None:
        order = np.random.default_rng(shuffle_seed).permutation(order)
    order = order[np.lexsort((target_length[order], source_length[order]))]
    longest = np.maximum(source_length, target_length)[order]
    if len(longest) and longest.max() > batch_tokens:
        raise ValueError(
            f"the longest example has {longest.max()} tokens, more than {batch_tokens}"
        )
    batches, first = [], 0
    while first < len(order):
        # No batch can have more rows, so this window holds the whole of the next one.
        cost = np.maximum.accumulate(
            longest[first : first + min(batch_tokens, batch_sentences or batch_tokens)]
        )
        cost *= np.arange(1, len(cost) + 1)
        count = int(np.searchsorted(cost, batch_tokens, side="right"))
        batches.append(order[first : first + count])
        first += count
    return batches


def bucket_texts(
    length: np.ndarray, batch_tokens: int, batch_sentences: int | None = None
) -> list[np.ndarray]:
    """Return the rows of each batch of texts with `length` tokens [N]; the longest text may raise the budget."""
    return bucket_by_length(
        length, np.zeros_like(length), max(batch_tokens, int(length.max())), batch_sentences
    )


@dataclass(frozen=True)
class LazySequence(Sequence[Any]):
    """Batches `make(rows[i])` that are made at each access, because all at once would take too much memory."""

    rows: Sequence[Any]
    make: Callable[[Any], Any]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        return self.make(self.rows[index])


@dataclass(frozen=True)
class ShuffledBatches:
    """Batches of `size` examples, the last one smaller, in a new order of all examples in each epoch.

    `make` returns the batch of the examples with the numbers [B].
    """

    examples: int
    size: int
    make: Callable[[np.ndarray], Any]

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        return -(-self.examples // self.size)

    def draw_epoch(self, rng: np.random.Generator) -> Sequence[Any]:
        """Return the batches of an epoch, each made when it is accessed."""
        order = rng.permutation(self.examples)
        return LazySequence(
            [order[first : first + self.size] for first in range(0, len(order), self.size)],
            self.make,
        )


def shuffle_examples(
    length: np.ndarray,
    batch_tokens: int,
    batch_sentences: int | None,
    make: Callable[[np.ndarray], Any],
) -> ShuffledBatches:
    """Return shuffled batches of `batch_sentences` examples with `length` tokens [N].

    Without `batch_sentences` a batch has as many examples as fit, whatever their lengths. Raises UserError if a batch
    of the longest examples would have more than `batch_tokens` tokens.
    """
    longest = int(length.max())
    size = batch_sentences or max(batch_tokens // longest, 1)
    if size * longest > batch_tokens:
        what = f"the longest example has {longest} tokens, and {size} of them are more than {batch_tokens}"
        raise UserError(f"{what}; raise training.batch_tokens, or lower training.batch_sentences")
    return ShuffledBatches(len(length), size, make)


def make_bucketed_batches(
    pairs: SequencePairs,
    batch_tokens: int,
    device: torch.device = CPU,
    shuffle_seed: int | None = None,
) -> Sequence[Batch]:
    """Make length-bucketed batches of all pairs on `device`, once, or at each access above MAX_CACHED_TOKENS tokens."""
    rows = bucket_by_length(
        pairs.source.length + 1, pairs.target.length + 1, batch_tokens, None, shuffle_seed
    )
    batches = LazySequence(rows, lambda chosen: pairs.make_batch(chosen).to(device))
    tokens = int(pairs.source.length.sum() + 2 * pairs.target.length.sum())
    return batches if tokens > MAX_CACHED_TOKENS else list(batches)
