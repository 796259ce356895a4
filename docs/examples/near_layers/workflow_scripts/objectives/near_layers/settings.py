"""The keys that a method may have under `objective:`."""

from workflow_scripts.common.validation import NonNegative, StrictModel


class Settings(StrictModel):
    """weight: of the distance in the loss."""

    weight: NonNegative = 0.1
