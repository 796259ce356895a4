"""Settings of pre-training on text."""

from workflow_scripts.tasks.settings import CrossEntropySettings, Traits

TRAITS = Traits(("log_likelihood",), metrics=("perplexity",), reads=frozenset({"batch_sentences"}))


class Settings(CrossEntropySettings):
    """Cross-entropy of every token given those before it."""
