"""The items that models are evaluated on, and whether a text of a pre-training corpus gives one of them away."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.formats.lines import numbered_lines

SHORT, RUN = 6, 8  # words
MARKS = re.compile(r"[^\w\s]|_")


class Columns(NamedTuple):
    """Where a tab-separated file has its texts; `header` is the number of lines before the first item."""

    texts: tuple[int, ...]
    header: int = 0


SENTENCES = {
    "paws/paws_wiki_final_dev.noheader.tsv": Columns((1, 2)),
    "paws/paws_wiki_final_test.noheader.tsv": Columns((1, 2)),
    "sst2/dev.tsv": Columns((0,), header=1),
    "stsb/sts-dev.csv": Columns((5, 6)),
    "stsb/sts-test.csv": Columns((5, 6)),
}
PHRASES = {"bird/BiRD.txt": Columns((1, 2), header=1)}  # its ABBA pairs are among them
SOURCES = (*SENTENCES, *PHRASES)


def plain(text: str) -> tuple[str, ...]:
    """Lower-case words without accents, parted by marks as BERT's tokenizer parts them: equal for texts that say the
    same."""
    text = text.lower()
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    return tuple(MARKS.sub(" ", text).split())


def read_rows(path: Path, columns: Columns) -> Iterator[tuple[str, ...]]:
    """The texts of each line. Raises UserError for a line with too few columns."""
    for number, line in numbered_lines(path):
        if number > columns.header:
            cells = line.split("\t")
            if len(cells) <= max(columns.texts):
                raise UserError(
                    f"{path}:{number}: {len(cells)} columns, {max(columns.texts) + 1} needed; fetch it again"
                )
            yield tuple(cells[column] for column in columns.texts)


def runs(words: tuple[str, ...], lengths: Iterable[int]) -> Iterator[tuple[str, ...]]:
    """All runs of so many words."""
    return (words[i : i + n] for n in lengths for i in range(len(words) - n + 1))


class HeldOut:
    """Held-out sentences, and pairs of phrases of which no text may hold both."""

    def __init__(self, sentences: Iterable[str], pairs: Iterable[tuple[str, str]]):
        self.whole = {plain(sentence) for sentence in sentences}
        self.by_start: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for words in self.whole:
            for run in runs(words, [min(len(words), RUN)] if len(words) >= SHORT else ()):
                self.by_start.setdefault(run[:SHORT], set()).add(run)
        self.partners: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for pair in pairs:
            first, second = map(plain, pair)
            self.partners.setdefault(first, set()).add(second)
        phrases = {*self.partners, *(second for seconds in self.partners.values() for second in seconds)}
        self.lengths = {len(phrase) for phrase in phrases}

    def given_away_by(self, *texts: str) -> bool:
        """Whether one of the texts, or all of them one behind the other, is a held-out sentence, holds one of SHORT or
        more words, shares RUN words in a row with one, or holds both phrases of a pair."""
        parts = [plain(text) for text in texts]
        words = tuple(chain.from_iterable(parts))
        if words in self.whole or not self.whole.isdisjoint(parts):
            return True
        for start, first in enumerate(runs(words, [SHORT])):
            if any(words[start : start + len(run)] == run for run in self.by_start.get(first, ())):
                return True
        phrases = set(runs(words, self.lengths))
        return any(not phrases.isdisjoint(self.partners[phrase]) for phrase in phrases & self.partners.keys())


def read_held_out(sources: dict[str, Path]) -> HeldOut:
    """All items of SOURCES. Raises UserError when a source is missing or malformed."""
    if missing := [name for name in SOURCES if name not in sources]:
        raise UserError(f"the pre-training text must not hold items of {missing[0]}; name it in the task's sources")
    sentences = [
        text for name, columns in SENTENCES.items() for row in read_rows(sources[name], columns) for text in row
    ]
    return HeldOut(sentences, [row for name, columns in PHRASES.items() for row in read_rows(sources[name], columns)])
