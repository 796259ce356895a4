"""Batches of sentence pairs with masked words. Masks and false pairs are sampled each time a batch is made."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.formats.mapped_pairs import SIDES, locate_mapped_folder
from workflow_scripts.data.prepared import read_table
from workflow_scripts.models.encoder.model import Vocabulary
from workflow_scripts.tasks.batching import LazySequence, RaggedSequences, TensorBatch, to_sequences
from workflow_scripts.tasks.encoders import join_sentences
from workflow_scripts.tasks.masked_lm.sememe_lexicon import NONE, SememeLexicon

MASKED, BY_MASK, BY_ANOTHER = 0.15, 0.8, 0.1  # shares of the tokens, and of the masked ones
# A false second sentence is chosen among this many of the next shorter and longer ones, so its length tells nothing.
NEIGHBOURS = 1000
IGNORED = -100  # the label of what is not predicted


@dataclass(frozen=True)
class MaskedBatch(TensorBatch):
    """Pairs `[CLS] first [SEP] second [SEP]`, padded on the right.

    ids [B, S] int64: tokens with masks. types [B, S] int64: 1 from the second sentence on. labels [B, S] int64: the
    masked token, IGNORED elsewhere. real [B, S] bool, false on padding. follows [B] int64: 1 if the second sentence
    follows the first. share [B, S] float32: 1 / number of pieces on the pieces of a word whose sememes count, else 0.
    gold [B, S, M] int32: the sememes of the word of a piece, then NONE.
    """

    ids: Tensor
    types: Tensor
    labels: Tensor
    real: Tensor
    follows: Tensor
    share: Tensor
    gold: Tensor


@dataclass(frozen=True)
class Orders:
    """Orders of the pairs of a split; see `data.formats.mapped_pairs`. All but `counts` are [N]."""

    by_second: np.ndarray
    rank: np.ndarray
    by_length: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class SentencePairs:
    """The pairs of a split, in the order of its file. `limit` counts tokens with the three special ones.

    next_sentence: whether half of the pairs of a batch are false. lexicon: None without sememes. orders: computed
    from the lengths if not given.
    """

    first: RaggedSequences
    second: RaggedSequences
    vocabulary: Vocabulary
    limit: int
    next_sentence: bool
    lexicon: SememeLexicon | None = None
    orders: Orders | None = None

    def __post_init__(self) -> None:
        if self.orders is None:
            by_second = np.argsort(self.second.length, kind="stable")
            rank = np.empty_like(by_second)
            rank[by_second] = np.arange(len(by_second))
            length = self.first.length + self.second.length
            by_length = np.lexsort((self.second.length, np.minimum(length + 3, self.limit)))
            object.__setattr__(
                self, "orders", Orders(by_second, rank, by_length, np.bincount(length))
            )

    def __len__(self) -> int:
        return len(self.first.length)

    def make_batch(self, rows: np.ndarray, rng: np.random.Generator) -> MaskedBatch:
        """Make a batch of the pairs of `rows`. `rng` samples the masks and the false second sentences."""
        follows, partners = np.ones(len(rows), bool), rows
        if self.next_sentence:
            follows = rng.random(len(rows)) < 0.5
            partners = np.where(follows, rows, self._others(rows, rng))
        known = self.vocabulary
        sides = (self.first, rows), (self.second, partners)
        ids, types, real, words = join_sentences(*sides, self.limit, known.cls, known.sep)
        chosen = (rng.random(ids.shape) < MASKED) & words
        how, other = rng.random(ids.shape), rng.choice(known.ordinary, ids.shape)
        seen = np.where(chosen & (how < BY_MASK), known.mask, ids)
        seen = np.where(chosen & (how >= 1 - BY_ANOTHER), other, seen)
        labels = np.where(chosen, ids, IGNORED)
        share, gold = self._sememes(ids, words)
        tables = (seen, types, labels, real, follows.astype(np.int64), share, gold)
        return MaskedBatch(*map(torch.from_numpy, tables))

    def _others(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return for each row another row whose second sentence is about as long."""
        reach = min(NEIGHBOURS, len(self) // 2)
        if not reach:
            return rows
        step = rng.integers(1, reach + 1, len(rows)) * rng.choice((-1, 1), len(rows))
        rank = self.orders.rank[rows]
        there = rank + step
        inside = (there >= 0) & (there < len(self))
        return self.orders.by_second[np.where(inside, there, rank - step)]

    def _sememes(self, ids: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (share, gold) of a MaskedBatch, from the tokens without masks."""
        if self.lexicon is None:
            return np.zeros(ids.shape, np.float32), np.zeros((*ids.shape, 0), np.int32)
        number, pieces, sememes = self.lexicon.look_up(ids, words, self.vocabulary.continues)
        counted = sememes[:, 0] != NONE
        share, gold = (
            np.zeros(ids.shape, np.float32),
            np.full((*ids.shape, sememes.shape[1]), NONE, np.int32),
        )
        share[words] = (counted / pieces)[number]
        gold[words] = sememes[number]
        return share, gold


def make_random_batches(
    pairs: SentencePairs, rows: Sequence[np.ndarray], device: torch.device
) -> LazySequence:
    """Return batches whose masks are sampled at each access, by numpy's global generator, which is saved with a run."""

    def make_batch(chosen: np.ndarray) -> MaskedBatch:
        seed = np.random.randint(2**32, size=4, dtype=np.uint32)
        return pairs.make_batch(chosen, np.random.default_rng(seed)).to(device)

    return LazySequence(rows, make_batch)


def bucket_pairs(
    pairs: SentencePairs, batch_tokens: int, batch_sentences: int | None
) -> Sequence[np.ndarray]:
    """Return the rows of each batch of similar length."""
    ends = find_batch_ends(pairs.orders.counts, pairs.limit, batch_tokens, batch_sentences)
    return LazySequence(
        list(pairwise([0, *ends])), lambda span: pairs.orders.by_length[slice(*span)]
    )


def find_batch_ends(
    counts: np.ndarray, limit: int, batch_tokens: int, batch_sentences: int | None
) -> list[int]:
    """Return the ends of the batches that `bucket_by_length` would make of the sorted rows, without reading them.

    counts[n]: number of rows of n tokens without special ones.
    """
    last = counts.cumsum()  # the end of the rows of each length
    width = np.minimum(np.arange(len(counts)) + 3, limit)
    fitting = max(batch_tokens, limit) // width
    ends = [0]
    while ends[-1] < last[-1]:
        shortest = int(np.searchsorted(last, ends[-1], side="right"))
        # For each length that may be the longest: the rows up to it, as many as fit. The largest count is taken.
        count = int(np.minimum(fitting[shortest:], last[shortest:] - ends[-1]).max())
        ends.append(ends[-1] + min(count, batch_sentences or count))
    return ends[1:]


def make_fixed_batches(
    pairs: SentencePairs, batch_tokens: int, device: torch.device
) -> list[MaskedBatch]:
    """Make batches of all pairs with masks that are the same each time and for every run."""
    rng = np.random.default_rng(0)
    return [
        pairs.make_batch(rows, rng).to(device) for rows in bucket_pairs(pairs, batch_tokens, None)
    ]


def read_ordered_sentences(
    data: Path, split: str
) -> tuple[RaggedSequences, RaggedSequences, Orders | None]:
    """Map a split's first and second sentences and their orders into memory; read it if it has no mapped files."""
    folder = locate_mapped_folder(data, split)
    if not folder.exists():
        return *read_sentence_ids(data, split), None

    def mapped(name: str) -> np.ndarray:
        try:
            return np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r"))
        except (OSError, ValueError) as error:
            raise UserError(
                f"{folder / name}.npy cannot be read ({error}); delete {data} and prepare it again"
            ) from error

    parts = ("ids", "start", "length")
    first, second = (
        RaggedSequences(*(mapped(f"{side}_{part}") for part in parts)) for side in SIDES
    )
    return first, second, Orders(*map(mapped, ("by_second", "rank", "by_length", "counts")))


def read_sentence_ids(data: Path, split: str) -> tuple[RaggedSequences, RaggedSequences]:
    """Read the first and second sentences of a split into memory, as ids without special tokens."""
    # One side after the other, because each is in memory twice while it is read.
    first, second = (
        to_sequences(read_table(data, split, [side])[side]) for side in ("first_ids", "second_ids")
    )
    return first, second
