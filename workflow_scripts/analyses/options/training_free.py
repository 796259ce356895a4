"""Options of the analysis training_free."""

from workflow_scripts.common.validation import SplitName, StrictModel


class Options(StrictModel):
    """The data that are scored."""

    split: SplitName = "test"
