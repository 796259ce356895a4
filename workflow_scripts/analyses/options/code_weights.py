"""Options of the analysis code_weights."""

from pydantic import Field, PositiveInt

from workflow_scripts.common.validation import Seed, SplitName, StrictModel


class Options(StrictModel):
    """The words of words.csv and gold.csv, and the sentences that are scored."""

    words: list[str] = Field([], description="Each is read alone, as `[CLS] word [SEP]`.")
    top: PositiveInt = 5  # sememes with the largest weights, which words.csv has of each word
    split: SplitName = "valid"
    sentences: PositiveInt = 500  # random first sentences of the split that are scored, at most
    seed: Seed = 0  # of the draw of sentences
    longest: PositiveInt = 64  # tokens of a sentence that are scored, its first ones
    without: list[str] = Field(
        [],
        description="Names of sememes; scores of the last layer leave out words that have one of "
        "them.",
    )
