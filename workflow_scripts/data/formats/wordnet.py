"""Reader of WordNet's dictionary files, in the format of wndb(5WN).

It reads synsets, counts of senses, and base forms of words, from a folder (as installed by Debian's
package wordnet-base) or any archive of one; files are found by their names. Their format is not
checked, because their sha256 is.

Why not NLTK's reader: it needs a folder with `lexnames`, which the pinned archive omits, and either
a second WordNet or an override of its `map_wn`; it removes quoted text from 79 definitions
("especially in the phrase )"); and it takes 9 s of CPU and 590 MB for what this module reads in
1.4 s and 170 MB. The tests compare it with this reader.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.data.sources.archives import read_members

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
# Of a sense key; 5 is an adjective satellite.
SENSE_TYPES = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
DATA = {f"data.{part}" for part in PARTS}
INDEX = {f"index.{part}" for part in PARTS}
EXCEPTIONS = {f"{part}.exc" for part in PARTS}
COUNTS = "cntlist.rev"
ENDINGS = {  # part of speech -> endings of inflected words, and what they replace
    "n": [
        *[("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z")],
        *[("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y")],
    ],
    "v": [
        *[("s", ""), ("ies", "y"), ("es", "e"), ("es", "")],
        *[("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")],
    ],
    "a": [("er", ""), ("est", ""), ("er", "e"), ("est", "e")],
    "r": [],
}
# In pointers, `s` is an adjective satellite.
PART_OF_SATELLITE = {"s": "a"}
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
    """Content of the dictionary.

    counts: (lower-case lemma, synset id) -> occurrences in tagged texts, if any.
    """

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
    # (Part of speech, lemma) -> synset offsets by sense number: the last `synset_cnt` cells of a
    # line.
    senses = {}
    for part, letter in PARTS.items():
        for line in iterate_dictionary_lines(files[f"index.{part}"]):
            cells = line.split()
            senses[letter, cells[0]] = cells[-int(cells[2]) :]
    counts: Counter[tuple[str, str]] = Counter()
    for line in iterate_dictionary_lines(files[COUNTS]):
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
    """Yield the lines of a file without blank lines and the licence.

    The lines of the licence start with two spaces.
    """
    for line in content.decode("utf-8").split("\n"):
        if line.strip() and not line.startswith("  "):
            yield line


def parse_synset(line: str, letter: str) -> Synset:
    """Parse a line of a data file.

    It is `offset file type words lemma id ... pointers symbol offset type fields ... [frames] |
    gloss`.
    """
    data, gloss = line.split("|", 1)
    cells = data.split()
    first_pointer = 5 + 2 * int(cells[3], 16)
    n_pointers = int(cells[first_pointer - 1])
    lemmas = tuple(MARKER.sub("", word) for word in cells[4 : first_pointer - 1 : 2])
    topics = []
    for start in range(first_pointer, first_pointer + 4 * n_pointers, 4):
        symbol, offset, kind = cells[start : start + 3]
        if symbol == ";c":
            topics.append(f"{offset}{PART_OF_SATELLITE.get(kind, kind)}")
    return Synset(f"{cells[0]}{letter}", lemmas, gloss.strip(), tuple(topics))


@dataclass(frozen=True)
class Lexicon:
    """All synsets, and where the words are.

    senses: (n, v, a or r; lower-case word with `_`) -> positions in `synsets`. exceptions: the same
    keys, of irregular forms -> base forms.
    """

    synsets: list[Synset]
    senses: dict[tuple[str, str], list[int]]
    exceptions: dict[tuple[str, str], list[str]]

    def find_base_forms(self, word: str, pos: str) -> list[str]:
        """Return the words of WordNet that `word` (lower case) can be a form of.

        The rules are those of morphy(7WN).
        """
        forms = [word]
        if (pos, word) in self.exceptions:
            forms += self.exceptions[pos, word]
        else:
            for ending, replacement in ENDINGS[pos]:
                if word.endswith(ending):
                    forms.append(word.removesuffix(ending) + replacement)
        return [form for form in dict.fromkeys(forms) if (pos, form) in self.senses]

    def find_synonyms(self, word: str, pos: str) -> set[str]:
        """Return the words of every synset of a base form of `word` (lower case) as that `pos`.

        The base form is one of them. There are none for a word that is not in WordNet.
        """
        synonyms: set[str] = set()
        for form in self.find_base_forms(word, pos):
            for position in self.senses[pos, form]:
                synonyms.update(self.synsets[position].lemmas)
        return synonyms


def read_lexicon(path: Path) -> Lexicon:
    """Read a dictionary folder or an archive of one.

    index.* are not needed: they only order the senses.
    """
    files = read_members(path, DATA | EXCEPTIONS)
    synsets = list(read_synsets(files))
    senses: dict[tuple[str, str], list[int]] = {}
    for position, synset in enumerate(synsets):
        for word in {lemma.lower() for lemma in synset.lemmas}:
            senses.setdefault((synset.id[-1], word), []).append(position)
    exceptions = {}
    for part, letter in PARTS.items():
        for line in iterate_dictionary_lines(files[f"{part}.exc"]):
            form, *bases = line.split(" ")
            exceptions[letter, form] = bases
    return Lexicon(synsets, senses, exceptions)
