"""Causal language models: Hugging Face classes of four families, with random weights or loaded from a folder.

A folder holds config.json, model.safetensors and tokenizer.json, as written by our runs and as on the hub.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.models.causal_lm.settings import Settings
from workflow_scripts.models.hugging_face import (
    FROM_FOLDER,
    NO_OFFSETS,
    hide_library_messages,
    read_model_config,
    report_read_errors,
)

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

# Of the tokenizers that are trained here; the hub's have their own.
BOS, EOS, PAD, UNK = range(4)
# The function that GPT-2's configuration calls gelu_new, as one kernel instead of eight.
FUSED_GELU = "gelu_pytorch_tanh"


def build_causal_lm_config(settings: Settings, vocabulary: int) -> "PretrainedConfig":
    """Return the family's configuration with the sizes of `settings` and the given vocabulary size."""
    from transformers import AutoConfig

    ids = {"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD, "vocab_size": vocabulary}
    if settings.family == "gpt2":
        sizes = {
            "n_layer": settings.layers,
            "n_head": settings.heads,
            "n_embd": settings.width,
            "n_inner": settings.feed_forward,
            "n_positions": settings.positions,
            "resid_pdrop": settings.dropout,
            "embd_pdrop": settings.dropout,
            "attn_pdrop": settings.dropout,
            "activation_function": FUSED_GELU,
        }
    else:
        sizes = {
            "num_hidden_layers": settings.layers,
            "num_attention_heads": settings.heads,
            "num_key_value_heads": settings.key_value_heads or settings.heads,
            "head_dim": settings.width // settings.heads,
            "hidden_size": settings.width,
            "intermediate_size": settings.feed_forward,
            "max_position_embeddings": settings.positions,
            "attention_dropout": settings.dropout,
            "tie_word_embeddings": True,
        }
    return AutoConfig.for_model(settings.family, **ids, **sizes)


def build(settings: dict, vocabulary: int) -> "PreTrainedModel":
    """Build a model with random weights, in training mode. `settings`: see Settings."""
    from transformers import AutoModelForCausalLM

    hide_library_messages()
    sizes = parse_as(Settings, settings, "model")
    return AutoModelForCausalLM.from_config(build_causal_lm_config(sizes, vocabulary), dtype=torch.float32).train()


def load_causal_lm(folder: Path, settings: dict) -> "PreTrainedModel":
    """Load the model of a folder, in training mode, with float32 weights.

    Raises UserError if a file is missing or broken, or if the model is of another family than `settings` says.
    """
    from transformers import AutoModelForCausalLM

    hide_library_messages()
    family = parse_as(Settings, settings, "model").family
    for name, what in (("config.json", "give the folder of a trained model"), ("tokenizer.json", NO_OFFSETS)):
        if not (folder / name).is_file():
            raise UserError(f"{folder / name} does not exist; {what}")
    with report_read_errors(folder):
        config = read_model_config(folder, family)
        if getattr(config, "activation_function", None) == "gelu_new":
            config.activation_function = FUSED_GELU
        model = AutoModelForCausalLM.from_pretrained(folder, config=config, **FROM_FOLDER)
    return model.train()


def find_bos_id(model: nn.Module, wanted: bool, where: str) -> int | None:
    """Return the id of BOS if prompts begin with it. Raises UserError if the model has none."""
    if not wanted:
        return None
    if model.config.bos_token_id is None:
        raise UserError(f"{where}: model.bos is true, but config.json names no bos_token_id; set it to false")
    return model.config.bos_token_id


def compute_last_logits(model: nn.Module, ids: Tensor, last: Tensor) -> Tensor:
    """Logits after the last token of each prompt: ids [B, S] (padded on the right), last [B] -> [B, V].

    Only one position per prompt gets logits. A causal model does not see padding on the right, so no mask is needed.
    """
    states = model.base_model(input_ids=ids, use_cache=False).last_hidden_state
    rows = torch.arange(len(ids), device=ids.device)
    return model.get_output_embeddings()(states[rows, last])
