"""Resources for synonyms: stop words, a tagger, WordNet, a spaCy model, and word vectors.

The vectors are of the spaCy model or of WordNet's glosses.
"""

import json
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.formats.wordnet import Lexicon, read_lexicon
from workflow_scripts.data.sources.archives import read_members
from workflow_scripts.data.stand_ins import wordnet
from workflow_scripts.interventions.settings import (
    PLACE,
    SPACY_WHEELS,
    STOP_WORDS,
    TAGGER,
    WORD_PROBABILITIES,
    WORDNET,
    Options,
)
from workflow_scripts.interventions.spacy_models import (
    load_pipeline,
    read_probabilities,
    tag_tokens,
)

if TYPE_CHECKING:
    from spacy.language import Language

DIMENSIONS = 100
RANDOM_STATE = 0  # of the truncated SVD, so that a dictionary always gives the same vectors
APART = re.compile(r"['-]")
# First two letters of a Penn Treebank tag -> WordNet's part of speech.
PART_OF_SPEECH = {"NN": "n", "VB": "v", "JJ": "a", "RB": "r"}


@dataclass(frozen=True)
class SynonymResources:
    """Stop words, dictionary, a function that tags tokens, and what the options name of spaCy.

    `tag` returns (token, Penn Treebank tag) of each token. `pipeline` is None where the options
    name no spaCy model. `probabilities`: word -> its log probability.
    """

    stop_words: frozenset[str]
    tag: Callable[[list[str]], list[tuple[str, str]]]
    lexicon: Lexicon
    pipeline: "Language | None" = None
    probabilities: dict[str, float] = field(default_factory=dict)

    def require_pipeline(self) -> "Language":
        """Return the spaCy pipeline. Raises UserError if the resources were read without one."""
        if self.pipeline is None:
            raise UserError(f"{PLACE}: these resources have no spaCy model; read them with one")
        return self.pipeline


def load_tagger(archive: Path) -> Any:
    """Build NLTK's tagger (Penn Treebank tags) from its zip."""
    from nltk.tag.perceptron import PerceptronTagger

    parts = ("weights", "tagdict", "classes")
    names = [f"averaged_perceptron_tagger_eng.{part}.json" for part in parts]
    members = read_members(archive, set(names))
    tagger = PerceptronTagger(load=False)
    tagger.decode_json_params([json.loads(members[name]) for name in names])
    return tagger


def load_resources(sources: dict[str, Path], options: Options) -> SynonymResources:
    """Read the resources from the files that `settings.CandidateSpec` names.

    The sha256 of the files is verified before. Raises UserError if a spaCy model is none, or lacks
    what the options need of it.
    """
    members = read_members(sources[STOP_WORDS], {"english"})
    stop_words = frozenset(members["english"].decode().split())
    lexicon = read_lexicon(sources[WORDNET])
    tag = load_tagger(sources[TAGGER]).tag
    if not options.reads_spacy:
        return SynonymResources(stop_words, tag, lexicon)
    pipeline = load_pipeline(sources[SPACY_WHEELS[options.spacy_model]])
    if options.tagger == "spacy":
        tag = partial(tag_tokens, pipeline)
    probabilities = {}
    if options.words == "spacy":
        probabilities = read_probabilities(sources[WORD_PROBABILITIES])
    return SynonymResources(stop_words, tag, lexicon, pipeline, probabilities)


def make_stand_in_resources() -> SynonymResources:
    """Return the dictionary of `stand_ins.wordnet` and scikit-learn's stop words.

    The tag of a word is its first part of speech in the dictionary, and a comma without one.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    with tempfile.TemporaryDirectory() as folder:
        wordnet.write_wordnet(Path(folder))
        lexicon = read_lexicon(Path(folder))

    def find_tag(word: str) -> str:
        """Return the tag of a word's first part of speech in the dictionary."""
        for tag, pos in PART_OF_SPEECH.items():
            if lexicon.find_base_forms(word, pos):
                return tag
        return ","

    def tag(tokens: list[str]) -> list[tuple[str, str]]:
        return [(token, find_tag(token.lower())) for token in tokens]

    return SynonymResources(ENGLISH_STOP_WORDS, tag, lexicon)


@dataclass(frozen=True)
class Vectors:
    """Vectors of texts.

    `embed` maps N texts of one or more lower-case words to float32 [N, d]. Its rows have length 1,
    or 0 for an unknown text.
    """

    name: str
    embed: Callable[[Sequence[str]], np.ndarray]


def normalise_spelling(word: str) -> str:
    """Convert WordNet's spelling to plain text.

    That is in lower case, with spaces for `_`, and without hyphens and apostrophes.
    """
    return APART.sub("", word.lower().replace("_", " "))


def normalise_rows(matrix: np.ndarray) -> np.ndarray:
    """Scale the rows of `matrix` [N, d] to length 1, as float32. Zero rows stay zero."""
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    normalised = np.divide(matrix, length, out=np.zeros_like(matrix), where=length > 0)
    return normalised.astype(np.float32)


def build_gloss_vectors(lexicon: Lexicon) -> Vectors:
    """Latent semantic analysis of WordNet: words with similar glosses have similar vectors.

    The document of a word is the glosses of all its synsets; TF-IDF (sublinear counts), truncated
    SVD to `DIMENSIONS`. An inflected form that WordNet lacks has the sum of the vectors of its base
    forms.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    documents: dict[str, list[str]] = {}
    for synset in lexicon.synsets:
        for word in synset.lemmas:
            documents.setdefault(normalise_spelling(word), []).append(synset.gloss)
    words = sorted(documents)
    # A term of fewer than 3 documents relates almost no words, and one of more than 5% of them is a
    # function word. These limits do not suit a dictionary of a few words, as in tests.
    if len(words) > 1000:
        min_df = 3
        max_df = 0.05
    else:
        min_df = 1
        max_df = 1.0
    vectorizer = TfidfVectorizer(
        sublinear_tf=True,
        min_df=min_df,
        max_df=max_df,
        token_pattern=r"[a-z]{2,}",
        dtype=np.float32,  # pyright: ignore[reportArgumentType]
    )
    weights = vectorizer.fit_transform([" ".join(documents[word]) for word in words])
    word_count, term_count = weights.shape
    size = min(DIMENSIONS, word_count - 1, term_count - 1)
    svd = TruncatedSVD(size, random_state=RANDOM_STATE)
    matrix = normalise_rows(svd.fit_transform(weights))
    row_of = {word: row for row, word in enumerate(words)}

    def find_rows(text: str) -> list[int]:
        """Return the rows of a text, or else of its base forms; none of an unknown text."""
        if text in row_of:
            return [row_of[text]]
        forms: set[str] = set()
        for pos in "nvar":
            forms.update(lexicon.find_base_forms(text.replace(" ", "_"), pos))
        return sorted(row_of[normalise_spelling(form)] for form in forms)

    def embed(texts: Sequence[str]) -> np.ndarray:
        sums = [matrix[find_rows(text)].sum(0) for text in texts]
        return normalise_rows(np.array(sums, dtype=np.float32).reshape(-1, size))

    return Vectors(f"WordNet glosses, TF-IDF and truncated SVD to {size} dimensions", embed)


def build_spacy_vectors(nlp: "Language") -> Vectors:
    """Return the vectors of a spaCy pipeline.

    A text of several words has their mean, as a spaCy Doc. Raises UserError if it has no vectors.
    """
    name = f"{nlp.meta['lang']}_{nlp.meta['name']}"
    if not nlp.vocab.vectors_length:
        raise UserError(
            f"{PLACE}: the spaCy model {name} has no vectors; "
            "name one that has, such as en_core_web_md"
        )

    def embed(texts: Sequence[str]) -> np.ndarray:
        means = []
        for text in texts:
            of_words = [np.asarray(nlp.vocab.get_vector(word)) for word in text.split(" ")]
            means.append(np.mean(of_words, axis=0))
        matrix = np.array(means, dtype=np.float32)
        return normalise_rows(matrix.reshape(-1, nlp.vocab.vectors_length))

    return Vectors(f"spaCy {name} {nlp.meta['version']}", embed)
