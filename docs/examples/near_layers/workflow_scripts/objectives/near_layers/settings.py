"""The keys that a method may have under `objective:`."""

from workflow_scripts.common.validation import NonNegative
from workflow_scripts.tasks.settings import ObjectiveOfKind


class Settings(ObjectiveOfKind):
    """weight: of the distance in the loss."""

    kind = "seq2seq"  # compute_loss reads the source of its batches
    weight: NonNegative = 0.1
