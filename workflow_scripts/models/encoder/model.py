"""Encoders with bidirectional attention: Hugging Face's BERT, RoBERTa and DistilBERT.

A folder holds config.json, model.safetensors and tokenizer.json. Weights of heads may be in the same file.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.models.encoder.settings import Settings
from workflow_scripts.models.hugging_face import (
    FROM_FOLDER,
    hide_library_messages,
    read_model_config,
    report_read_errors,
)

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

PAD = 0  # of bert-base-uncased and of the tokenizers that are trained here
# Dropout belongs to a training, not to the weights: names of its rates in the configurations of the families.
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout", "code_dropout")


def build_encoder_config(s: Settings, vocabulary: int) -> "PretrainedConfig":
    """Return the family's configuration with the sizes of `s` and the given vocabulary size."""
    from transformers import BertConfig, DistilBertConfig, RobertaConfig

    if s.family == "distilbert":
        return DistilBertConfig(
            n_layers=s.layers,
            n_heads=s.heads,
            dim=s.width,
            hidden_dim=s.feed_forward,
            dropout=s.dropout,
            attention_dropout=s.dropout,
            max_position_embeddings=s.positions,
            vocab_size=vocabulary,
            pad_token_id=PAD,
            initializer_range=s.deviation,
        )
    sizes = map_bert_sizes(s, vocabulary)
    if s.family == "roberta":
        # Its positions count from the padding's id on; it has no types of tokens.
        sizes |= {"max_position_embeddings": s.positions + PAD + 1, "type_vocab_size": 1}
        return RobertaConfig(**sizes, bos_token_id=None, eos_token_id=None)
    return BertConfig(**sizes)


def map_bert_sizes(s: Settings, vocabulary: int) -> dict[str, Any]:
    """Return the sizes of `s` under the names of BERT's configuration."""
    return {
        "vocab_size": vocabulary,
        "pad_token_id": PAD,
        "initializer_range": s.deviation,
        "num_hidden_layers": s.layers,
        "num_attention_heads": s.heads,
        "hidden_size": s.width,
        "intermediate_size": s.feed_forward,
        "hidden_dropout_prob": s.dropout,
        "attention_probs_dropout_prob": s.dropout,
        "max_position_embeddings": s.positions,
    }


def build(settings: dict, vocabulary: int) -> "PreTrainedModel":
    """Build an encoder with random weights, in training mode, without head and pooler. `settings`: see Settings."""
    return build_from_config(build_encoder_config(parse_as(Settings, settings, "model"), vocabulary))


def load_model(folder: Path, settings: dict) -> "PreTrainedModel":
    """Load the encoder of a folder, in training mode, with float32 weights and the dropout of `settings`.

    Raises UserError if a file is missing or broken, or if the model is of another family than `settings` says.
    """
    return load_encoder(folder, parse_as(Settings, settings, "model"), build_encoder_config)


def build_from_config(config: "PretrainedConfig") -> "PreTrainedModel":
    """Build a model with random weights, in training mode and without a pooler."""
    from transformers import AutoModel

    hide_library_messages()
    return AutoModel.from_config(config, dtype=torch.float32, **_without_pooler(config)).train()


def load_encoder(
    folder: Path, s: Settings, configure: Callable[[Settings, int], "PretrainedConfig"]
) -> "PreTrainedModel":
    """Load the encoder of a folder, as `load`, with the dropout rates of `configure(s, vocabulary)`."""
    from transformers import AutoModel

    hide_library_messages()
    for name in ("config.json", "model.safetensors"):
        if not (folder / name).is_file():
            raise UserError(f"{folder / name} does not exist; give the folder of a trained model")
    with report_read_errors(folder):
        config = read_model_config(folder, s.family)
        wanted = configure(s, config.vocab_size)
        for name in DROPOUTS:
            if hasattr(wanted, name):
                setattr(config, name, getattr(wanted, name))
        model, report = AutoModel.from_pretrained(
            folder, config=config, output_loading_info=True, **FROM_FOLDER, **_without_pooler(config)
        )
    if missing := sorted(report["missing_keys"]):
        raise UserError(f"{folder / 'model.safetensors'} has no {missing[0]}; make or fetch it again")
    return model.train()


def _without_pooler(config: "PretrainedConfig") -> dict[str, bool]:
    return {"add_pooling_layer": False} if config.model_type in ("bert", "roberta") else {}


def use_gradient_checkpointing(model: "PreTrainedModel") -> None:
    """Use gradient checkpointing for the blocks, and for CAT's codebooks and mixing.

    The backward pass reruns each block with the random numbers and the autocast of its first run.
    """
    model.activation_checkpointing_enable({"use_reentrant": False, "preserve_rng_state": True})
