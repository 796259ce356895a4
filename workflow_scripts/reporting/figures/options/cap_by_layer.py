"""Options of the figure cap_by_layer."""

from pydantic import Field

from workflow_scripts.common.validation import StrictModel
from workflow_scripts.interventions.settings import Pooling


class Options(StrictModel):
    """The poolings that are told apart."""

    poolings: list[Pooling] = Field(
        [],
        description="Each has a column of panels; without any, a panel is the mean over all.",
    )
