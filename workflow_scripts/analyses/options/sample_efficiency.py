"""Options of the analysis sample_efficiency."""

from typing import Annotated

from pydantic import Field

from workflow_scripts.common.validation import SplitName, StrictModel


class Options(StrictModel):
    """The sizes of training sets, and the score that is compared between them."""

    sizes: dict[str, Annotated[list[str], Field(min_length=2)]] = Field(
        {},
        description="Name -> the tasks of one data set, from the smallest training set to the "
        "largest.",
    )
    split: dict[str, SplitName] = Field(
        {}, description="Of each name of `sizes`; of those that are not here it is `test`."
    )
    metric: str = "accuracy"
    without: list[str] = ["constant"]  # readouts that are left out
