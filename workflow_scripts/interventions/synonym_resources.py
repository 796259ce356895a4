"""Resources for synonyms: stop words, a tagger and WordNet, from fetched archives or without a download.

Of WordNet's files, index.* are not needed: they only order the senses. Base forms follow the rules of morphy(7WN).
"""

import json
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.formats.wordnet import (
    DATA,
    EXCEPTIONS,
    PARTS,
    Synset,
    iterate_dictionary_lines,
    read_dictionary_files,
    read_synsets,
)
from workflow_scripts.data.sources.archives import read_members
from workflow_scripts.data.stand_ins import wordnet
from workflow_scripts.interventions.settings import SOURCES

# First two letters of a Penn Treebank tag -> WordNet's part of speech.
PART_OF_SPEECH = {"NN": "n", "VB": "v", "JJ": "a", "RB": "r"}
ENDINGS = {  # part of speech -> endings of inflected words, and what they replace
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


@dataclass(frozen=True)
class SynonymResources:
    """Dictionary, stop words and tagger."""

    stop_words: frozenset[str]
    tagger: Any  # with NLTK's method `tag`
    lexicon: SynonymLexicon


def read_archive_texts(archive: Path, names: Collection[str]) -> dict[str, str]:
    """Read the texts called `names` of an archive. Raises UserError if one is missing, damaged or not UTF-8."""
    try:
        found = {name: content.decode("utf-8") for name, content in read_members(archive, set(names)).items()}
    except UnicodeDecodeError as error:
        raise UserError(f"{archive}: a file in it is not UTF-8 text; fetch it again") from error
    if missing := sorted(set(names) - set(found)):
        raise UserError(f"{archive} does not contain {missing[0]}; fetch it again")
    return found


def load_tagger(archive: Path) -> Any:
    """Build NLTK's tagger (Penn Treebank tags) from its zip. Raises UserError for a damaged zip or weights."""
    from nltk.tag.perceptron import PerceptronTagger

    parts = [f"averaged_perceptron_tagger_eng.{part}.json" for part in ("weights", "tagdict", "classes")]
    texts = read_archive_texts(archive, parts)
    loaded = []
    for part in parts:
        try:
            loaded.append(json.loads(texts[part]))
        except (json.JSONDecodeError, RecursionError) as error:
            raise UserError(f"{archive}: {part} is not valid JSON; fetch it again") from error
    weights, tag_of_word, classes = loaded
    if not (isinstance(weights, dict) and isinstance(tag_of_word, dict) and isinstance(classes, list) and classes):
        raise UserError(f"{archive}: not the weights, tag dictionary and classes of a tagger; fetch it again")
    made = PerceptronTagger(load=False)
    made.decode_json_params((weights, tag_of_word, classes))
    return made


def load_resources(sources: dict[str, Path]) -> SynonymResources:
    """Read the files of `SOURCES`, given by name. Raises UserError for a missing or malformed file."""
    paths = {}
    for need, names in SOURCES.items():
        given = [sources[name] for name in names if name in sources]
        if not given:
            raise UserError(f"synonyms: {need} missing; name the source {' or '.join(names)}")
        paths[need] = given[0]
    stop_words = frozenset(read_archive_texts(paths["stop words"], ["english"])["english"].split())
    return SynonymResources(stop_words, load_tagger(paths["tagger"]), read_synonym_lexicon(paths["WordNet"]))


@dataclass(frozen=True)
class LookUpTagger:
    """A tagger that returns the first part of speech of a word in the dictionary, and a comma for unknown words."""

    lexicon: SynonymLexicon

    def tag(self, tokens: list[str]) -> list[tuple[str, str]]:
        """Return (token, Penn Treebank tag) of each token."""

        def find_tag(word: str) -> str:
            return next((tag for tag, pos in PART_OF_SPEECH.items() if self.lexicon.find_base_forms(word, pos)), ",")

        return [(token, find_tag(token.lower())) for token in tokens]


def make_stand_in_resources() -> SynonymResources:
    """Return the dictionary of `stand_ins.wordnet`, its tagger, and scikit-learn's stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    with tempfile.TemporaryDirectory() as folder:
        wordnet.write_wordnet(Path(folder))
        lexicon = read_synonym_lexicon(Path(folder))
    return SynonymResources(ENGLISH_STOP_WORDS, LookUpTagger(lexicon), lexicon)
