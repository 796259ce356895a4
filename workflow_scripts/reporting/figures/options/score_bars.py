"""Options of the figure score_bars."""

from pydantic import Field

from workflow_scripts.common.validation import SplitName, StrictModel


class Panel(StrictModel):
    """A row of axes, with the bars of one score."""

    title: str
    metric: str
    label: str  # of the axis
    split: SplitName = "test"


class Options(StrictModel):
    """The panels."""

    panels: list[Panel] = Field(min_length=1, description="From top to bottom.")
