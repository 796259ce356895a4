"""Options of the figure score_by_share."""

from workflow_scripts.common.validation import SplitName, StrictModel


class Options(StrictModel):
    """The score that is drawn."""

    metric: str
    label: str = ""  # of the axis
    split: SplitName = "test"
