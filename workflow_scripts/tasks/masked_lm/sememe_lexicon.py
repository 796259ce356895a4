"""Look up the sememes of the words of a batch by their pieces."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.prepared import read_table
from workflow_scripts.tasks.batching import to_sequences

NONE = -1  # fills rows after the last sememe of a word
MAX_PIECES = 4096  # of a word


@dataclass(frozen=True)
class SememeLexicon:
    """The sememes of R words; the last row is that of all other words.

    keys [R] uint64, ascending: hashes of their pieces; sememes [R + 1, M] int32, filled with NONE;
    counts [R + 1].
    """

    keys: np.ndarray
    sememes: np.ndarray
    counts: np.ndarray

    def look_up(
        self, ids: np.ndarray, words: np.ndarray, continues: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (word number [n] of each token, pieces [W] and sememes [W, M] of each word).

        The n tokens are those where `words` is true. ids, words [B, S]; continues [V] bool; M is at
        least 1. A word begins with a piece that is no continuation, and after tokens that are no
        words.
        """
        is_word = words.ravel()
        tokens = ids.ravel()[is_word]
        after_word = np.concatenate([[False], is_word[:-1]])[is_word]
        begins = ~(continues[tokens] & after_word)
        number = np.cumsum(begins) - 1
        starts = np.flatnonzero(begins)
        pieces = np.bincount(number, minlength=len(starts))
        keys = hash_words(tokens, starts, number)
        row = self._find_rows(keys)
        most = max(int(self.counts[row].max(initial=0)), 1)
        return number, pieces, self.sememes[row, :most]

    def _find_rows(self, keys: np.ndarray) -> np.ndarray:
        """Return the row of each word, by its hash: that of all other words if there is none."""
        row_of_others = len(self.keys)
        if not row_of_others:
            return np.zeros(len(keys), np.int64)
        row = np.minimum(np.searchsorted(self.keys, keys), row_of_others - 1)
        return np.where(self.keys[row] == keys, row, row_of_others)


def hash_words(tokens: np.ndarray, starts: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Hash the sequence of pieces of each word: [W] uint64.

    tokens [n]; starts [W]: first token of each word; number [n]: word of each token. Two of a
    million words share a hash with a probability of 1 in 37 million.
    """
    if not len(starts):
        return np.empty(0, np.uint64)
    place = np.arange(len(tokens)) - starts[number]
    value = (tokens * MAX_PIECES + place).astype(np.uint64)
    # The mixing function of SplitMix64.
    value += np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.add.reduceat(value ^ (value >> np.uint64(31)), starts)


def read_sememe_lexicon(data: Path, tokenizer: Tokenizer) -> tuple[SememeLexicon, int]:
    """Read (single words of sememes.parquet as pieces of the tokenizer, number of sememes).

    Words with an unknown piece and phrases are left out. If the tokenizer maps several keys to one
    word, only the key in the tokenizer's spelling counts: `be` is not a metal, `may` not a month.
    If no key has that spelling (`CD`, a disc, and `Cd`, cadmium), the word has the sememes of all
    keys. Raises UserError if a file is missing or broken.
    """
    names = read_json(DataFolder(data).sememe_names)
    table = read_table(data, "sememes", ["word", "sememes"])
    sememes = to_sequences(table["sememes"]).ids
    if (
        not isinstance(names, list)
        or sememes.min(initial=0) < 0
        or sememes.max(initial=0) >= len(names)
    ):
        raise UserError(
            f"{data}: sememes.parquet and sememe_names.json disagree; "
            "delete it and prepare it again"
        )
    entries = _list_single_words(table, tokenizer)
    if not entries:
        raise UserError(
            f"{data / 'sememes.parquet'}: the tokenizer knows no word; "
            f"delete {data} and prepare it again"
        )
    return _build_lexicon(_merge_spellings(entries)), len(names)


@dataclass(frozen=True)
class LexiconEntry:
    """A key of sememes.parquet: its pieces, and its sememes.

    is_exact: whether the key is in the tokenizer's spelling.
    """

    pieces: tuple[int, ...]
    is_exact: bool
    sememes: list[int]


def _list_single_words(table: pa.Table, tokenizer: Tokenizer) -> list[LexiconEntry]:
    """Return the entries without those of phrases and of words with an unknown piece."""
    unknown = tokenizer.token_to_id("[UNK]")
    words = table["word"].to_pylist()
    encoded = tokenizer.encode_batch(words, add_special_tokens=False)
    entries = []
    for word, encoding, sememes in zip(words, encoded, table["sememes"].to_pylist(), strict=True):
        pieces = tuple(encoding.ids)
        is_phrase = " " in word.strip()
        if pieces and unknown not in pieces and not is_phrase:
            is_exact = tokenizer.normalizer.normalize_str(word) == word
            entries.append(LexiconEntry(pieces, is_exact, sememes))
    return entries


def _merge_spellings(entries: list[LexiconEntry]) -> dict[tuple[int, ...], set[int]]:
    """Return the sememes of each word, by its pieces.

    They are those of its entries in the tokenizer's spelling, or of all its entries if none is.
    """
    with_exact_key = {entry.pieces for entry in entries if entry.is_exact}
    sememes_of_word: dict[tuple[int, ...], set[int]] = {}
    for entry in entries:
        if entry.is_exact or entry.pieces not in with_exact_key:
            sememes_of_word.setdefault(entry.pieces, set()).update(entry.sememes)
    return sememes_of_word


def _build_lexicon(sememes_of_word: dict[tuple[int, ...], set[int]]) -> SememeLexicon:
    """Build the lexicon of at least one word: pieces -> sememes.

    Of words with equal hashes only one is in it.
    """
    words = list(sememes_of_word)
    length = np.array([len(pieces) for pieces in words])
    starts = np.cumsum(length) - length
    tokens = np.concatenate([np.array(pieces) for pieces in words])
    word_of_token = np.arange(len(words)).repeat(length)
    keys, word_of_key = np.unique(hash_words(tokens, starts, word_of_token), return_index=True)
    rows = [sorted(sememes_of_word[words[word]]) for word in word_of_key]
    rows.append([])  # of all other words
    counts = np.array([len(row) for row in rows])
    sememes = np.full((len(rows), max(int(counts.max()), 1)), NONE, np.int32)
    for number, row in enumerate(rows):
        sememes[number, : len(row)] = row
    return SememeLexicon(keys, sememes, counts)
