"""Options of the analysis mean_scores."""

from typing import Annotated

from pydantic import Field

from workflow_scripts.common.validation import SplitName, StrictModel


class AveragedScore(StrictModel):
    """A score of a run that goes into a mean."""

    task: str
    split: SplitName
    subset: str
    metric: str


class Options(StrictModel):
    """The means, and the models that are compared by them."""

    means: dict[str, Annotated[list[AveragedScore], Field(min_length=1)]] = Field(
        {}, description="Name -> scores to average."
    )
    over: dict[str, list[str]] = Field(
        {}, description="Name of a model -> other models, over which its gain is computed."
    )
