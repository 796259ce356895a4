"""Look up the sememes of the words of a batch by their pieces."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.data.prepared import read_table
from workflow_scripts.tasks.batching import to_sequences

NONE = -1  # fills rows after the last sememe of a word
MAX_PIECES = 4096  # of a word


@dataclass(frozen=True)
class SememeLexicon:
    """The sememes of R words; the last row is that of all other words.

    keys [R] uint64, ascending: hashes of their pieces; sememes [R + 1, M] int32, filled with NONE; counts [R + 1].
    """

    keys: np.ndarray
    sememes: np.ndarray
    counts: np.ndarray

    def look_up(
        self, ids: np.ndarray, words: np.ndarray, continues: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (word number [n] of each token where `words` is true, pieces [W] and sememes [W, M] of each word).

        ids, words [B, S]; continues [V] bool; M is at least 1. A word begins with a piece that is no continuation, and
        after tokens that are no words.
        """
        flat = words.ravel()
        tokens = ids.ravel()[flat]
        after_word = np.concatenate([[False], flat[:-1]])[flat]
        begins = ~(continues[tokens] & after_word)
        number = np.cumsum(begins) - 1
        starts = np.flatnonzero(begins)
        pieces = np.bincount(number, minlength=len(starts))
        keys = hash_words(tokens, starts, number)
        row = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        known = self.keys[row] == keys if len(self.keys) else np.zeros(len(keys), bool)
        row = np.where(known, row, len(self.keys))
        most = max(int(self.counts[row].max(initial=0)), 1)
        return number, pieces, self.sememes[row, :most]


def hash_words(tokens: np.ndarray, starts: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Hash the sequence of pieces of each word: [W] uint64.

    tokens [n]; starts [W]: first token of each word; number [n]: word of each token. Two of a million words share a
    hash with a probability of 1 in 37 million.
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

    Words with an unknown piece and phrases are left out. If the tokenizer maps several keys to one word, only the key
    in the tokenizer's spelling counts: `be` is not a metal, `may` not a month. If no key has that spelling (`CD`, a
    disc, and `Cd`, cadmium), the word has the sememes of all keys. Raises UserError if a file is missing or broken.
    """
    names = read_json(data / "sememe_names.json")
    table = read_table(data, "sememes", ["word", "sememes"])
    found = to_sequences(table["sememes"])
    if (
        not isinstance(names, list)
        or found.ids.min(initial=0) < 0
        or found.ids.max(initial=0) >= len(names)
    ):
        raise UserError(
            f"{data}: sememes.parquet and sememe_names.json disagree; delete it and prepare it again"
        )
    unknown = tokenizer.token_to_id("[UNK]")
    words = table["word"].to_pylist()
    encoded = [tuple(row.ids) for row in tokenizer.encode_batch(words, add_special_tokens=False)]
    single = [
        (pieces, tokenizer.normalizer.normalize_str(word) == word, numbers)
        for word, pieces, numbers in zip(words, encoded, table["sememes"].to_pylist(), strict=True)
        if pieces and unknown not in pieces and " " not in word.strip()
    ]
    if not single:
        raise UserError(
            f"{data / 'sememes.parquet'}: the tokenizer knows no word; delete {data} and prepare it again"
        )
    as_written = {pieces for pieces, exact, _ in single if exact}
    known: dict[tuple[int, ...], set[int]] = {}
    for pieces, exact, numbers in single:
        if exact or pieces not in as_written:
            known.setdefault(pieces, set()).update(numbers)
    length = np.array([len(pieces) for pieces in known])
    starts = np.cumsum(length) - length
    tokens = np.concatenate([np.array(pieces) for pieces in known])
    keys, first = np.unique(
        hash_words(tokens, starts, np.arange(len(known)).repeat(length)), return_index=True
    )
    lists = [sorted(numbers) for numbers in known.values()]
    count = np.array([len(lists[row]) for row in first] + [0])
    sememes = np.full((len(first) + 1, max(int(count.max()), 1)), NONE, np.int32)
    for row, chosen in enumerate(first):
        sememes[row, : count[row]] = lists[chosen]
    return SememeLexicon(keys, sememes, count), len(names)
