"""Settings of seq2seq tasks."""

from workflow_scripts.tasks.settings import CrossEntropySettings, Traits

TRAITS = Traits(validation_metrics=("exact_match", "log_likelihood"), decoding=True)


class Settings(CrossEntropySettings):
    """Cross-entropy of the next target word."""
