"""WordNet as a table of synonyms: synsets, their words and glosses, and the base forms of inflected words.

The rules are those of morphy(7WN). The index.* files of the dictionary are not needed: they only order the senses.
"""

from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.data.formats.wordnet import (
    DATA,
    EXCEPTIONS,
    PARTS,
    Synset,
    iterate_dictionary_lines,
    read_dictionary_files,
    read_synsets,
)

ENDINGS = {
    "n": [
        *[("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z")],
        *[("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y")],
    ],
    "v": [("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")],
    "a": [("er", ""), ("est", ""), ("er", "e"), ("est", "e")],
    "r": [],
}


@dataclass(frozen=True)
class SynonymLexicon:
    """All synsets; `senses` maps (n, v, a or r; lower-case word with `_`) to positions in `synsets`."""

    synsets: list[Synset]
    senses: dict[tuple[str, str], list[int]]
    exceptions: dict[tuple[str, str], list[str]]

    def find_base_forms(self, word: str, pos: str) -> list[str]:
        """Return the words of WordNet that `word` (lower case) can be a form of."""
        forms = [word]
        if (pos, word) in self.exceptions:
            forms += self.exceptions[pos, word]
        else:
            forms += [word[: len(word) - len(end)] + new for end, new in ENDINGS[pos] if word.endswith(end)]
        return [form for form in dict.fromkeys(forms) if (pos, form) in self.senses]

    def find_synonyms(self, word: str, pos: str, satellites: bool = True) -> set[str]:
        """Return the words of every synset of `word` (lower case) with that part of speech, including itself.

        Without `satellites`, adjective satellites (most adjectives) do not count as adjectives.
        """
        found = {i for form in self.find_base_forms(word, pos) for i in self.senses[pos, form]}
        return {w for i in found if satellites or not self.synsets[i].satellite for w in self.synsets[i].lemmas}


def read_synonym_lexicon(path: Path) -> SynonymLexicon:
    """Read a dictionary folder or an archive of one. Raises UserError with file and line, or with the missing files."""
    files = read_dictionary_files(path, DATA | EXCEPTIONS)
    synsets = list(read_synsets(path, files))
    senses: dict[tuple[str, str], list[int]] = {}
    for i, synset in enumerate(synsets):
        for word in {lemma.lower() for lemma in synset.lemmas}:
            senses.setdefault((synset.id[-1], word), []).append(i)
    exceptions = {
        (letter, form): bases
        for part, letter in PARTS.items()
        for form, *bases in (line.split(" ") for _, line in iterate_dictionary_lines(path, files, f"{part}.exc"))
    }
    return SynonymLexicon(synsets, senses, exceptions)
