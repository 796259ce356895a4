"""Settings of pre-training on masked words."""

from typing import Annotated

from pydantic import Field

from workflow_scripts.common.validation import StrictModel
from workflow_scripts.tasks.settings import Evaluation, KindSettings
from workflow_scripts.training.settings import RecomputingTraining


class Settings(StrictModel):
    """BERT's pre-training on masked words and next sentences."""

    # whether the model also predicts if the second sentence follows
    next_sentence: bool = True
    # tokens of a pair, with the three special ones
    longest: Annotated[int, Field(ge=5, le=1_000_000)] = 128
    # whether a batch has the sememes of its words, which guided decomposition needs
    sememes: bool = False


KIND = KindSettings(
    problem=Settings,
    training=RecomputingTraining,
    evaluation=Evaluation,
    validation_metrics=("log_likelihood",),
    metrics=("cross_entropy", "mlm_accuracy", "nsp_accuracy"),
)
