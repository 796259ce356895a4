"""Options of the analysis constant_answers."""

from pydantic import Field

from workflow_scripts.common.validation import SplitName, StrictModel


class Options(StrictModel):
    """The splits whose inputs are answered."""

    splits: list[SplitName] = Field(["test"], min_length=1)
