"""Settings of pre-training on text."""

from workflow_scripts.tasks.settings import CrossEntropySettings, Evaluation, KindSettings
from workflow_scripts.training.settings import TextTraining


class Settings(CrossEntropySettings):
    """Cross-entropy of every token given those before it."""


KIND = KindSettings(
    problem=Settings,
    training=TextTraining,
    evaluation=Evaluation,
    validation_metrics=("log_likelihood",),
    metrics=("perplexity",),
)
