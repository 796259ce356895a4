"""Make the table of replacement words of a data set: which words may be replaced, by what, and how these are ranked.

The options of `build` are described in `settings`.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.formats.wordnet import Lexicon
from workflow_scripts.interventions.settings import WHERE, Options, is_installed
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
Candidates = dict[
    str, dict[int, list[str]]
]  # content -> position of the word -> its candidates, the best first


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
    return [
        Word(*match.groups(), match.start("core"))
        for match in WORD.finditer(content)
        if match.group()
    ]


def find_queries(
    content: str, resources: SynonymResources, nlp: "Language | None" = None
) -> dict[int, Query]:
    """Return position -> query of each word that may be replaced, by the tagger of `nlp`, else of `resources`."""
    words = split_words(content)
    # The tagger was trained on text in which punctuation marks are separate tokens.
    tokens: list[str] = []
    token_of = []
    for word in words:
        token_of.append(len(tokens) + bool(word.before))
        tokens += filter(None, word[:3])
    if nlp and SPACY_TAGGER in nlp.pipe_names:
        from spacy.tokens import Doc

        tags = [token.tag_ for token in nlp(Doc(nlp.vocab, words=tokens))]
    else:
        tags = [tag for _, tag in resources.tag(tokens)]
    found = {}
    for position, (word, token) in enumerate(zip(words, token_of, strict=True)):
        core, pos = word.core.lower(), PART_OF_SPEECH.get(tags[token][:2]) if word.core else None
        if pos and len(core) >= 3 and core not in resources.stop_words:
            found[position] = Query(core, pos)
    return found


def find_wordnet_synonyms(
    queries: Sequence[Query], resources: SynonymResources
) -> list[tuple[int, str]]:
    """Return (index of a query, candidate), in order: synonyms of 1 or 2 words, no stop words, not itself."""
    pairs = []
    for index, query in enumerate(queries):
        own = {query.word, normalise_spelling(query.word)}
        texts = {
            normalise_spelling(word)
            for word in resources.lexicon.find_synonyms(query.word, query.pos)
        }
        fitting = (text for text in sorted(texts - own) if TEXT.fullmatch(text))
        pairs += [
            (index, text)
            for text in fitting
            if not resources.stop_words.intersection(text.split(" "))
        ]
    return pairs


def compute_polarities(texts: Sequence[str]) -> np.ndarray:
    """Return TextBlob's polarity of each text, float [N] in [-1, 1]; 0 for words that its lexicon lacks."""
    from textblob.en import sentiment

    return np.array([sentiment(text)[0] for text in texts])


def rank_candidates(
    queries: Sequence[Query],
    pairs: Sequence[tuple[int, str]],
    vectors: Vectors,
    weight: float,
    top: int,
) -> dict[Query, list[tuple[str, float]]]:
    """Return the `top` candidates of each query with their scores, best first; equal scores alphabetically."""
    texts, candidate = np.unique([text for _, text in pairs], return_inverse=True)
    words, of_query = np.unique([query.word for query in queries], return_inverse=True)
    query = np.array([index for index, _ in pairs], int)
    texts, words, word = texts.tolist(), words.tolist(), of_query[query]
    similarity = np.einsum("nd,nd->n", vectors.embed(words)[word], vectors.embed(texts)[candidate])
    polarity = compute_polarities(words)[word] - compute_polarities(texts)[candidate]
    score = np.round(
        weight * similarity.astype(float) + (1 - weight) * (1 - np.abs(polarity)), ROUND
    )
    found: dict[Query, list[tuple[str, float]]] = {}
    for i in np.lexsort((candidate, -score, query)):
        chosen = found.setdefault(queries[query[i]], [])
        if len(chosen) < top:
            chosen.append((texts[candidate[i]], float(score[i])))
    return found


def choose_vectors(
    options: Options, lexicon: Lexicon, nlp: "Language | None" = None
) -> tuple[Vectors, "Language | None"]:
    """Return the word vectors, and the spaCy pipeline that they are from. Raises UserError if it is missing."""
    model = options.spacy_model
    if options.vectors == "glosses" or (
        options.vectors == "auto" and not nlp and not is_installed(model)
    ):
        return build_gloss_vectors(lexicon), None
    if not nlp:
        if not is_installed(model):
            raise UserError(
                f"{WHERE}: the spaCy model {model} is not installed; install it, or set vectors: glosses"
            )
        import spacy

        try:
            nlp = spacy.load(model, exclude=["parser", "ner", "lemmatizer"])
        except (
            Exception
        ) as error:  # a package that is no model, or one of another version, fails in any way
            said = " ".join(str(error).split())
            raise UserError(
                f"{WHERE}: spacy_model {model} is no model of this version of spaCy ({said}); name another one"
            ) from error
    if not nlp.vocab.vectors_length:
        raise UserError(
            f"{WHERE}: the spaCy model {model} has no vectors; name one that has, such as en_core_web_md"
        )
    return build_spacy_vectors(nlp), nlp


def build(
    contents: Sequence[str],
    resources: SynonymResources,
    settings: Options,
    nlp: "Language | None" = None,
) -> pa.Table:
    """Build the table: one row per distinct content, in order, with the words that have candidates.

    Columns: content; positions, words, pos [n]; candidates, scores [n, up to top]. The same input gives the same rows.
    `nlp` replaces the installed spaCy pipeline. Raises UserError for a missing model.
    """
    vectors, nlp = choose_vectors(settings, resources.lexicon, nlp)
    by_content = {
        content: find_queries(content, resources, nlp) for content in sorted(set(contents))
    }
    queries = sorted({query for found in by_content.values() for query in found.values()})
    pairs = find_wordnet_synonyms(queries, resources)
    chosen = rank_candidates(queries, pairs, vectors, settings.similarity_weight, settings.top)
    rows = []
    for content, found in by_content.items():
        eligible = {position: query for position, query in found.items() if query in chosen}
        rows.append(
            {
                "content": content,
                "positions": list(eligible),
                "words": [query.word for query in eligible.values()],
                "pos": [query.pos for query in eligible.values()],
                "candidates": [[text for text, _ in chosen[query]] for query in eligible.values()],
                "scores": [[score for _, score in chosen[query]] for query in eligible.values()],
            }
        )
    texts = pa.list_(pa.string())
    columns = {
        "content": pa.string(),
        "positions": pa.list_(pa.int32()),
        "words": texts,
        "pos": texts,
    }
    columns |= {"candidates": pa.list_(texts), "scores": pa.list_(pa.list_(pa.float64()))}
    description = {
        "options": settings.model_dump(),
        "vectors": vectors.name,
        "tags": "spacy" if nlp and SPACY_TAGGER in nlp.pipe_names else "nltk",
        "contents": len(by_content),
        "words": sum(len(content.split()) for content in by_content),
        "words_with_candidates": sum(len(row["positions"]) for row in rows),
    }
    schema = pa.schema(columns, metadata={"candidates": json.dumps(description, sort_keys=True)})
    return pa.Table.from_pylist(rows, schema=schema)


def read_candidates(path: Path) -> Candidates:
    """Read the candidates from a Parquet file of `build`. Raises UserError if it is missing or another table."""
    try:
        table = pq.read_table(path)
        types = {
            field.name: str(field.type).replace("item:", "element:").replace("int64", "int32")
            for field in table.schema
            if field.name in TYPES
        }
        if b"candidates" not in (table.schema.metadata or {}) or types != TYPES:
            raise ValueError("other columns")
        columns = (table[name].to_pylist() for name in ("content", "positions", "candidates"))
        return {
            content: dict(zip(at, texts, strict=True))
            for content, at, texts in zip(*columns, strict=True)
        }
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; run the command candidates first") from error
    except (
        pa.ArrowException,
        OSError,
        TypeError,
        ValueError,
    ) as error:  # TypeError: a value is missing
        raise UserError(
            f"{path}: not a table of candidates; delete it and rerun candidates"
        ) from error
