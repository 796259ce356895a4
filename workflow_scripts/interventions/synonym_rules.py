"""Rules for words that may be replaced, and for candidates and their ranks."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from workflow_scripts.interventions.lexical_vectors import Vectors, normalise_spelling
from workflow_scripts.interventions.synonym_resources import PART_OF_SPEECH, SynonymResources

if TYPE_CHECKING:
    from spacy.language import Language

TAGGER = "tagger"  # the name of spaCy's component
WORD = re.compile(r"(?P<before>(?:[^\w\s]|_)*)(?P<core>\S*?)(?P<after>(?:[^\w\s]|_)*)(?!\S)")
TEXT = re.compile(r"[a-z]{2,}( [a-z]{2,})?")
ROUND = 6  # decimals of a score, so that ties do not depend on the order of additions on a machine


class Word(NamedTuple):
    """Text between white space: the word (possibly empty) at `start`, and the punctuation around it."""

    before: str
    core: str
    after: str
    start: int


class Query(NamedTuple):
    """A lower-case word with its part of speech (n, v, a or r)."""

    word: str
    pos: str


def split_words(content: str) -> list[Word]:
    """Split `content` into words, as many as `content.split()`."""
    return [Word(*match.groups(), match.start("core")) for match in WORD.finditer(content) if match.group()]


def find_queries(content: str, resources: SynonymResources, nlp: "Language | None" = None) -> dict[int, Query]:
    """Return position -> query of each word that may be replaced, by the tagger of `nlp`, else of `resources`."""
    words = split_words(content)
    # The tagger was trained on text in which punctuation marks are separate tokens.
    tokens: list[str] = []
    token_of = []
    for word in words:
        token_of.append(len(tokens) + bool(word.before))
        tokens += filter(None, word[:3])
    if nlp and TAGGER in nlp.pipe_names:
        from spacy.tokens import Doc

        tags = [token.tag_ for token in nlp(Doc(nlp.vocab, words=tokens))]
    else:
        tags = [tag for _, tag in resources.tagger.tag(tokens)]
    found = {}
    for position, (word, token) in enumerate(zip(words, token_of, strict=True)):
        core, pos = word.core.lower(), PART_OF_SPEECH.get(tags[token][:2]) if word.core else None
        if pos and len(core) >= 3 and core not in resources.stop_words:
            found[position] = Query(core, pos)
    return found


def find_wordnet_synonyms(
    queries: Sequence[Query], resources: SynonymResources, satellites: bool, base_forms: bool
) -> list[tuple[int, str]]:
    """Return (index of a query, candidate), in order: synonyms of 1 or 2 words without stop words and the word itself.

    Without `base_forms`, the base forms of the word are left out too.
    """
    lexicon = resources.lexicon
    pairs = []
    for index, query in enumerate(queries):
        own = {query.word, normalise_spelling(query.word)}
        if not base_forms:
            own |= {normalise_spelling(form) for form in lexicon.find_base_forms(query.word, query.pos)}
        texts = {normalise_spelling(word) for word in lexicon.find_synonyms(query.word, query.pos, satellites)}
        fitting = (text for text in sorted(texts - own) if TEXT.fullmatch(text))
        pairs += [(index, text) for text in fitting if not resources.stop_words.intersection(text.split(" "))]
    return pairs


def find_similar_words(
    queries: Sequence[Query],
    resources: SynonymResources,
    vectors: Vectors,
    vocabulary: Sequence[str],
    min_similarity: float,
) -> list[tuple[int, str]]:
    """Return (index of a query, candidate), in order: similar words of `vocabulary`, with the same part of speech.

    One matrix product [words, d] x [d, V] for all queries, in slices that fit into memory.
    """
    can_be = {
        pos: np.array([bool(resources.lexicon.find_base_forms(v, pos)) for v in vocabulary], bool) for pos in "nvar"
    }
    all_vectors = vectors.embed(vocabulary)
    pairs: list[tuple[int, str]] = []
    for start in range(0, len(queries), 512):
        part = queries[start : start + 512]
        near = vectors.embed([query.word for query in part]) @ all_vectors.T > min_similarity
        near &= np.stack([can_be[query.pos] for query in part])
        found = ((int(row), vocabulary[column]) for row, column in zip(*np.nonzero(near), strict=True))
        pairs += [(start + row, word) for row, word in found if word != part[row].word]
    return pairs


def compute_polarities(texts: Sequence[str]) -> np.ndarray:
    """Return TextBlob's polarity of each text, float [N] in [-1, 1]; 0 for words that its lexicon lacks."""
    from textblob.en import sentiment

    return np.array([sentiment(text)[0] for text in texts])


def rank_candidates(
    queries: Sequence[Query], pairs: Sequence[tuple[int, str]], vectors: Vectors, weight: float, top: int
) -> dict[Query, list[tuple[str, float]]]:
    """Return the `top` candidates of each query with their scores, best first; equal scores alphabetically."""
    texts = sorted({text for _, text in pairs})
    words = sorted({query.word for query in queries})
    index = {text: i for i, text in enumerate(texts)}
    of_word = {word: i for i, word in enumerate(words)}
    query = np.array([q for q, _ in pairs], int)
    candidate = np.array([index[text] for _, text in pairs], int)
    word = np.array([of_word[queries[q].word] for q, _ in pairs], int)
    similarity = np.einsum("nd,nd->n", vectors.embed(words)[word], vectors.embed(texts)[candidate])
    polarity = compute_polarities(words)[word] - compute_polarities(texts)[candidate]
    score = np.round(weight * similarity.astype(float) + (1 - weight) * (1 - np.abs(polarity)), ROUND)
    found: dict[Query, list[tuple[str, float]]] = {}
    for i in np.lexsort((candidate, -score, query)):
        chosen = found.setdefault(queries[query[i]], [])
        if len(chosen) < top:
            chosen.append((texts[candidate[i]], float(score[i])))
    return found
