"""Settings of fine-tuning on prompts. No torch here."""

from workflow_scripts.tasks.settings import CrossEntropySettings, Traits

TRAITS = Traits(
    ("exact_match",),
    metrics=("constrained", "exact_match"),
    reads=frozenset({"batch_sentences", "gradient_checkpointing", "match"}),
)


class Settings(CrossEntropySettings):
    """Cross-entropy of the one token that answers a prompt."""
