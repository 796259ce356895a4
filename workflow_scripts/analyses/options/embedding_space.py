"""Options of the analysis embedding_space."""

from typing import Literal

from pydantic import Field

from workflow_scripts.common.validation import Seed, StrictModel

WordClasses = Literal["cogs", "scan"]


class ComparedWord(StrictModel):
    """A word whose code is compared with those of its peers, such as jump with the verbs."""

    word: str
    peers: list[str]
    name: str = Field(description="Of the peers, in the names of scores.")


class Options(StrictModel):
    """How words are mapped and classified, and which ones are compared."""

    classes: WordClasses = Field(
        "scan",
        description="`scan`: by the grammar; `cogs`: by the logical forms of the training data.",
    )
    seed: Seed = 0  # of t-SNE
    focus: ComparedWord | None = Field(None, description="A source word.")
    output: ComparedWord | None = Field(None, description="A target word, such as I_JUMP.")
