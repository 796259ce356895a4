"""Encoders with bidirectional attention: Hugging Face's BERT, RoBERTa and DistilBERT, and CAT beside them.

A folder holds config.json, model.safetensors and tokenizer.json. Weights of heads may lie in the same file.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.encoder_settings import SETTINGS, EncoderSettings
from workflow_scripts.models.hugging_face import FROM_FOLDER, quiet, read_configuration, read_errors
from workflow_scripts.models.settings import read_settings

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

CAT = "workflow_scripts.models.cat"  # named, not imported: no other model depends on its code
PAD = 0  # of bert-base-uncased and of the tokenizers that are trained here
# Dropout belongs to a training, not to the weights: names of its rates in the configurations of the families.
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout", "code_dropout")
READOUTS = {"mix": "last_hidden_state", "cont": "contextual", "comp": "compositional"}  # of CAT: name -> output


def read_encoder_settings(settings: dict) -> EncoderSettings:
    """The settings of either module, by their family. Raises UserError for a wrong key or value."""
    return read_settings(SETTINGS[CAT if settings.get("family") == "cat" else __name__], settings, "model")


def configuration(s: EncoderSettings, vocabulary: int) -> "PretrainedConfig":
    """The family's configuration with the sizes of `s` and a vocabulary of that many tokens."""
    from transformers import BertConfig, DistilBertConfig, RobertaConfig

    common = {"vocab_size": vocabulary, "pad_token_id": PAD, "initializer_range": s.deviation}
    if s.family == "distilbert":
        return DistilBertConfig(
            n_layers=s.layers,
            n_heads=s.heads,
            dim=s.width,
            hidden_dim=s.feed_forward,
            dropout=s.dropout,
            attention_dropout=s.dropout,
            max_position_embeddings=s.positions,
            **common,
        )
    common |= {
        "num_hidden_layers": s.layers,
        "num_attention_heads": s.heads,
        "hidden_size": s.width,
        "intermediate_size": s.feed_forward,
        "hidden_dropout_prob": s.dropout,
        "attention_probs_dropout_prob": s.dropout,
        "max_position_embeddings": s.positions,
    }
    if s.family == "cat":
        return import_module(CAT).configuration(s, common)
    if s.family == "roberta":
        # Its positions count from the padding's id on; it has no types of tokens.
        return RobertaConfig(
            **common | {"max_position_embeddings": s.positions + PAD + 1, "type_vocab_size": 1},
            bos_token_id=None,
            eos_token_id=None,
        )
    return BertConfig(**common)


def build(settings: dict, vocabulary: int) -> "PreTrainedModel":
    """An encoder drawn from torch's global generator, in training mode, without any head or pooler."""
    from transformers import AutoModel

    quiet()
    s = read_encoder_settings(settings)
    config = configuration(s, vocabulary)
    return AutoModel.from_config(config, dtype=torch.float32, **_without_pooler(s.family)).train()


def load(folder: Path, settings: dict) -> "PreTrainedModel":
    """The encoder of a folder, in training mode, with float32 weights and the dropout of `settings`.

    Raises UserError when a file is missing or broken, or when the model is of another family than `settings` says.
    """
    from transformers import AutoModel

    quiet()
    own = read_encoder_settings(settings)
    family = own.family
    if family == "cat":
        import_module(CAT)  # where the library learns of the family
    for name in ("config.json", "model.safetensors"):
        if not (folder / name).is_file():
            raise UserError(f"{folder / name} does not exist; give the folder of a trained model")
    with read_errors(folder):
        config = read_configuration(folder, family)
        wanted = configuration(own, config.vocab_size)
        for name in DROPOUTS:
            if hasattr(wanted, name):
                setattr(config, name, getattr(wanted, name))
        model, report = AutoModel.from_pretrained(
            folder, config=config, output_loading_info=True, **FROM_FOLDER, **_without_pooler(family)
        )
    if missing := sorted(report["missing_keys"]):
        raise UserError(f"{folder / 'model.safetensors'} has no {missing[0]}; make or fetch it again")
    return model.train()


def _without_pooler(family: str) -> dict[str, bool]:
    return {"add_pooling_layer": False} if family in ("bert", "roberta") else {}


def checkpoint_blocks(model: "PreTrainedModel") -> None:
    """Let training keep the inputs of the blocks alone, and of CAT's codebooks and mixing: the backward pass runs each
    again, with the random numbers, and under the autocast, of its first run."""
    model.activation_checkpointing_enable({"use_reentrant": False, "preserve_rng_state": True})


def hidden(model: "PreTrainedModel", ids: Tensor, attention_mask: Tensor, token_types: Tensor) -> dict[str, Tensor]:
    """The states of the last layer by readout, each [B, S, d]: `mix`, `cont` and `comp` of CAT, `last` of the others.

    ids, token_types [B, S] int64; attention_mask [B, S], 0 on padding. Models without types of tokens leave these out.
    """
    family = model.config.model_type
    types = {"token_type_ids": token_types} if family in ("bert", "cat") else {}
    output = model(input_ids=ids, attention_mask=attention_mask, **types)
    if family == "cat":
        return {name: output[field] for name, field in READOUTS.items()}
    return {"last": output.last_hidden_state}
