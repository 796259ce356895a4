"""Make the table of replacement words of a data set.

It has the words that may be replaced, and by what, the best first. The options of `build` are
described in `settings`.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.formats.wordnet import Lexicon
from workflow_scripts.interventions.settings import PLACE, Options, is_installed
from workflow_scripts.interventions.synonym_resources import (
    PART_OF_SPEECH,
    SynonymResources,
    Vectors,
    build_gloss_vectors,
    build_spacy_vectors,
    normalise_spelling,
)

if TYPE_CHECKING:
    from spacy.language import Language

SPACY_TAGGER = "tagger"  # the name of spaCy's component
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


class Candidate(NamedTuple):
    """A text that may replace a word, and its score."""

    text: str
    score: float


def split_words(content: str) -> list[Word]:
    """Split `content` into words, as many as `content.split()`."""
    words = []
    for match in WORD.finditer(content):
        if match.group():
            words.append(Word(*match.groups(), match.start("core")))
    return words


def find_queries(
    content: str, resources: SynonymResources, nlp: "Language | None" = None
) -> dict[int, Query]:
    """Return position -> query of each word that may be replaced.

    The tagger is that of `nlp`, if it has one, else that of `resources`.
    """
    words = split_words(content)
    # The tagger was trained on text in which punctuation marks are separate tokens.
    tokens: list[str] = []
    token_of = []
    for word in words:
        core_token = len(tokens)
        if word.before:
            core_token += 1
        token_of.append(core_token)
        tokens += [text for text in (word.before, word.core, word.after) if text]
    tags = _tag(tokens, resources, nlp)
    queries = {}
    for position, (word, token) in enumerate(zip(words, token_of, strict=True)):
        core = word.core.lower()
        if len(core) < 3 or core in resources.stop_words:
            continue
        pos = PART_OF_SPEECH.get(tags[token][:2])
        if pos:
            queries[position] = Query(core, pos)
    return queries


def _tag(tokens: list[str], resources: SynonymResources, nlp: "Language | None") -> list[str]:
    """Return the Penn Treebank tag of each token."""
    if has_tagger(nlp):
        from spacy.tokens import Doc

        return [token.tag_ for token in nlp(Doc(nlp.vocab, words=tokens))]
    return [tag for _, tag in resources.tag(tokens)]


def has_tagger(nlp: "Language | None") -> bool:
    """Return whether there is a spaCy pipeline, and it has a tagger."""
    return nlp is not None and SPACY_TAGGER in nlp.pipe_names


def find_wordnet_synonyms(
    queries: Sequence[Query], resources: SynonymResources
) -> list[tuple[int, str]]:
    """Return (index of a query, candidate), in order.

    Candidates are synonyms of 1 or 2 words, without stop words and the word itself.
    """
    pairs = []
    for index, query in enumerate(queries):
        synonyms = resources.lexicon.find_synonyms(query.word, query.pos)
        texts = {normalise_spelling(word) for word in synonyms}
        texts -= {query.word, normalise_spelling(query.word)}
        for text in sorted(texts):
            has_stop_word = not resources.stop_words.isdisjoint(text.split(" "))
            if TEXT.fullmatch(text) and not has_stop_word:
                pairs.append((index, text))
    return pairs


def compute_polarities(texts: Sequence[str]) -> np.ndarray:
    """Return TextBlob's polarity of each text, float [N] in [-1, 1].

    It is 0 for words that TextBlob's lexicon lacks.
    """
    from textblob.en import sentiment

    return np.array([sentiment(text)[0] for text in texts])


def rank_candidates(
    queries: Sequence[Query],
    pairs: Sequence[tuple[int, str]],
    vectors: Vectors,
    weight: float,
    top: int,
) -> dict[Query, list[Candidate]]:
    """Return the `top` candidates of each query, the best first; equal scores alphabetically.

    pairs: (index of a query, text that may replace its word). A query without a pair is left out.
    """
    # Each distinct word and text is looked up once. The arrays that end in _index are [pairs].
    distinct_texts, text_index = np.unique([text for _, text in pairs], return_inverse=True)
    distinct_words, word_of_query = np.unique(
        [query.word for query in queries], return_inverse=True
    )
    query_index = np.array([index for index, _ in pairs], int)
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
    # By query, then from the highest score, then alphabetically.
    for pair in np.lexsort((text_index, -score, query_index)):
        candidates = best.setdefault(queries[query_index[pair]], [])
        if len(candidates) < top:
            candidates.append(Candidate(texts[text_index[pair]], float(score[pair])))
    return best


def choose_vectors(
    options: Options, lexicon: Lexicon, nlp: "Language | None" = None
) -> tuple[Vectors, "Language | None"]:
    """Return the word vectors, and the spaCy pipeline that they are from: None for glosses.

    nlp: a pipeline in place of the installed one. Raises UserError if the pipeline is missing and
    the options demand it, or if it has no vectors.
    """
    model = options.spacy_model
    if options.vectors == "glosses":
        return build_gloss_vectors(lexicon), None
    if not nlp:
        if not is_installed(model):
            if options.vectors == "auto":
                return build_gloss_vectors(lexicon), None
            raise UserError(
                f"{PLACE}: the spaCy model {model} is not installed; "
                "install it, or set vectors: glosses"
            )
        nlp = load_spacy_model(model)
    if not nlp.vocab.vectors_length:
        raise UserError(
            f"{PLACE}: the spaCy model {model} has no vectors; "
            "name one that has, such as en_core_web_md"
        )
    return build_spacy_vectors(nlp), nlp


def load_spacy_model(model: str) -> "Language":
    """Load an installed spaCy pipeline. Raises UserError if that fails."""
    import spacy

    try:
        return spacy.load(model, exclude=["parser", "ner", "lemmatizer"])
    # A package that is no model, or one of another version, fails in any way.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"{PLACE}: spacy_model {model} is no model of this version of spaCy ({reason}); "
            "name another one"
        ) from error


def build(
    contents: Sequence[str],
    resources: SynonymResources,
    settings: Options,
    nlp: "Language | None" = None,
) -> pa.Table:
    """Build the table: one row per distinct content, in order, with the words that have candidates.

    Columns: content; positions, words, pos [n]; candidates, scores [n, up to top]. The same input
    gives the same rows. `nlp` replaces the installed spaCy pipeline. Raises UserError for a missing
    model.
    """
    vectors, nlp = choose_vectors(settings, resources.lexicon, nlp)
    queries_of: dict[str, dict[int, Query]] = {}
    distinct_queries: set[Query] = set()
    for content in sorted(set(contents)):
        queries_of[content] = find_queries(content, resources, nlp)
        distinct_queries.update(queries_of[content].values())
    queries = sorted(distinct_queries)
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
        "tags": "spacy" if has_tagger(nlp) else "nltk",
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
