"""Write a causal language model of a GGUF file as a folder of Hugging Face's layout, which `load_causal_lm` reads."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import LlamaConfig

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.formats.gguf import Gguf, read_gguf
from workflow_scripts.models.weights import write_tensors

ORDINARY, CONTROL = 1, 3  # types of tokens
LARGEST = 2**20  # of any size of a model
# The only kind of model and of tokenizer that is read, by key.
REQUIRED = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "gpt2",  # byte pairs of bytes
    "tokenizer.ggml.pre": "smollm",  # GPT-2's words, with each digit alone
}
BLOCK_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def write_gguf_model(file: Path, folder: Path) -> None:
    """Write model.safetensors (float32), config.json and tokenizer.json to `folder`.

    Raises UserError if the file is damaged, or is anything but a Llama with tied embeddings and GPT-2's byte pairs.
    """
    found = read_gguf(file)
    for key, expected in REQUIRED.items():
        if found.values.get(key) != expected:
            raise UserError(
                f"{file}: {key} is {found.values.get(key)!r}; only {expected!r} can be read here"
            )
    config = make_config(found)
    check_tensors(found, config)
    tokenizer = make_tokenizer(found, config.vocab_size)
    tensors = {name: torch.from_numpy(weight) for name, weight in rebuild_tensors(found, config)}
    write_tensors(tensors, folder / "model.safetensors")
    config.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))


def read_value(found: Gguf, key: str, kind: type) -> Any:
    """Return a value of this type. Raises UserError if it is missing or of another type."""
    if type(value := found.values.get(key)) is not kind:
        raise UserError(
            f"{found.path}: {key} is {value!r:.50}, not of the type {kind.__name__}; fetch the file again"
        )
    return value


def read_size(found: Gguf, key: str) -> int:
    """Return a size. Raises UserError if it is missing, not positive, or larger than any model's."""
    size = read_value(found, key, int)
    if not 1 <= size <= LARGEST:
        raise UserError(f"{found.path}: {key} is {size}; fetch the file again")
    return size


def read_positive(found: Gguf, key: str) -> float:
    """Return a positive number. Raises UserError if it is missing or something else."""
    number = read_value(found, key, float)
    if not 0 < number < math.inf:
        raise UserError(f"{found.path}: {key} is {number}; fetch the file again")
    return number


def make_config(found: Gguf) -> LlamaConfig:
    """Make the configuration from the values of the file."""
    width, heads = (
        read_size(found, "llama.embedding_length"),
        read_size(found, "llama.attention.head_count"),
    )
    key_heads, of_head = read_size(found, "llama.attention.head_count_kv"), width // heads
    rotated = read_size(found, "llama.rope.dimension_count")
    if width % heads or heads % key_heads or of_head % 2 or rotated != of_head:
        sizes = (
            f"width {width}, {heads} heads, {key_heads} heads of keys, {rotated} rotated dimensions"
        )
        raise UserError(
            f"{found.path}: these sizes do not go together: {sizes}; fetch the file again"
        )
    ids = {
        name: f"tokenizer.ggml.{key}_token_id"
        for name, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"))
    }
    return LlamaConfig(
        vocab_size=len(read_value(found, "tokenizer.ggml.tokens", list)),
        hidden_size=width,
        intermediate_size=read_size(found, "llama.feed_forward_length"),
        num_hidden_layers=read_size(found, "llama.block_count"),
        num_attention_heads=heads,
        num_key_value_heads=key_heads,
        head_dim=of_head,
        max_position_embeddings=read_size(found, "llama.context_length"),
        rms_norm_eps=read_positive(found, "llama.attention.layer_norm_rms_epsilon"),
        rope_parameters={
            "rope_type": "default",
            "rope_theta": read_positive(found, "llama.rope.freq_base"),
        },
        tie_word_embeddings=True,
        architectures=["LlamaForCausalLM"],
        **{f"{name}_token_id": read_value(found, key, int) for name, key in ids.items()},
    )


def list_llama_tensors(config: LlamaConfig) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return name in the file -> (name in the model, shape) of all tensors of a Llama with tied embeddings."""
    width, inner = config.hidden_size, config.intermediate_size
    keys = config.num_key_value_heads * config.head_dim
    shapes = {
        **dict.fromkeys(("attn_norm", "ffn_norm"), (width,)),
        **dict.fromkeys(("attn_q", "attn_output"), (width, width)),
        **dict.fromkeys(("attn_k", "attn_v"), (keys, width)),
        **dict.fromkeys(("ffn_gate", "ffn_up"), (inner, width)),
        "ffn_down": (width, inner),
    }
    outer = {
        "token_embd.weight": ("model.embed_tokens.weight", (config.vocab_size, width)),
        "output_norm.weight": ("model.norm.weight", (width,)),
    }
    return outer | {
        f"blk.{block}.{name}.weight": (f"model.layers.{block}.{ours}.weight", shapes[name])
        for block in range(config.num_hidden_layers)
        for name, ours in BLOCK_TENSORS.items()
    }


def check_tensors(found: Gguf, config: LlamaConfig) -> None:
    """Raise UserError unless the file has the tensors of the configuration, with their shapes, and no others."""
    # Before the list is made: a file that announces a million blocks has not as many tensors.
    if config.num_hidden_layers * len(BLOCK_TENSORS) > len(found.tensors):
        raise UserError(
            f"{found.path} has {len(found.tensors)} tensors for {config.num_hidden_layers} blocks; fetch it again"
        )
    expected = list_llama_tensors(config)
    if differing := sorted(expected.keys() ^ found.tensors.keys()):
        told = "has no tensor" if differing[0] in expected else "has the unknown tensor"
        raise UserError(
            f"{found.path} {told} {differing[0]}; only a Llama with tied embeddings can be read here"
        )
    for name, (_, shape) in expected.items():
        if (stored := found.tensors[name].shape) != shape:
            raise UserError(
                f"{found.path}: {name} is {list(stored)}, not {list(shape)}; fetch the file again"
            )


def rebuild_tensors(found: Gguf, config: LlamaConfig) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (name in the model, float32 weight)."""
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for name, (ours, _) in list_llama_tensors(config).items():
        weight, part = found.read_tensor(name), name.split(".")[-2]
        yield ours, split_halves(weight, heads[part]) if part in heads else weight


def split_halves(weight: np.ndarray, heads: int) -> np.ndarray:
    """Order the rows of each head as transformers does: weight [heads * d, width].

    llama.cpp rotates neighbouring dimensions, 0 with 1, and transformers those of two halves, 0 with d / 2.
    """
    by_pair = weight.reshape(heads, -1, 2, weight.shape[1])
    return np.ascontiguousarray(by_pair.swapaxes(1, 2)).reshape(weight.shape)


def make_tokenizer(found: Gguf, size: int) -> Tokenizer:
    """Make the tokenizer of the file's tokens and merges. Raises UserError if they do not go together."""
    tokens = read_texts(found, "tokenizer.ggml.tokens")
    kinds = read_value(found, "tokenizer.ggml.token_type", list)
    if len(set(tokens)) != size or len(kinds) != size or not set(kinds) <= {ORDINARY, CONTROL}:
        raise UserError(
            f"{found.path}: tokenizer.ggml.tokens has a token twice, or unknown types; fetch it again"
        )
    vocabulary = {token: number for number, token in enumerate(tokens)}
    merges = [tuple(merge.split(" ")) for merge in read_texts(found, "tokenizer.ggml.merges")]
    for merge in merges:
        if len(merge) != 2 or not {*merge, "".join(merge)} <= vocabulary.keys():
            raise UserError(
                f"{found.path}: tokenizer.ggml.merges has {' '.join(merge)!r:.50}; fetch the file again"
            )
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = Sequence(
        [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = ByteLevelDecoder()
    control = [token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL]
    tokenizer.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token in control]
    )
    return tokenizer


def read_texts(found: Gguf, key: str) -> list[str]:
    """Return a list of texts. Raises UserError if it is missing or of something else."""
    texts = read_value(found, key, list)
    if not all(isinstance(text, str) for text in texts):
        raise UserError(f"{found.path}: {key} is no list of texts; fetch the file again")
    return texts
