"""Settings of fine-tuning on sentences."""

from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.common.validation import AtLeastOne, StrictModel
from workflow_scripts.tasks.settings import Evaluation, KindSettings
from workflow_scripts.training.settings import RecomputingTraining


class Settings(StrictModel):
    """Prediction from an encoder's state of [CLS], by a head or as the cosine of two sentences."""

    # head: a class or a score. cosine: each sentence is read alone.
    prediction: Literal["head", "cosine"] = "head"
    head_layers: Literal[1, 2] = 1  # 2: with a tanh between them
    head_width: AtLeastOne = 768  # of the first of two layers
    # tokens of a sentence or a pair, with the special ones
    longest: Annotated[int, Field(ge=5, le=1_000_000)] = 128


KIND = KindSettings(
    problem=Settings,
    training=RecomputingTraining,
    evaluation=Evaluation,
    validation_metrics=("accuracy", "f1", "matthews", "pearson", "spearman"),
    metrics=(
        "accuracy",
        "accuracy_label_0",
        "auc",
        "f1",
        "matthews",
        "pearson",
        "spearman",
        "zero_states",
    ),
)
