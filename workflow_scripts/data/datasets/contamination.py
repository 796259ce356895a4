"""Contamination check: find items that models are evaluated on in pre-training texts."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets.sentences import read_tsv

SHORT = 6  # words; a shorter text, such as `a small town`, may occur inside others by chance
RUN = 8  # words
MARKS = re.compile(r"[^\w\s]|_")


# Columns of files without a header line.
PAWS = ("id", "sentence1", "sentence2", "label")
STSB = ("genre", "source", "year", "id", "score", "sentence1", "sentence2")
# Source -> (columns with the texts, all columns if the file has no header line).
SENTENCES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "paws/paws_wiki_final_dev.noheader.tsv": (PAWS[1:3], PAWS),
    "paws/paws_wiki_final_test.noheader.tsv": (PAWS[1:3], PAWS),
    "sst2/dev.tsv": (["sentence"], ()),
    "stsb/sts-dev.csv": (STSB[5:], STSB),
    "stsb/sts-test.csv": (STSB[5:], STSB),
}
PHRASES = "bird/BiRD.txt"  # includes its ABBA pairs
SOURCES = (*SENTENCES, PHRASES)


def normalise_words(text: str) -> tuple[str, ...]:
    """Normalise a text to lower-case words without accents.

    Punctuation splits words, as in BERT's tokenizer.
    """
    plain_text = text.lower()
    if not plain_text.isascii():
        decomposed = unicodedata.normalize("NFD", plain_text)
        plain_text = "".join(sign for sign in decomposed if not unicodedata.combining(sign))
    return tuple(MARKS.sub(" ", plain_text).split())


def iterate_ngrams(words: tuple[str, ...], lengths: Iterable[int]) -> Iterator[tuple[str, ...]]:
    """Yield all n-grams of a text with one of the lengths, in words."""
    for length in lengths:
        for start in range(len(words) - length + 1):
            yield words[start : start + length]


class PhraseIndex:
    """Phrases, of words separated by one space, that are looked up in sentences."""

    def __init__(self, phrases: Iterable[str]):
        self.phrases = {tuple(phrase.split(" ")) for phrase in phrases}
        self.lengths = {len(words) for words in self.phrases}

    def is_part_of(self, sentence: str) -> bool:
        """Return whether a sentence contains one of the phrases."""
        words = tuple(sentence.split(" "))
        return not self.phrases.isdisjoint(iterate_ngrams(words, self.lengths))


class NgramIndex:
    """Word sequences that are looked up by their first SHORT words.

    Shorter sequences are ignored.
    """

    def __init__(self, sequences: Iterable[tuple[str, ...]]):
        self.by_start: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for words in sequences:
            if len(words) >= SHORT:
                self.by_start.setdefault(words[:SHORT], set()).add(words)

    def is_part_of(self, words: tuple[str, ...]) -> bool:
        """Return whether a text contains one of the sequences."""
        for start, first_words in enumerate(iterate_ngrams(words, [SHORT])):
            for sequence in self.by_start.get(first_words, ()):
                if words[start : start + len(sequence)] == sequence:
                    return True
        return False


class EvaluationTexts:
    """Held-out sentences, and pairs of phrases that must not both occur in one text.

    whole: the words of each sentence. parts: what a text must not contain of them, RUN consecutive
    words, or all words of a sentence with fewer than RUN and at least SHORT. partners: first phrase
    of a pair -> the second ones. lengths: of all phrases, in words.
    """

    def __init__(self, sentences: Iterable[str], pairs: Iterable[tuple[str, str]]):
        self.whole = {normalise_words(sentence) for sentence in sentences}
        parts: list[tuple[str, ...]] = []
        for words in self.whole:
            parts += iterate_ngrams(words, [min(len(words), RUN)])
        self.parts = NgramIndex(parts)
        self.partners: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        self.lengths: set[int] = set()
        for pair in pairs:
            first, second = map(normalise_words, pair)
            self.partners.setdefault(first, set()).add(second)
            self.lengths |= {len(first), len(second)}

    def is_leaked_by(self, *texts: str) -> bool:
        """Return whether the texts contain a held-out sentence or pair.

        A text or their concatenation is a held-out sentence, or the concatenation contains one of
        at least SHORT words, shares RUN consecutive words with one, or contains both phrases of a
        pair.
        """
        parts = [normalise_words(text) for text in texts]
        words = tuple(chain.from_iterable(parts))
        if words in self.whole or not self.whole.isdisjoint(parts):
            return True
        if self.parts.is_part_of(words):
            return True
        phrases = set(iterate_ngrams(words, self.lengths))
        for phrase in phrases & self.partners.keys():
            if not phrases.isdisjoint(self.partners[phrase]):
                return True
        return False


def read_evaluation_texts(sources: dict[str, Path]) -> EvaluationTexts:
    """Read all items of SOURCES. Raises UserError if a source is missing or malformed."""
    for name in SOURCES:
        if name not in sources:
            raise UserError(
                f"the pre-training text must not hold items of {name}; "
                "name it in the task's sources"
            )
    sentences = []
    for name, (text_columns, columns) in SENTENCES.items():
        for _line, row in read_tsv(sources[name], name, text_columns, columns):
            sentences += [row[column] for column in text_columns]
    pairs = []
    for _line, row in read_tsv(sources[PHRASES], PHRASES, ("term1", "term2")):
        pairs.append((row["term1"], row["term2"]))
    return EvaluationTexts(sentences, pairs)
