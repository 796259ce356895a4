"""Reader of WordNet's dictionary files, in the format of wndb(5WN): synsets, counts of senses, base forms of words.

Reads a folder (as installed by Debian's package wordnet-base) or any archive of one; files are
found by their names. Their format is not checked, because their sha256 is.

Why not NLTK's reader: it needs a folder with `lexnames`, which the pinned archive omits, and either
a second WordNet or an override of its `map_wn`; it removes quoted text from 79 definitions
("especially in the phrase )"); and it takes 9 s of CPU and 590 MB for what this module reads in 1.4
s and 170 MB. The tests compare it with this reader.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.data.sources.archives import read_members

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
SENSE_TYPES = {
    "1": "n",
    "2": "v",
    "3": "a",
    "4": "r",
    "5": "a",
}  # of a sense key; 5 is an adjective satellite
DATA, INDEX, EXCEPTIONS = (
    {name.format(part) for part in PARTS} for name in ("data.{}", "index.{}", "{}.exc")
)
COUNTS = "cntlist.rev"
ENDINGS = {  # part of speech -> endings of inflected words, and what they replace
    "n": [
        *[("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z")],
        *[("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y")],
    ],
    "v": [
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ],
    "a": [("er", ""), ("est", ""), ("er", "e"), ("est", "e")],
    "r": [],
}
# A syntactic marker after an adjective, as in galore(ip).
MARKER = re.compile(r"\((?:a|p|ip)\)$")
# Examples come after the definition, in double quotes: "a tall boy".
EXAMPLES = re.compile(r"(?:^|[;:,])\s*\"")
QUOTED = re.compile(r'"([^"]+)"')


class Synset(NamedTuple):
    """A synset.

    `id` is its offset and its file's part of speech (n, v, a, r): `02084071n`. Spaces of lemmas are
    `_`.

    topics: ids of the synsets of its domain, such as law (pointer ;c).
    """

    id: str
    lemmas: tuple[str, ...]
    gloss: str
    topics: tuple[str, ...]


@dataclass(frozen=True)
class WordNet:
    """Content of the dictionary. counts: (lower-case lemma, synset id) -> occurrences in tagged texts, if any."""

    synsets: dict[str, Synset]
    counts: Counter[tuple[str, str]]


def split_gloss(gloss: str) -> tuple[str, list[str]]:
    """Split a gloss into the definition and the usage examples."""
    examples = EXAMPLES.search(gloss)
    end = examples.start() if examples else len(gloss)
    return gloss[:end].strip(), QUOTED.findall(gloss[end:])


def read_wordnet(path: Path) -> WordNet:
    """Read a dictionary folder or an archive of one."""
    files = read_members(path, DATA | INDEX | {COUNTS})
    synsets = {synset.id: synset for synset in read_synsets(files)}
    senses = {}  # (part of speech, lemma) -> synset offsets by sense number: the last `synset_cnt` cells of a line
    for part, letter in PARTS.items():
        for cells in map(str.split, iterate_dictionary_lines(files[f"index.{part}"])):
            senses[letter, cells[0]] = cells[-int(cells[2]) :]
    counts: Counter[tuple[str, str]] = Counter()
    for line in iterate_dictionary_lines(files[COUNTS]):  # sense key, sense number, count
        key, sense, count = line.split()
        lemma, fields = key.split("%")
        letter = SENSE_TYPES[fields[0]]
        offsets = senses.get((letter, lemma), ())
        # Some counted senses are no longer in the dictionary.
        if int(sense) <= len(offsets):
            counts[lemma, f"{offsets[int(sense) - 1]}{letter}"] += int(count)
    return WordNet(synsets, counts)


def read_synsets(files: dict[str, bytes]) -> Iterator[Synset]:
    """Yield all synsets of the dictionary's files by name: nouns, verbs, adjectives, adverbs."""
    for part, letter in PARTS.items():
        for line in iterate_dictionary_lines(files[f"data.{part}"]):
            yield parse_synset(line, letter)


def iterate_dictionary_lines(content: bytes) -> Iterator[str]:
    """Yield the lines of a file without blank lines and the licence, whose lines start with two spaces."""
    return (
        line
        for line in content.decode("utf-8").split("\n")
        if line.strip() and not line.startswith("  ")
    )


def parse_synset(line: str, letter: str) -> Synset:
    """Parse a line `offset file type words lemma id ... pointers symbol offset type fields ... [frames] | gloss`."""
    data, gloss = line.split("|", 1)
    cells = data.split()
    first = 5 + 2 * int(cells[3], 16)  # first pointer; each has four cells
    end = first + 4 * int(cells[first - 1])
    return Synset(
        f"{cells[0]}{letter}",
        tuple(MARKER.sub("", word) for word in cells[4 : first - 1 : 2]),
        gloss.strip(),
        tuple(
            f"{cells[i + 1]}{'a' if cells[i + 2] == 's' else cells[i + 2]}"
            for i in range(first, end, 4)
            if cells[i] == ";c"
        ),
    )


@dataclass(frozen=True)
class Lexicon:
    """All synsets; `senses` maps (n, v, a or r; lower-case word with `_`) to positions in `synsets`."""

    synsets: list[Synset]
    senses: dict[tuple[str, str], list[int]]
    exceptions: dict[tuple[str, str], list[str]]

    def find_base_forms(self, word: str, pos: str) -> list[str]:
        """Return the words of WordNet that `word` (lower case) can be a form of, by the rules of morphy(7WN)."""
        forms = [word]
        if (pos, word) in self.exceptions:
            forms += self.exceptions[pos, word]
        else:
            forms += [
                word[: len(word) - len(end)] + new
                for end, new in ENDINGS[pos]
                if word.endswith(end)
            ]
        return [form for form in dict.fromkeys(forms) if (pos, form) in self.senses]

    def find_synonyms(self, word: str, pos: str) -> set[str]:
        """Return the words of every synset of `word` (lower case) with that part of speech, including itself."""
        found = {i for form in self.find_base_forms(word, pos) for i in self.senses[pos, form]}
        return {lemma for i in found for lemma in self.synsets[i].lemmas}


def read_lexicon(path: Path) -> Lexicon:
    """Read a dictionary folder or an archive of one. index.* are not needed: they only order the senses."""
    files = read_members(path, DATA | EXCEPTIONS)
    synsets = list(read_synsets(files))
    senses: dict[tuple[str, str], list[int]] = {}
    for i, synset in enumerate(synsets):
        for word in {lemma.lower() for lemma in synset.lemmas}:
            senses.setdefault((synset.id[-1], word), []).append(i)
    exceptions = {
        (letter, form): bases
        for part, letter in PARTS.items()
        for form, *bases in (
            line.split(" ") for line in iterate_dictionary_lines(files[f"{part}.exc"])
        )
    }
    return Lexicon(synsets, senses, exceptions)
