"""Make the table of replacement words of a data set.

It has the words that may be replaced, and by what, the best first. The options of `build` are
described in `settings`.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.common.errors import UserError
from workflow_scripts.interventions.settings import Options
from workflow_scripts.interventions.spacy_models import (
    collect_common_words,
    find_neighbours,
    tag_words,
)
from workflow_scripts.interventions.synonym_resources import (
    PART_OF_SPEECH,
    SynonymResources,
    Vectors,
    build_gloss_vectors,
    build_spacy_vectors,
    normalise_spelling,
)

WORD = re.compile(r"(?P<before>(?:[^\w\s]|_)*)(?P<core>\S*?)(?P<after>(?:[^\w\s]|_)*)(?!\S)")
TEXT = re.compile(r"[a-z]{2,}( [a-z]{2,})?")
ROUND = 6  # decimals of a score, so that ties do not depend on the order of additions on a machine
# Columns that `read_candidates` reads.
TYPES = {
    "content": "string",
    "positions": "list<element: int32>",
    "candidates": "list<element: list<element: string>>",
}
# content -> position of the word -> its candidates, the best first
Candidates = dict[str, dict[int, list[str]]]


class Word(NamedTuple):
    """Text between white space.

    core: the word (possibly empty) at `start`. before, after: the punctuation around it.
    """

    before: str
    core: str
    after: str
    start: int


class Query(NamedTuple):
    """A lower-case word with its part of speech (n, v, a or r)."""

    word: str
    pos: str


class Replacement(NamedTuple):
    """The index of a query, and a text that may replace its word.

    `same_pos`: whether the text has the part of speech of the query.
    """

    query: int
    text: str
    same_pos: bool = True


class Candidate(NamedTuple):
    """A text that may replace a word, and its score."""

    text: str
    score: float


def split_words(content: str) -> list[Word]:
    """Split `content` into words, as many as `content.split()`."""
    words = []
    for match in WORD.finditer(content):
        if match.group():
            before, core, after = match.groups()
            words.append(Word(before, core, after, match.start("core")))
    return words


def find_queries(
    content: str, resources: SynonymResources, min_characters: int
) -> dict[int, Query]:
    """Return position -> query of each word that may be replaced."""
    words = split_words(content)
    # A tagger was trained on text in which punctuation marks are separate tokens.
    tokens: list[str] = []
    token_of = []
    for word in words:
        core_token = len(tokens)
        if word.before:
            core_token += 1
        token_of.append(core_token)
        tokens += [text for text in (word.before, word.core, word.after) if text]
    tags = [tag for _, tag in resources.tag(tokens)]
    queries = {}
    for position, (word, token) in enumerate(zip(words, token_of, strict=True)):
        core = word.core.lower()
        if len(core) < min_characters or core in resources.stop_words:
            continue
        pos = PART_OF_SPEECH.get(tags[token][:2])
        if pos:
            queries[position] = Query(core, pos)
    return queries


def find_wordnet_synonyms(
    queries: Sequence[Query], resources: SynonymResources
) -> list[Replacement]:
    """Return the candidates of WordNet, by query.

    They are synonyms of 1 or 2 words, without stop words and the word itself.
    """
    pairs = []
    for index, query in enumerate(queries):
        synonyms = resources.lexicon.find_synonyms(query.word, query.pos)
        texts = {normalise_spelling(word) for word in synonyms}
        texts -= {query.word, normalise_spelling(query.word)}
        for text in sorted(texts):
            has_stop_word = not resources.stop_words.isdisjoint(text.split(" "))
            if TEXT.fullmatch(text) and not has_stop_word:
                pairs.append(Replacement(index, text))
    return pairs


def find_similar_words(
    queries: Sequence[Query], resources: SynonymResources, vectors: Vectors, options: Options
) -> list[Replacement]:
    """Return the candidates among the common words of the spaCy model, by query."""
    nlp = resources.require_pipeline()
    common = collect_common_words(
        nlp, resources.probabilities, resources.stop_words, options.min_log_probability
    )
    words = [query.word for query in queries]
    neighbours = find_neighbours(
        vectors.embed(words), words, common, options.neighbours, options.min_similarity
    )
    tags = tag_words(nlp, sorted({neighbour.word for neighbour in neighbours}))
    pairs = []
    for neighbour in neighbours:
        pos = PART_OF_SPEECH.get(tags[neighbour.word][:2])
        same_pos = pos == queries[neighbour.query].pos
        pairs.append(Replacement(neighbour.query, neighbour.word, same_pos))
    return pairs


def compute_polarities(texts: Sequence[str]) -> np.ndarray:
    """Return TextBlob's polarity of each text, float [N] in [-1, 1].

    It is 0 for words that TextBlob's lexicon lacks.
    """
    from textblob.en import sentiment

    return np.array([sentiment(text)[0] for text in texts])


def rank_candidates(
    queries: Sequence[Query],
    pairs: Sequence[Replacement],
    vectors: Vectors,
    weight: float,
    top: int,
) -> dict[Query, list[Candidate]]:
    """Return the `top` candidates of each query, the best first; equal scores alphabetically.

    Candidates of the same part of speech come before others. A query without a pair is left out.
    """
    # Each distinct word and text is looked up once. The arrays that end in _index are [pairs].
    distinct_texts, text_index = np.unique([pair.text for pair in pairs], return_inverse=True)
    distinct_words, word_of_query = np.unique(
        [query.word for query in queries], return_inverse=True
    )
    query_index = np.array([pair.query for pair in pairs], int)
    has_other_pos = np.array([not pair.same_pos for pair in pairs], bool)
    word_index = word_of_query[query_index]
    words = distinct_words.tolist()
    texts = distinct_texts.tolist()
    word_vectors = vectors.embed(words)[word_index]
    text_vectors = vectors.embed(texts)[text_index]
    similarity = np.einsum("nd,nd->n", word_vectors, text_vectors)
    word_polarity = compute_polarities(words)[word_index]
    text_polarity = compute_polarities(texts)[text_index]
    polarity_gap = np.abs(word_polarity - text_polarity)
    exact_score = weight * similarity.astype(float) + (1 - weight) * (1 - polarity_gap)
    score = np.round(exact_score, ROUND)
    best: dict[Query, list[Candidate]] = {}
    # By query, then by part of speech, then from the highest score, then alphabetically.
    for pair in np.lexsort((text_index, -score, has_other_pos, query_index)):
        candidates = best.setdefault(queries[int(query_index[pair])], [])
        if len(candidates) < top:
            candidates.append(Candidate(texts[int(text_index[pair])], float(score[pair])))
    return best


def build(contents: Sequence[str], resources: SynonymResources, settings: Options) -> pa.Table:
    """Build the table: one row per distinct content, in order, with the words that have candidates.

    Columns: content; positions, words, pos [n]; candidates, scores [n, up to top]. The same input
    gives the same rows. Raises UserError for a spaCy model without vectors that are needed.
    """
    if settings.vectors == "spacy":
        vectors = build_spacy_vectors(resources.require_pipeline())
    else:
        vectors = build_gloss_vectors(resources.lexicon)
    queries_of: dict[str, dict[int, Query]] = {}
    distinct_queries: set[Query] = set()
    for content in sorted(set(contents)):
        queries_of[content] = find_queries(content, resources, settings.min_characters)
        distinct_queries.update(queries_of[content].values())
    queries = sorted(distinct_queries)
    if settings.words == "spacy":
        pairs = find_similar_words(queries, resources, vectors, settings)
    else:
        pairs = find_wordnet_synonyms(queries, resources)
    best = rank_candidates(queries, pairs, vectors, settings.similarity_weight, settings.top)
    rows = [make_row(content, queries_of[content], best) for content in queries_of]
    texts = pa.list_(pa.string())
    columns = {
        "content": pa.string(),
        "positions": pa.list_(pa.int32()),
        "words": texts,
        "pos": texts,
        "candidates": pa.list_(texts),
        "scores": pa.list_(pa.list_(pa.float64())),
    }
    description = {
        "options": settings.model_dump(),
        "vectors": vectors.name,
        "contents": len(queries_of),
        "words": sum(len(content.split()) for content in queries_of),
        "words_with_candidates": sum(len(row["positions"]) for row in rows),
    }
    schema = pa.schema(columns, metadata={"candidates": json.dumps(description, sort_keys=True)})
    return pa.Table.from_pylist(rows, schema=schema)


def make_row(
    content: str, queries: dict[int, Query], best: dict[Query, list[Candidate]]
) -> dict[str, Any]:
    """Make the row of a content from its words that have candidates; see `build`."""
    row = {
        "content": content,
        "positions": [],
        "words": [],
        "pos": [],
        "candidates": [],
        "scores": [],
    }
    for position, query in queries.items():
        if query in best:
            row["positions"].append(position)
            row["words"].append(query.word)
            row["pos"].append(query.pos)
            row["candidates"].append([candidate.text for candidate in best[query]])
            row["scores"].append([candidate.score for candidate in best[query]])
    return row


def read_candidates(path: Path) -> Candidates:
    """Read the candidates from a Parquet file of `build`.

    Raises UserError if it is missing or another table.
    """
    try:
        table = pq.read_table(path)
        if not _has_candidates(table.schema):
            raise ValueError("other columns")
        candidates: Candidates = {}
        for row in table.select(list(TYPES)).to_pylist():
            by_position = dict(zip(row["positions"], row["candidates"], strict=True))
            candidates[row["content"]] = by_position
        return candidates
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; run the command candidates first") from error
    # TypeError: a value is missing.
    except (pa.ArrowException, OSError, TypeError, ValueError) as error:
        raise UserError(
            f"{path}: not a table of candidates; delete it and rerun candidates"
        ) from error


def _has_candidates(schema: pa.Schema) -> bool:
    """Return whether the table is one of `build`, with the columns that are read here."""
    if b"candidates" not in (schema.metadata or {}):
        return False
    types = {}
    for column in schema:
        if column.name in TYPES:
            text = str(column.type).replace("item:", "element:")
            types[column.name] = text.replace("int64", "int32")
    return types == TYPES
