"""Options of the analysis attention_over_layers."""

from pydantic import PositiveInt

from workflow_scripts.common.validation import Seed, SplitName, StrictModel


class Options(StrictModel):
    """The data that the models read: some random pairs of a split."""

    split: SplitName = "test"
    sentences: PositiveInt = 500  # pairs, at most
    seed: Seed = 0  # of the draw of pairs
