"""Batches of sentence pairs with masked words.

Masks and false pairs are sampled each time a batch is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
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
from workflow_scripts.tasks.encoders import SelectedSequences, join_sentences
from workflow_scripts.tasks.masked_lm.sememe_lexicon import NONE, SememeLexicon

MASKED = 0.15  # share of the tokens that are predicted
BY_MASK = 0.8  # share of these that [MASK] replaces
BY_ANOTHER = 0.1  # share of these that another token replaces
# A false second sentence is chosen among this many of the next shorter and longer ones, so its
# length tells nothing.
NEIGHBOURS = 1000
IGNORED = -100  # the label of what is not predicted
SPECIAL_TOKENS_OF_PAIR = 3  # [CLS], and [SEP] twice


@dataclass(frozen=True)
class MaskedBatch(TensorBatch):
    """Pairs `[CLS] first [SEP] second [SEP]`, padded on the right.

    ids [B, S] int64: tokens with masks. types [B, S] int64: 1 from the second sentence on. labels
    [B, S] int64: the masked token, IGNORED elsewhere. real [B, S] bool, false on padding. follows
    [B] int64: 1 if the second sentence follows the first. share [B, S] float32: 1 / number of
    pieces on the pieces of a word whose sememes count, else 0. gold [B, S, M] int32: the sememes of
    the word of a piece, then NONE.
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
    """Orders of the pairs of a split.

    by_second [N]: rows sorted by the tokens of the second sentence. rank [N]: the position of each
    row in `by_second`. by_length [N]: rows sorted by the tokens of the pair. counts: the number of
    pairs with 0, 1, 2, ... tokens, without special ones.
    """

    by_second: np.ndarray
    rank: np.ndarray
    by_length: np.ndarray
    counts: np.ndarray


def compute_orders(first: RaggedSequences, second: RaggedSequences, limit: int) -> Orders:
    """Compute the orders of pairs of first and second sentences.

    The length of a pair is at most `limit` tokens, with the special ones; pairs of equal length are
    sorted by their second sentence.
    """
    by_second = np.argsort(second.length, kind="stable")
    rank = np.empty_like(by_second)
    rank[by_second] = np.arange(len(by_second))
    length = first.length + second.length
    cut_length = np.minimum(length + SPECIAL_TOKENS_OF_PAIR, limit)
    by_length = np.lexsort((second.length, cut_length))
    return Orders(by_second, rank, by_length, counts=np.bincount(length))


@dataclass(frozen=True)
class SentencePairs:
    """The pairs of a split, in the order of its file.

    limit: tokens of a pair, at most, with the three special ones. next_sentence: whether half of
    the pairs of a batch are false. lexicon: None without sememes. orders: computed from the lengths
    if not given.
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
            orders = compute_orders(self.first, self.second, self.limit)
            object.__setattr__(self, "orders", orders)

    def __len__(self) -> int:
        return len(self.first.length)

    @property
    def known_orders(self) -> Orders:
        """The orders, which are computed if they were not given."""
        assert self.orders is not None
        return self.orders

    def make_batch(self, rows: np.ndarray, rng: np.random.Generator) -> MaskedBatch:
        """Make a batch of the pairs of `rows`.

        `rng` samples the masks and the false second sentences.
        """
        follows = np.ones(len(rows), bool)
        partners = rows
        if self.next_sentence:
            follows = rng.random(len(rows)) < 0.5
            partners = np.where(follows, rows, self._choose_others(rows, rng))
        pairs = join_sentences(
            SelectedSequences(self.first, rows),
            SelectedSequences(self.second, partners),
            self.limit,
            self.vocabulary.special,
        )
        ids, labels = self._mask_words(pairs.ids, pairs.words, rng)
        share, gold = self._look_up_sememes(pairs.ids, pairs.words)
        return MaskedBatch(
            ids=torch.from_numpy(ids),
            types=torch.from_numpy(pairs.types),
            labels=torch.from_numpy(labels),
            real=torch.from_numpy(pairs.real),
            follows=torch.from_numpy(follows.astype(np.int64)),
            share=torch.from_numpy(share),
            gold=torch.from_numpy(gold),
        )

    def _mask_words(
        self, ids: np.ndarray, words: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (tokens with masks, labels) of a MaskedBatch; words [B, S] may be masked."""
        is_predicted = (rng.random(ids.shape) < MASKED) & words
        draws = rng.random(ids.shape)
        others = rng.choice(self.vocabulary.ordinary, ids.shape)
        masked = np.where(is_predicted & (draws < BY_MASK), self.vocabulary.mask, ids)
        masked = np.where(is_predicted & (draws >= 1 - BY_ANOTHER), others, masked)
        labels = np.where(is_predicted, ids, IGNORED)
        return masked, labels

    def _choose_others(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return for each row another row whose second sentence is about as long."""
        reach = min(NEIGHBOURS, len(self) // 2)
        if not reach:
            return rows
        step = rng.integers(1, reach + 1, len(rows)) * rng.choice((-1, 1), len(rows))
        rank = self.known_orders.rank[rows]
        other_rank = rank + step
        inside = (other_rank >= 0) & (other_rank < len(self))
        return self.known_orders.by_second[np.where(inside, other_rank, rank - step)]

    def _look_up_sememes(self, ids: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (share, gold) of a MaskedBatch, from the tokens without masks."""
        if self.lexicon is None:
            no_share = np.zeros(ids.shape, np.float32)
            no_sememes = np.zeros((*ids.shape, 0), np.int32)
            return no_share, no_sememes
        number, pieces, sememes = self.lexicon.look_up(ids, words, self.vocabulary.continues)
        counted = sememes[:, 0] != NONE
        share = np.zeros(ids.shape, np.float32)
        gold = np.full((*ids.shape, sememes.shape[1]), NONE, np.int32)
        share[words] = (counted / pieces)[number]
        gold[words] = sememes[number]
        return share, gold


def make_random_batches(
    pairs: SentencePairs, rows: Sequence[np.ndarray], device: torch.device
) -> LazySequence:
    """Return batches whose masks are sampled at each access.

    That is by numpy's global generator, which is saved with a run.
    """
    return LazySequence(rows, partial(_make_random_batch, pairs, device))


def _make_random_batch(pairs: SentencePairs, device: torch.device, rows: np.ndarray) -> MaskedBatch:
    seed = np.random.randint(2**32, size=4, dtype=np.uint32)
    return pairs.make_batch(rows, np.random.default_rng(seed)).to(device)


def bucket_pairs(
    pairs: SentencePairs, batch_tokens: int, batch_sentences: int | None
) -> Sequence[np.ndarray]:
    """Return the rows of each batch of similar length."""
    ends = find_batch_ends(pairs.known_orders.counts, pairs.limit, batch_tokens, batch_sentences)
    spans = [slice(begin, end) for begin, end in pairwise([0, *ends])]
    return LazySequence(spans, pairs.known_orders.by_length.__getitem__)


def find_batch_ends(
    counts: np.ndarray, limit: int, batch_tokens: int, batch_sentences: int | None
) -> list[int]:
    """Return the ends of the batches that `bucket_by_length` would make of the sorted rows.

    The rows are not read. counts[n]: number of rows of n tokens without special ones.
    """
    last = counts.cumsum()  # the end of the rows of each length
    width = np.minimum(np.arange(len(counts)) + SPECIAL_TOKENS_OF_PAIR, limit)
    fitting = max(batch_tokens, limit) // width
    ends = [0]
    while ends[-1] < last[-1]:
        shortest = int(np.searchsorted(last, ends[-1], side="right"))
        # For each length that may be the longest: the rows up to it, as many as fit. The largest
        # count is taken.
        count = int(np.minimum(fitting[shortest:], last[shortest:] - ends[-1]).max())
        if batch_sentences:
            count = min(count, batch_sentences)
        ends.append(ends[-1] + count)
    return ends[1:]


def make_fixed_batches(
    pairs: SentencePairs, batch_tokens: int, device: torch.device
) -> list[MaskedBatch]:
    """Make batches of all pairs with masks that are the same each time and for every run."""
    rng = np.random.default_rng(0)
    rows_of_batches = bucket_pairs(pairs, batch_tokens, None)
    return [pairs.make_batch(rows, rng).to(device) for rows in rows_of_batches]


def read_ordered_sentences(
    data: Path, split: str
) -> tuple[RaggedSequences, RaggedSequences, Orders | None]:
    """Map a split's first and second sentences and their orders into memory.

    A split without mapped files is read, and has no orders.
    """
    folder = locate_mapped_folder(data, split)
    if not folder.exists():
        first, second = read_sentence_ids(data, split)
        return first, second, None
    first, second = (_map_sequences(folder, side, data) for side in SIDES)
    orders = Orders(
        by_second=_map_array(folder, "by_second", data),
        rank=_map_array(folder, "rank", data),
        by_length=_map_array(folder, "by_length", data),
        counts=_map_array(folder, "counts", data),
    )
    return first, second, orders


def _map_sequences(folder: Path, side: str, data: Path) -> RaggedSequences:
    return RaggedSequences(
        ids=_map_array(folder, f"{side}_ids", data),
        start=_map_array(folder, f"{side}_start", data),
        length=_map_array(folder, f"{side}_length", data),
    )


def _map_array(folder: Path, name: str, data: Path) -> np.ndarray:
    file = folder / f"{name}.npy"
    try:
        return np.asarray(np.load(file, mmap_mode="r"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{file} cannot be read ({error}); delete {data} and prepare it again"
        ) from error


def read_sentence_ids(data: Path, split: str) -> tuple[RaggedSequences, RaggedSequences]:
    """Read the first and second sentences of a split into memory, without special tokens."""
    # One side after the other, because each is in memory twice while it is read.
    first = to_sequences(read_table(data, split, ["first_ids"])["first_ids"])
    second = to_sequences(read_table(data, split, ["second_ids"])["second_ids"])
    return first, second
