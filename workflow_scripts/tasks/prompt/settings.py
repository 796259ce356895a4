"""Settings of fine-tuning on prompts. No torch here."""

from workflow_scripts.tasks.settings import CrossEntropySettings, Traits

TRAITS = Traits(validation_metrics=("exact_match",), gradient_checkpointing=True)


class Settings(CrossEntropySettings):
    """Cross-entropy of the one token that answers a prompt."""
