"""Settings of pre-training on text. No torch here."""

from typing import Annotated

from pydantic import Field

from workflow_scripts.common.validation import Strict
from workflow_scripts.tasks.settings import Traits

TRAITS = Traits(validation_metrics=("log_likelihood",))


class Settings(Strict):
    """Cross-entropy of every token given those before it."""

    # Share of the probability that is spread over the vocabulary.
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0
