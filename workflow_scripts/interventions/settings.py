"""The synonyms that each word of a data set may be replaced with: one table, made once, kept as a Parquet file.

A content is a definition or sentence without its template. Its words are what stands between white space; punctuation
glued to a word is not part of it. A word may be replaced if it has 3 characters or more, is no English stop word
(NLTK's list), and the tagger, shown the whole content, takes it for a noun, verb, adjective or adverb. The tagger is
that of the spaCy pipeline which gives the vectors, where it has one (the paper's way), else NLTK's.

Options of `build`:

source: `wordnet` (what the official code does): the words of all synsets of the word with that part of speech, in
  plain text, of 1 or 2 words. `vectors` (what the paper says): words of a spaCy model with a cosine above
  `min_similarity`, alphabetic, common by `frequencies`, and of the same part of speech, which here means that WordNet
  has them with it (a tagger cannot judge a word without context).
resources: `upstream` is WordNet, NLTK's stop words and its tagger; `stand_in` the made-up dictionary of the demo.
top: so many are kept, by similarity_weight * cosine + (1 - similarity_weight) * (1 - |difference of polarity|).
  Polarity is TextBlob's, in [-1, 1].
vectors: which cosine `wordnet` is ranked by. `auto` is the spaCy model where it is installed, else `glosses`; the table
  says which it was.
satellites: whether adjective satellites are adjectives. The official code compares `s` with `a` and so loses most
  adjectives: true mends that.
"""

from importlib.util import find_spec
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from workflow_scripts.common.validation import Seeds, StrictModel, require_unique

WHERE = "options of workflow_scripts.interventions.candidates"
SOURCES = {  # what is needed -> the files that hold it, the preferred one first
    "stop words": ["nltk/stopwords.zip"],
    "tagger": ["nltk/averaged_perceptron_tagger_eng.zip"],
    "WordNet": ["wordnet/wordnet-3.0-dict.tar.xz", "wordnet/wordnet.zip"],
}


def _pooled_blocks(wanted: str | int | list[int]) -> str | int | list[int]:
    if isinstance(wanted, int) and wanted < 1:
        raise ValueError("a number of blocks is at least 1")
    if isinstance(wanted, list) and (not wanted or min(wanted) < 0):
        raise ValueError("a list names one block or more, each 0 or above")
    return require_unique(wanted) if isinstance(wanted, list) else wanted


class Intervention(StrictModel):
    """What is changed in a trained model or in its prompts to see what it answers then."""

    split: str = "test"
    blocks: Annotated[Literal["all"] | int | list[int], AfterValidator(_pooled_blocks)] = Field(
        "all",
        description="CAP pools before each block but the first, or before so many of them, evenly spread, or before "
        "those of a list, which may hold block 0: before it the embeddings are pooled.",
    )
    poolings: Annotated[list[Literal["max", "mean", "sum"]], AfterValidator(require_unique)] = Field(
        ["max", "mean", "sum"], min_length=1
    )
    bos_in_first_word: bool = Field(False, description="Whether CAP pools BOS with word 1 (official code: yes).")
    rates: Annotated[list[Annotated[float, Field(gt=0, le=1)]], AfterValidator(require_unique)] = Field(
        [0.25, 0.4], min_length=1, description="Shares of the words that synonyms take the place of."
    )
    seeds: Seeds = Field([42, 123, 19, 7, 14, 23], min_length=1, description="Of the choice of words and synonyms.")
    may_be_label: bool = Field(False, description="Whether a synonym may be the answer (official code: yes).")
    candidates: dict[str, Any] = Field({}, description="Options of workflow_scripts.interventions.candidates.")


class Options(StrictModel):
    """See the module's docstring."""

    source: Literal["wordnet", "vectors"] = "wordnet"
    resources: Literal["upstream", "stand_in"] = "upstream"
    top: int = Field(5, ge=1)
    similarity_weight: float = Field(0.6, ge=0, le=1)
    vectors: Literal["auto", "spacy", "glosses"] = "auto"
    spacy_model: str = "en_core_web_md"
    satellites: bool = True
    base_forms: bool = True
    min_similarity: float = Field(0.6, ge=-1, lt=1, description="Of the source vectors; a cosine.")
    frequencies: str | None = Field(
        None, description="Of the source vectors: file with a word, a tab, its count a line."
    )
    min_log_probability: float = Field(-15.0, description="Of the source vectors: natural logarithm of count / total.")


def list_candidate_sources(options: Options) -> list[str]:
    """The source files that `build` needs, as <dataset>/<file>."""
    return [] if options.resources == "stand_in" else [names[0] for names in SOURCES.values()]


def is_installed(package: str) -> bool:
    """Whether there is a package of this name."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # no package holds it, or no package could have the name
        return False
