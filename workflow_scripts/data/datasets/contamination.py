"""Contamination check: find items that models are evaluated on in pre-training texts."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.sources.archives import read_numbered_lines

SHORT, RUN = 6, 8  # words; a shorter text, such as `a small town`, may occur inside others by chance
MARKS = re.compile(r"[^\w\s]|_")


class Columns(NamedTuple):
    """Columns of the texts in a tab-separated file. `header` is the number of lines before the first item."""

    texts: tuple[int, ...]
    header: int = 0


SENTENCES = {
    "paws/paws_wiki_final_dev.noheader.tsv": Columns((1, 2)),
    "paws/paws_wiki_final_test.noheader.tsv": Columns((1, 2)),
    "sst2/dev.tsv": Columns((0,), header=1),
    "stsb/sts-dev.csv": Columns((5, 6)),
    "stsb/sts-test.csv": Columns((5, 6)),
}
PHRASES = {"bird/BiRD.txt": Columns((1, 2), header=1)}  # includes its ABBA pairs
SOURCES = (*SENTENCES, *PHRASES)


def normalise_words(text: str) -> tuple[str, ...]:
    """Normalise a text to lower-case words without accents, split at punctuation like BERT's tokenizer."""
    text = text.lower()
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    return tuple(MARKS.sub(" ", text).split())


def read_columns(path: Path, columns: Columns) -> Iterator[tuple[str, ...]]:
    """Yield the texts of each line. Raises UserError for a line with too few columns."""
    for number, line in read_numbered_lines(path):
        if number > columns.header:
            cells = line.split("\t")
            needed = max(columns.texts) + 1
            if len(cells) < needed:
                raise UserError(f"{path}:{number}: {len(cells)} columns, {needed} needed; fetch it again")
            yield tuple(cells[column] for column in columns.texts)


def iterate_ngrams(words: tuple[str, ...], lengths: Iterable[int]) -> Iterator[tuple[str, ...]]:
    """Yield all n-grams with one of the lengths."""
    return (words[i : i + n] for n in lengths for i in range(len(words) - n + 1))


class NgramIndex:
    """Word sequences that are looked up by their first SHORT words; shorter sequences are ignored."""

    def __init__(self, sequences: Iterable[tuple[str, ...]]):
        self.by_start: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for words in sequences:
            if len(words) >= SHORT:
                self.by_start.setdefault(words[:SHORT], set()).add(words)

    def is_part_of(self, words: tuple[str, ...]) -> bool:
        """Return whether a text contains one of the sequences."""
        return any(
            words[start : start + len(found)] == found
            for start, first in enumerate(iterate_ngrams(words, [SHORT]))
            for found in self.by_start.get(first, ())
        )


class EvaluationTexts:
    """Held-out sentences, and pairs of phrases that must not both occur in one text."""

    def __init__(self, sentences: Iterable[str], pairs: Iterable[tuple[str, str]]):
        self.whole = {normalise_words(sentence) for sentence in sentences}
        self.parts = NgramIndex(part for words in self.whole for part in iterate_ngrams(words, [min(len(words), RUN)]))
        self.partners: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for pair in pairs:
            first, second = map(normalise_words, pair)
            self.partners.setdefault(first, set()).add(second)
        phrases = {*self.partners, *(second for seconds in self.partners.values() for second in seconds)}
        self.lengths = {len(phrase) for phrase in phrases}

    def is_leaked_by(self, *texts: str) -> bool:
        """Return whether the texts contain a held-out sentence or pair.

        A text or their concatenation is a held-out sentence, or the concatenation contains one of at least SHORT words,
        shares RUN consecutive words with one, or contains both phrases of a pair.
        """
        parts = [normalise_words(text) for text in texts]
        words = tuple(chain.from_iterable(parts))
        if words in self.whole or not self.whole.isdisjoint(parts):
            return True
        if self.parts.is_part_of(words):
            return True
        phrases = set(iterate_ngrams(words, self.lengths))
        return any(not phrases.isdisjoint(self.partners[phrase]) for phrase in phrases & self.partners.keys())


def read_evaluation_texts(sources: dict[str, Path]) -> EvaluationTexts:
    """Read all items of SOURCES. Raises UserError if a source is missing or malformed."""
    if missing := [name for name in SOURCES if name not in sources]:
        raise UserError(f"the pre-training text must not hold items of {missing[0]}; name it in the task's sources")
    sentences = [
        text for name, columns in SENTENCES.items() for row in read_columns(sources[name], columns) for text in row
    ]
    return EvaluationTexts(
        sentences, [row for name, columns in PHRASES.items() for row in read_columns(sources[name], columns)]
    )
