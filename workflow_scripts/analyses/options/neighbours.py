"""Options of the analysis neighbours."""

from pydantic import Field, PositiveInt

from workflow_scripts.analyses.options.embedding_space import WordClasses
from workflow_scripts.common.validation import Seed, StrictModel


class Options(StrictModel):
    """How words are mapped and classified, and whose neighbours are listed."""

    words: list[str] = Field([], description="Those of neighbours.csv.")
    k: PositiveInt = 10  # neighbours of a word
    classes: WordClasses = "cogs"  # as in embedding_space
    seed: Seed = 0  # of t-SNE
