"""Settings of interventions, and of the candidate words that may replace the words of a data set.

A content is a definition or sentence without its template. Its words are separated by white space,
without the punctuation around them. A word may be replaced if it has at least 3 characters, is not
an English stop word (NLTK's list), and is tagged in its content as a noun, verb, adjective or
adverb. The tagger is that of the spaCy pipeline with the vectors, if it has one (as in the paper),
else NLTK's.

Candidates are the words of all synsets of the word with its part of speech, in plain text, of 1 or
2 words. Adjective satellites are adjectives; the official code compares `s` with `a`, and so loses
most adjectives.

Options of `candidates.build`:

resources: `upstream` is WordNet, NLTK's stop words and its tagger; `stand_in` is the small
    dictionary of the demo.
top: how many candidates of a word are kept, ranked by similarity_weight * cosine +
    (1 - similarity_weight) * (1 - |difference of polarity|). Polarity is TextBlob's, in [-1, 1].
vectors: the cosine that ranks. `auto` is the spaCy model if it is installed, else `glosses`; the
    table records the choice.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from workflow_scripts.common.validation import Seeds, StrictModel, parse_as, require_unique

# Of the scores of both interventions.
METRICS = (
    "consistency",
    "constrained",
    "constrained_consistency",
    "constrained_cv",
    "constrained_cv_high",
    "constrained_cv_low",
    "cv",
    "cv_high",
    "cv_low",
    "exact_match",
    "realised_rate",
)
PLACE = "options of workflow_scripts.interventions.candidates"  # in messages
STOP_WORDS = "nltk/stopwords.zip"
TAGGER = "nltk/averaged_perceptron_tagger_eng.zip"
WORDNET = "wordnet/wordnet-3.0-dict.tar.xz"


def _check_blocks(blocks: str | int | list[int]) -> str | int | list[int]:
    if isinstance(blocks, int) and blocks < 1:
        raise ValueError("a number of blocks is at least 1")
    if isinstance(blocks, list):
        if not blocks or min(blocks) < 0:
            raise ValueError("a list names one block or more, each 0 or above")
        return require_unique(blocks)
    return blocks


Blocks = Annotated[Literal["all"] | int | list[int], AfterValidator(_check_blocks)]
Pooling = Literal["max", "mean", "sum"]
Poolings = Annotated[list[Pooling], AfterValidator(require_unique)]
Rate = Annotated[float, Field(gt=0, le=1)]
Rates = Annotated[list[Rate], AfterValidator(require_unique)]


class Intervention(StrictModel):
    """Changes of a trained model or of its prompts, under which its answers are scored."""

    split: str = "test"
    blocks: Blocks = Field(
        "all",
        description="CAP pools before each block except the first, before a number of evenly "
        "spaced blocks, or before the blocks of a list. Before block 0 the embeddings are pooled.",
    )
    poolings: Poolings = Field(["max", "mean", "sum"], min_length=1)
    rates: Rates = Field(
        [0.25, 0.4],
        min_length=1,
        description="Shares of the words that are replaced by synonyms.",
    )
    seeds: Seeds = Field(
        [42, 123, 19, 7, 14, 23], min_length=1, description="Of the choice of words and synonyms."
    )
    candidates: dict[str, Any] = Field(
        {}, description="Options of workflow_scripts.interventions.candidates."
    )


class Options(StrictModel):
    """Options of the candidates; see the module's docstring."""

    resources: Literal["upstream", "stand_in"] = "upstream"
    top: int = Field(5, ge=1)
    similarity_weight: float = Field(0.6, ge=0, le=1)
    vectors: Literal["auto", "spacy", "glosses"] = "auto"
    spacy_model: str = "en_core_web_md"


@dataclass(frozen=True)
class CandidateSpec:
    """What the replacement words of a task are made from, in addition to its data.

    All methods share them.
    """

    split: str
    options: Options

    @property
    def sources(self) -> list[str]:
        """The source files that `candidates.build` needs, as <dataset>/<file>."""
        if self.options.resources == "stand_in":
            return []
        return [STOP_WORDS, TAGGER, WORDNET]

    def to_json(self) -> dict[str, Any]:
        """Return the content for a JSON file, with the options that were set."""
        options = self.options.model_dump(mode="json", exclude_unset=True)
        return {"split": self.split, "options": options, "sources": self.sources}


class _CandidateContent(StrictModel):
    """The content of a CandidateSpec in a JSON file."""

    split: str
    options: Options
    sources: list[str]


def read_candidate_spec(content: Any, file: str | Path) -> CandidateSpec:
    """Read a CandidateSpec from the content of a file.

    Raises UserError for wrong keys and values.
    """
    parsed = parse_as(_CandidateContent, content, file)
    return CandidateSpec(parsed.split, parsed.options)


def is_installed(package: str) -> bool:
    """Return whether a package of this name is installed."""
    try:
        return find_spec(package) is not None
    # Its parent package is missing, or no package can have the name.
    except (ImportError, ValueError):
        return False
