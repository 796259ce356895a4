"""Options of the analysis constant_answers."""

from workflow_scripts.common.validation import SplitName, StrictModel


class Options(StrictModel):
    """The prompts that are answered."""

    split: SplitName = "test"
