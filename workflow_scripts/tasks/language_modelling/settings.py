"""Settings of pre-training on text."""

from workflow_scripts.tasks.settings import CrossEntropySettings, Traits

TRAITS = Traits(validation_metrics=("log_likelihood",))


class Settings(CrossEntropySettings):
    """Cross-entropy of every token given those before it."""
