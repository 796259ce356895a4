"""Make the table of replacement words of a data set, a Parquet file.

The options of `build` are described in `settings`.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.interventions.lexical_vectors import (
    Vectors,
    build_gloss_vectors,
    build_spacy_vectors,
    read_common_words,
)
from workflow_scripts.interventions.settings import WHERE, Options, is_installed
from workflow_scripts.interventions.synonym_resources import SynonymLexicon, SynonymResources
from workflow_scripts.interventions.synonym_rules import (
    TAGGER,
    find_queries,
    find_similar_words,
    find_wordnet_synonyms,
    rank_candidates,
)

if TYPE_CHECKING:
    from spacy.language import Language

# Columns that `read_candidates` reads.
TYPES = {"content": "string", "positions": "list<element: int32>", "candidates": "list<element: list<element: string>>"}
Candidates = dict[str, dict[int, list[str]]]  # content -> position of the word -> its candidates, the best first


def choose_vectors(
    options: Options, lexicon: SynonymLexicon, nlp: "Language | None" = None
) -> tuple[Vectors, "Language | None"]:
    """Return the word vectors, and the spaCy pipeline that they are from. Raises UserError if it is missing."""
    model = options.spacy_model
    if options.source == "wordnet" and (
        options.vectors == "glosses" or (options.vectors == "auto" and not nlp and not is_installed(model))
    ):
        return build_gloss_vectors(lexicon), None
    if not nlp:
        if not is_installed(model):
            raise UserError(f"{WHERE}: the spaCy model {model} is not installed; install it, or set vectors: glosses")
        import spacy

        try:
            nlp = spacy.load(model, exclude=["parser", "ner", "lemmatizer"])
        except Exception as error:  # a package that is no model, or one of another version, fails in any way
            said = " ".join(str(error).split())
            raise UserError(
                f"{WHERE}: spacy_model {model} is no model of this version of spaCy ({said}); name another one"
            ) from error
    if not nlp.vocab.vectors_length:
        raise UserError(f"{WHERE}: the spaCy model {model} has no vectors; name one that has, such as en_core_web_md")
    return build_spacy_vectors(nlp), nlp


def build(
    contents: Sequence[str], resources: SynonymResources, options: dict[str, Any], nlp: "Language | None" = None
) -> pa.Table:
    """Build the table: one row per distinct content, in order, with the words that have candidates.

    Columns: content; positions, words, pos [n]; candidates, scores [n, up to top]. The same input gives the same rows.
    `nlp` replaces the installed spaCy pipeline. Raises UserError for wrong options or a missing model.
    """
    settings = parse_as(Options, options, WHERE)
    vectors, nlp = choose_vectors(settings, resources.lexicon, nlp)
    by_content = {content: find_queries(content, resources, nlp) for content in sorted(set(contents))}
    queries = sorted({query for found in by_content.values() for query in found.values()})
    if settings.source == "wordnet":
        pairs = find_wordnet_synonyms(queries, resources, settings.satellites, settings.base_forms)
    else:
        if settings.frequencies is None:
            raise UserError(f"{WHERE}: source: vectors needs the key 'frequencies'; name a file of words and counts")
        path, least = Path(settings.frequencies), settings.min_log_probability
        vocabulary = read_common_words(path, nlp, least, resources.stop_words)
        pairs = find_similar_words(queries, resources, vectors, vocabulary, settings.min_similarity)
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
    columns = {"content": pa.string(), "positions": pa.list_(pa.int32()), "words": texts, "pos": texts}
    columns |= {"candidates": pa.list_(texts), "scores": pa.list_(pa.list_(pa.float64()))}
    description = {
        "options": settings.model_dump(),
        "vectors": vectors.name,
        "tags": "spacy" if nlp and TAGGER in nlp.pipe_names else "nltk",
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
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; run the command candidates first") from error
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a Parquet file; delete it and rerun candidates") from error
    types = {
        field.name: str(field.type).replace("item:", "element:").replace("int64", "int32")
        for field in table.schema
        if field.name in TYPES
    }
    if b"candidates" not in (table.schema.metadata or {}) or types != TYPES:
        raise UserError(f"{path}: not a table of candidates; delete it and rerun candidates")
    columns = (table[name].to_pylist() for name in ("content", "positions", "candidates"))
    return {content: dict(zip(at, texts, strict=True)) for content, at, texts in zip(*columns, strict=True)}
