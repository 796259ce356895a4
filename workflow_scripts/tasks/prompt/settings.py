"""Settings of fine-tuning on prompts. No torch here."""

from typing import Annotated

from pydantic import Field

from workflow_scripts.common.validation import Strict
from workflow_scripts.tasks.settings import Traits

TRAITS = Traits(validation_metrics=("exact_match",), gradient_checkpointing=True)


class Settings(Strict):
    """Cross-entropy of the one token that answers a prompt."""

    # Share of the probability that is spread over the vocabulary.
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0
