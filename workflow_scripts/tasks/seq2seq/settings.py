"""Settings of seq2seq tasks."""

from workflow_scripts.tasks.settings import CrossEntropySettings, Traits

TRAITS = Traits(
    ("exact_match", "log_likelihood"),
    # Those of `evaluation.measures` included.
    metrics=(
        *("bleu_char", "bleu_detokenised", "bleu_tokenised", "bleu_zh", "cter_aggregate", "cter_instance"),
        *("exact_match", "examples", "out_of_vocabulary_tokens", "structure_match"),
    ),
    reads=frozenset(
        {"shuffle_rows", "also_keep", "beam", "max_length", "max_length_ratio", "joined", "measures", "same_word"}
    ),
    decoding=True,
)


class Settings(CrossEntropySettings):
    """Cross-entropy of the next target word."""
