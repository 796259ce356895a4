"""Causal language models of four Hugging Face families, with random weights or of a folder."""

from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.causal_lm.settings import Settings
from workflow_scripts.models.hugging_face import (
    FAST_TOKENIZER,
    FROM_FOLDER,
    check_loaded,
    map_sizes,
    read_model_config,
    report_read_errors,
)

# Ids of the tokenizers that are trained here. Tokenizers from the hub have their own.
BOS, EOS, PAD, UNK = range(4)
# The same function as gelu_new of GPT-2's configuration, as one kernel instead of eight.
FUSED_GELU = "gelu_pytorch_tanh"


def build(settings: Settings, vocabulary: int) -> PreTrainedModel:
    """Build a model with random float32 weights, in training mode."""
    ids = {"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD}
    if settings.family == "gpt2":
        own = {
            "n_inner": settings.feed_forward,
            "activation_function": FUSED_GELU,
            "resid_pdrop": settings.dropout,
            "embd_pdrop": settings.dropout,
            "attn_pdrop": settings.dropout,
        }
    else:
        own = {
            "num_key_value_heads": settings.key_value_heads or settings.heads,
            "head_dim": settings.width // settings.heads,
            "intermediate_size": settings.feed_forward,
            "attention_dropout": settings.dropout,
            "tie_word_embeddings": True,
        }
    config = AutoConfig.for_model(settings.family, **ids, **map_sizes(settings, vocabulary), **own)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32).train()


def load_causal_lm(folder: Path, family: str) -> PreTrainedModel:
    """Load a folder's model, float32, in training mode.

    Raises UserError for broken files or another family.
    """
    with report_read_errors(folder):
        config = read_model_config(folder, family)
        if not (folder / "tokenizer.json").is_file():
            raise UserError(f"{folder / 'tokenizer.json'} does not exist; {FAST_TOKENIZER}")
        if getattr(config, "activation_function", None) == "gelu_new":
            config.activation_function = FUSED_GELU
        loaded = AutoModelForCausalLM.from_pretrained(
            folder, config=config, output_loading_info=True, **FROM_FOLDER
        )
        # The declared type is that without `output_loading_info`.
        model, report = cast("tuple[PreTrainedModel, dict[str, Any]]", loaded)
    check_loaded(model, report, folder)
    return model.train()


def find_bos_id(model: PreTrainedModel, uses_bos: bool, place: str) -> int | None:
    """Return the id of BOS, or None if prompts do not begin with it.

    Raises UserError, which names `place`, if the model has none.
    """
    if not uses_bos:
        return None
    if model.config.bos_token_id is None:
        raise UserError(
            f"{place}: model.bos is true, but config.json has no bos_token_id; set it to false"
        )
    return model.config.bos_token_id


def compute_last_logits(model: PreTrainedModel, ids: Tensor, last: Tensor) -> Tensor:
    """Return the logits [B, V] at positions last [B] of prompts [B, S].

    The prompts are padded on the right, which a causal model does not see, so no mask is needed.
    """
    states = model.base_model(input_ids=ids, use_cache=False).last_hidden_state
    rows = torch.arange(len(ids), device=ids.device)
    return get_unembedding(model)(states[rows, last])


def get_unembedding(model: PreTrainedModel) -> nn.Module:
    """Return the layer from the last states to the scores of the vocabulary."""
    unembedding = model.get_output_embeddings()
    assert unembedding is not None, "a language model has one"
    return unembedding
