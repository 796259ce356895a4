"""Settings of seq2seq tasks."""

from workflow_scripts.tasks.settings import CrossEntropySettings, Traits

TRAITS = Traits(
    ("exact_match", "log_likelihood"),
    metrics=("exact_match", "examples", "out_of_vocabulary_tokens", "structure_match"),
    reads=frozenset(
        {
            *("shuffle_rows", "also_keep", "compiled"),
            *("beam", "max_length", "max_length_ratio", "joined", "measures", "same_word"),
        }
    ),
    decoding=True,
)


class Settings(CrossEntropySettings):
    """Cross-entropy of the next target word."""
