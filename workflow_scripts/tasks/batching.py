"""Padded batches of sequence pairs, made once and reused in every epoch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.token_ids import EOS, PAD

MAX_CACHED_TOKENS = 100_000_000  # of 8 bytes each
CPU = torch.device("cpu")


@dataclass(frozen=True)
class TensorBatch:
    """Base class of all batches: a dataclass of CPU tensors that can be copied to a device.

    The first dimension of each tensor is that of the B examples.
    """

    def count_rows(self) -> int:
        """Return the number of examples."""
        first, *_ = fields(self)
        return len(getattr(self, first.name))

    def split(self, parts: int) -> list[Self]:
        """Return `parts` batches of about as many examples each, or one for each example.

        They have the padding of the whole batch, and share its memory.
        """
        parts = min(parts, self.count_rows())
        columns = [getattr(self, field.name).tensor_split(parts) for field in fields(self)]
        return [type(self)(*tensors) for tensors in zip(*columns, strict=True)]

    def to(self, device: torch.device) -> Self:
        """Copy the batch to `device`."""
        # `non_blocking`: the CPU makes the next batch while a GPU receives this one.
        tensors = [
            getattr(self, field.name).to(device, non_blocking=True) for field in fields(self)
        ]
        return type(self)(*tensors)


AnyBatch = TypeVar("AnyBatch", bound=TensorBatch)


class RowsBatch(NamedTuple, Generic[AnyBatch]):
    """A batch, and the rows [B] of its split that it holds."""

    rows: np.ndarray
    batch: AnyBatch


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
    """N ragged sequences, without EOS.

    Sequence i is ids[start[i] : start[i] + length[i]]. start and length are int64. ids keep the
    width of the file, since those of 36 million pairs must fit into memory.
    """

    ids: np.ndarray
    start: np.ndarray
    length: np.ndarray

    def __len__(self) -> int:
        return len(self.length)

    def pad(self, rows: np.ndarray) -> np.ndarray:
        """Return the sequences of `rows` [B], each followed by EOS and PAD: [B, longest + 1]."""
        length = self.length[rows]
        column = np.arange(length.max() + 1)
        # Positions after a sequence's end may point past the last id; they are overwritten below.
        position = np.minimum(self.start[rows][:, None] + column, max(len(self.ids) - 1, 0))
        if len(self.ids):
            table = self.ids[position].astype(np.int64)
        else:
            table = np.zeros((len(rows), len(column)), np.int64)
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
        source = self.source.pad(rows)
        target_out = self.target.pad(rows)
        first = np.full((len(rows), 1), EOS)
        target_in = np.concatenate([first, target_out[:, :-1]], axis=1)
        # The EOS of target_out would be an input after the end of shorter rows: pad it.
        target_in[np.arange(target_in.shape[1]) > self.target.length[rows][:, None]] = PAD
        return Batch(
            source=torch.from_numpy(source),
            target_in=torch.from_numpy(target_in),
            target_out=torch.from_numpy(target_out),
        )


def to_sequences(column: pa.ChunkedArray) -> RaggedSequences:
    """Convert a list<int> column. An empty list is a sequence of length 0."""
    lists = column.combine_chunks()
    # to_numpy() would load pandas.
    ids = np.from_dlpack(lists.flatten())
    offsets = np.from_dlpack(lists.offsets).astype(np.int64)
    return RaggedSequences(ids, offsets[:-1] - offsets[0], np.diff(offsets))


def bucket_by_length(
    source_length: np.ndarray,
    target_length: np.ndarray,
    batch_tokens: int,
    batch_sentences: int | None = None,
    shuffle_seed: int | None = None,
) -> list[np.ndarray]:
    """Return the rows of each batch, sorted by (source, target) length.

    A batch is filled while longest side x rows <= batch_tokens and rows <= batch_sentences. Rows of
    equal lengths keep their order, or have a random one with `shuffle_seed`: in a file that
    enumerates a grammar, neighbours are similar. Lengths [N] count EOS. Raises ValueError for an
    example longer than `batch_tokens`.
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
    max_rows = batch_tokens
    if batch_sentences:
        max_rows = min(batch_tokens, batch_sentences)
    batches = []
    first = 0
    while first < len(order):
        # No batch can have more rows, so this window holds the whole of the next one.
        cost = np.maximum.accumulate(longest[first : first + max_rows])
        cost *= np.arange(1, len(cost) + 1)
        count = int(np.searchsorted(cost, batch_tokens, side="right"))
        batches.append(order[first : first + count])
        first += count
    return batches


def find_file_order(batches: Sequence[RowsBatch[Any]]) -> np.ndarray:
    """Return the index [N] that puts the rows of all batches into the order of their file."""
    return np.argsort(np.concatenate([batch.rows for batch in batches]))


def bucket_texts(
    length: np.ndarray, batch_tokens: int, batch_sentences: int | None = None
) -> list[np.ndarray]:
    """Return the rows of each batch of texts with `length` tokens [N].

    The longest text may raise the budget.
    """
    batch_tokens = max(batch_tokens, int(length.max()))
    return bucket_by_length(length, np.zeros_like(length), batch_tokens, batch_sentences)


@dataclass(frozen=True)
class LazySequence(Sequence[Any]):
    """Batches `make(rows[i])` that are made at each access.

    All at once would take too much memory.
    """

    rows: Sequence[Any]
    make: Callable[[Any], Any]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.make(self.rows[index])


@dataclass(frozen=True)
class ShuffledBatches:
    """Batches of `size` examples, in a new order of all examples in each epoch.

    The last batch of an epoch may be smaller. `make` returns the batch of the examples with the
    numbers [B].
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
        starts = range(0, len(order), self.size)
        numbers = [order[start : start + self.size] for start in starts]
        return LazySequence(numbers, self.make)


def shuffle_examples(
    length: np.ndarray,
    batch_tokens: int,
    batch_sentences: int | None,
    make: Callable[[np.ndarray], Any],
) -> ShuffledBatches:
    """Return shuffled batches of `batch_sentences` examples with `length` tokens [N].

    Without `batch_sentences` a batch has as many examples as fit, whatever their lengths. Raises
    UserError if a batch of the longest examples would have more than `batch_tokens` tokens.
    """
    longest = int(length.max())
    size = batch_sentences or max(batch_tokens // longest, 1)
    if size * longest > batch_tokens:
        raise UserError(
            f"the longest example has {longest} tokens, and {size} of them are more than "
            f"{batch_tokens}; raise training.batch_tokens, or lower training.batch_sentences"
        )
    return ShuffledBatches(len(length), size, make)


def make_bucketed_batches(
    pairs: SequencePairs,
    batch_tokens: int,
    device: torch.device = CPU,
    shuffle_seed: int | None = None,
) -> Sequence[Batch]:
    """Make length-bucketed batches of all pairs on `device`.

    They are made once, or at each access if they have more than MAX_CACHED_TOKENS tokens.
    """
    source_length = pairs.source.length + 1
    target_length = pairs.target.length + 1
    rows_of_batches = bucket_by_length(
        source_length, target_length, batch_tokens, shuffle_seed=shuffle_seed
    )
    batches = LazySequence(rows_of_batches, lambda rows: pairs.make_batch(rows).to(device))
    tokens = int(pairs.source.length.sum() + 2 * pairs.target.length.sum())
    if tokens > MAX_CACHED_TOKENS:
        return batches
    return list(batches)
