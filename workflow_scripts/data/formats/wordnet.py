"""Reader of WordNet's dictionary files, in the format of wndb(5WN): synsets with glosses, and counts of senses.

Reads a folder (as installed by Debian's package wordnet-base) or any archive of one; files are found by their names.
NLTK's reader needs index.sense and lexnames, which the pinned archive and Debian omit, and removes quoted text from 79
definitions ("especially in the phrase )"). The tests compare it with this reader.
"""

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.sources.archives import read_members

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
SENSE_TYPES = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}  # of a sense key; 5 is an adjective satellite
DATA, INDEX, EXCEPTIONS = ({name.format(part) for part in PARTS} for name in ("data.{}", "index.{}", "{}.exc"))
NEEDED = DATA | INDEX
OPTIONAL = {"cntlist.rev"} | EXCEPTIONS
# A syntactic marker after an adjective, as in galore(ip).
MARKER = re.compile(r"\((?:a|p|ip)\)$")
# Examples come after the definition, in double quotes: "a tall boy".
EXAMPLES = re.compile(r"(?:^|[;:,])\s*\"")
QUOTED = re.compile(r'"([^"]+)"')


class Synset(NamedTuple):
    """A synset. `id` is its offset and its file's part of speech (n, v, a, r): `02084071n`. Spaces of lemmas are `_`.

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
    counts: dict[tuple[str, str], int]


def split_gloss(gloss: str) -> tuple[str, list[str]]:
    """Split a gloss into the definition and the usage examples."""
    examples = EXAMPLES.search(gloss)
    end = examples.start() if examples else len(gloss)
    return gloss[:end].strip(), QUOTED.findall(gloss[end:])


def read_wordnet(path: Path) -> WordNet:
    """Read a dictionary folder or an archive of one. Raises UserError with file and line, or the missing files."""
    files = read_dictionary_files(path, NEEDED, OPTIONAL)
    synsets = {synset.id: synset for synset in read_synsets(path, files)}
    senses = {
        (letter, lemma): offsets for part, letter in PARTS.items() for lemma, offsets in _index(path, files, part)
    }
    counts: dict[tuple[str, str], int] = {}
    for number, line in iterate_dictionary_lines(path, files, "cntlist.rev"):
        try:
            key, sense, count = line.split()
            lemma, fields = key.split("%")
            letter = SENSE_TYPES[fields[0]]
            sense, count = int(sense), int(count)
        except (ValueError, KeyError) as error:
            raise _malformed(path, "cntlist.rev", number, "sense key, sense number, count") from error
        offsets = senses.get((letter, lemma), ())
        # Some counted senses are no longer in the dictionary.
        if sense <= len(offsets):
            pair = (lemma, f"{offsets[sense - 1]}{letter}")
            counts[pair] = counts.get(pair, 0) + count
    return WordNet(synsets, counts)


def read_dictionary_files(path: Path, needed: set[str], optional: Set[str] = frozenset()) -> dict[str, bytes]:
    """Read the dictionary's files: name -> content. Raises UserError if needed files are missing."""
    files = read_members(path, needed | optional)
    if missing := sorted(needed - set(files)):
        raise UserError(f"{path}: no WordNet dictionary, {', '.join(missing)} missing; give the folder with data.noun")
    return files


def read_synsets(path: Path, files: dict[str, bytes]) -> Iterator[Synset]:
    """Yield all synsets: nouns, verbs, adjectives, adverbs. Raises UserError with file and line."""
    for part, letter in PARTS.items():
        for number, line in iterate_dictionary_lines(path, files, f"data.{part}"):
            try:
                synset = _synset(line, letter)
            except (ValueError, IndexError) as error:
                raise _malformed(path, f"data.{part}", number, "a synset with its gloss") from error
            yield synset


def iterate_dictionary_lines(path: Path, files: dict[str, bytes], name: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of a file without blank lines and the licence, whose lines start with two spaces."""
    content = files.get(name, b"")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _malformed(path, name, content.count(b"\n", 0, error.start) + 1, "UTF-8 text") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not line.startswith("  "):
            yield number, line


def _malformed(path: Path, name: str, number: int, expected: str) -> UserError:
    return UserError(f"{path}: {name}:{number}: not {expected}; get the dictionary again")


def _synset(line: str, letter: str) -> Synset:
    """Parse a line `offset file type words lemma id ... pointers symbol offset type fields ... [frames] | gloss`."""
    data, gloss = line.split("|", 1)
    cells = data.split()
    if not (len(cells[0]) == 8 and cells[0].isdecimal() and cells[2] in {"n", "v", "a", "s", "r"} and gloss.strip()):
        raise ValueError(line)
    words = int(cells[3], 16)
    first = 5 + 2 * words  # first pointer; each has four cells
    end = first + 4 * int(cells[first - 1])
    if not words or len(cells) < end:
        raise ValueError(line)
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


def _index(path: Path, files: dict[str, bytes], part: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (lemma, synset offsets by sense number): the offsets are the last `synset_cnt` cells of a line."""
    for number, line in iterate_dictionary_lines(path, files, f"index.{part}"):
        cells = line.split()
        try:
            offsets = cells[-int(cells[2]) :]
        except (ValueError, IndexError) as error:
            raise _malformed(path, f"index.{part}", number, "a lemma with its senses") from error
        if not all(len(offset) == 8 and offset.isdecimal() for offset in offsets):
            raise _malformed(path, f"index.{part}", number, "a lemma with its senses")
        yield cells[0], offsets
