"""Word vectors that rank candidates: of a spaCy model, or our own from WordNet's glosses."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.sources.archives import read_numbered_lines
from workflow_scripts.interventions.synonym_resources import SynonymLexicon

if TYPE_CHECKING:
    from spacy.language import Language

DIMENSIONS = 100
RANDOM_STATE = 0  # of the truncated SVD, so that a dictionary always gives the same vectors
APART = re.compile(r"['-]")


@dataclass(frozen=True)
class Vectors:
    """`embed` maps N texts of one or more lower-case words to float32 [N, d], rows of length 1 or 0 (unknown)."""

    name: str
    embed: Callable[[Sequence[str]], np.ndarray]


def normalise_spelling(word: str) -> str:
    """Convert WordNet's spelling to plain text: lower case, `_` as a space, no hyphens and apostrophes."""
    return APART.sub("", word.lower().replace("_", " "))


def normalise_rows(matrix: np.ndarray) -> np.ndarray:
    """Scale the rows of `matrix` [N, d] to length 1, as float32. Zero rows stay zero."""
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.divide(matrix, length, out=np.zeros_like(matrix), where=length > 0).astype(np.float32)


def build_gloss_vectors(lexicon: SynonymLexicon) -> Vectors:
    """Latent semantic analysis of WordNet: words with similar glosses have similar vectors.

    The document of a word is the glosses of all its synsets; TF-IDF (sublinear counts), truncated SVD to `DIMENSIONS`.
    An inflected form that WordNet lacks has the sum of the vectors of its base forms.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    documents: dict[str, list[str]] = {}
    for synset in lexicon.synsets:
        for word in synset.lemmas:
            documents.setdefault(normalise_spelling(word), []).append(synset.gloss)
    words = sorted(documents)
    # A term of fewer than 3 documents relates almost no words, and one of more than 5% of them is a function word.
    # These limits do not suit a dictionary of a few words, as in tests.
    rare, common = (3, 0.05) if len(words) > 1000 else (1, 1.0)
    counts = TfidfVectorizer(
        sublinear_tf=True, min_df=rare, max_df=common, token_pattern=r"[a-z]{2,}", dtype=np.float32
    )
    weighted = counts.fit_transform([" ".join(documents[word]) for word in words])
    size = min(DIMENSIONS, *(n - 1 for n in weighted.shape))
    matrix = normalise_rows(TruncatedSVD(size, random_state=RANDOM_STATE).fit_transform(weighted))
    row_of = {word: row for row, word in enumerate(words)}

    def rows(text: str) -> list[int]:
        if text in row_of:
            return [row_of[text]]
        forms = {form for pos in "nvar" for form in lexicon.find_base_forms(text.replace(" ", "_"), pos)}
        return sorted(row_of[normalise_spelling(form)] for form in forms)

    def embed(texts: Sequence[str]) -> np.ndarray:
        found = [matrix[rows(text)].sum(0) for text in texts]
        return normalise_rows(np.array(found, dtype=np.float32).reshape(-1, size))

    return Vectors(f"WordNet glosses, TF-IDF and truncated SVD to {size} dimensions", embed)


def build_spacy_vectors(nlp: "Language") -> Vectors:
    """Return the vectors of a spaCy pipeline. A text of several words has their mean, as a spaCy Doc."""

    def embed(texts: Sequence[str]) -> np.ndarray:
        found = [np.mean([nlp.vocab.get_vector(word) for word in text.split(" ")], axis=0) for text in texts]
        return normalise_rows(np.array(found, dtype=np.float32).reshape(-1, nlp.vocab.vectors_length))

    return Vectors(f"spaCy {nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}", embed)


def read_common_words(path: Path, nlp: "Language", min_log_probability: float, stop: frozenset[str]) -> list[str]:
    """Return the sorted lower-case alphabetic words with a vector that are frequent and not in `stop`.

    A line of the file has a word, a tab and its count; counts of a word in different cases are added. Raises UserError
    for a malformed line.
    """
    counts: dict[str, float] = {}
    for number, line in read_numbered_lines(path):
        word, _, count = line.partition("\t")
        try:
            value = float(count)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise UserError(f"{path}:{number}: expected a word, a tab and its count; correct the line")
        counts[word.lower()] = counts.get(word.lower(), 0.0) + value
    least = sum(counts.values()) * np.exp(min_log_probability)
    return sorted(
        word
        for word, count in counts.items()
        if word.isalpha() and word.islower() and word not in stop and count > least and nlp.vocab.has_vector(word)
    )
