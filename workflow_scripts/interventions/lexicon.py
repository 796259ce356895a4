"""WordNet as a table of synonyms: synsets, their words and glosses, and the base forms of inflected words.

Reads the data.* and *.exc files of a WordNet 3.0 dictionary (format: wndb(5WN), rules: morphy(7WN)). The index.* files
only add an order of the senses, which nothing here depends on, and are not read.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.errors import UserError
from workflow_scripts.interventions.archives import read_texts

FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
ENDINGS = {
    "n": [
        *[("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z")],
        *[("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y")],
    ],
    "v": [("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")],
    "a": [("er", ""), ("est", ""), ("er", "e"), ("est", "e")],
    "r": [],
}
MARKER = re.compile(r"\((a|p|ip)\)$")  # where an adjective may stand; not part of the word


@dataclass(frozen=True)
class Synset:
    """`pos` is n, v, a, s (an adjective satellite) or r; `words` in WordNet's spelling, `_` for a space."""

    pos: str
    words: tuple[str, ...]
    gloss: str


@dataclass(frozen=True)
class Lexicon:
    """All synsets; `senses` maps (n, v, a or r; lower-case word with `_`) to positions in `synsets`."""

    synsets: list[Synset]
    senses: dict[tuple[str, str], list[int]]
    exceptions: dict[tuple[str, str], list[str]]

    def base_forms(self, word: str, pos: str) -> list[str]:
        """Words of WordNet that `word` (lower case) can be a form of: itself, an exception, or an ending cut off."""
        forms = [word]
        if (pos, word) in self.exceptions:
            forms += self.exceptions[pos, word]
        else:
            forms += [word[: len(word) - len(end)] + new for end, new in ENDINGS[pos] if word.endswith(end)]
        return [form for form in dict.fromkeys(forms) if (pos, form) in self.senses]

    def synonyms(self, word: str, pos: str, satellites: bool = True) -> set[str]:
        """Words of every synset of `word` (lower case) with that part of speech, itself among them.

        Without `satellites`, adjective satellites (most adjectives) are no adjectives.
        """
        found = {i for form in self.base_forms(word, pos) for i in self.senses[pos, form]}
        return {w for i in found if satellites or self.synsets[i].pos != "s" for w in self.synsets[i].words}


def read_lexicon(archive: Path) -> Lexicon:
    """Read the archive of a WordNet 3.0 dictionary folder. Raises UserError with file and line for another format."""
    wanted = [f"data.{name}" for name in FILES.values()] + [f"{name}.exc" for name in FILES.values()]
    texts = read_texts(archive, wanted)
    synsets: list[Synset] = []
    senses: dict[tuple[str, str], list[int]] = {}
    for pos, name in FILES.items():
        for number, line in enumerate(texts[f"data.{name}"].split("\n"), start=1):
            if not line or line.startswith("  "):  # the licence stands in indented lines
                continue
            try:
                synset = _synset(line)
            except (ValueError, IndexError) as error:
                raise UserError(f"{archive}: data.{name}:{number}: not a line of wndb(5WN); fetch it again") from error
            for word in {word.lower() for word in synset.words}:
                senses.setdefault((pos, word), []).append(len(synsets))
            synsets.append(synset)
    exceptions = {
        (pos, form): bases
        for pos, name in FILES.items()
        for form, *bases in (line.split(" ") for line in texts[f"{name}.exc"].splitlines())
    }
    return Lexicon(synsets, senses, exceptions)


def _synset(line: str) -> Synset:
    """One data line: offset, file, type, count of words (hexadecimal), then word and number in turn, ..., | gloss."""
    fields, _, gloss = line.partition(" | ")
    cells = fields.split(" ")
    if cells[2] not in set("nvasr"):
        raise ValueError(cells[2])
    words = cells[4 : 4 + 2 * int(cells[3], 16) : 2]
    return Synset(cells[2], tuple(MARKER.sub("", word) for word in words), gloss.strip())
