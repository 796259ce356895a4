"""Write a causal language model of a GGUF file as a folder of Hugging Face's layout.

`load_causal_lm` reads the folder.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

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

# Types of tokens.
ORDINARY = 1
CONTROL = 3
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

    Raises UserError if the file is damaged, or is anything but a Llama with tied embeddings and
    GPT-2's byte pairs.
    """
    gguf = read_gguf(file)
    for key, expected in REQUIRED.items():
        value = gguf.values.get(key)
        if value != expected:
            raise UserError(f"{file}: {key} is {value!r}; only {expected!r} can be read here")
    config = make_config(gguf)
    check_tensors(gguf, config)
    tokenizer = make_tokenizer(gguf, config.vocab_size)
    weights = dict(rebuild_tensors(gguf, config))
    tensors = {name: torch.from_numpy(weight) for name, weight in weights.items()}
    write_tensors(tensors, folder / "model.safetensors")
    config.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))


def read_value(gguf: Gguf, key: str, kind: type) -> Any:
    """Return a value of this type. Raises UserError if it is missing or of another type."""
    value = gguf.values.get(key)
    if type(value) is not kind:
        raise UserError(
            f"{gguf.path}: {key} is {value!r:.50}, not of the type {kind.__name__}; "
            "fetch the file again"
        )
    return value


def read_size(gguf: Gguf, key: str) -> int:
    """Return a size.

    Raises UserError if it is missing, not positive, or larger than any model's.
    """
    size = read_value(gguf, key, int)
    if not 1 <= size <= LARGEST:
        raise UserError(f"{gguf.path}: {key} is {size}; fetch the file again")
    return size


def read_positive(gguf: Gguf, key: str) -> float:
    """Return a positive number. Raises UserError if it is missing or something else."""
    number = read_value(gguf, key, float)
    if not 0 < number < math.inf:
        raise UserError(f"{gguf.path}: {key} is {number}; fetch the file again")
    return number


def make_config(gguf: Gguf) -> LlamaConfig:
    """Make the configuration from the values of the file.

    Raises UserError if one is missing or of another type, or if sizes do not go together.
    """
    width = read_size(gguf, "llama.embedding_length")
    heads = read_size(gguf, "llama.attention.head_count")
    key_heads = read_size(gguf, "llama.attention.head_count_kv")
    head_width = width // heads
    rotated = read_size(gguf, "llama.rope.dimension_count")
    if width % heads or heads % key_heads or head_width % 2 or rotated != head_width:
        sizes = (
            f"width {width}, {heads} heads, {key_heads} heads of keys, {rotated} rotated dimensions"
        )
        raise UserError(
            f"{gguf.path}: these sizes do not go together: {sizes}; fetch the file again"
        )
    return LlamaConfig(
        vocab_size=len(read_value(gguf, "tokenizer.ggml.tokens", list)),
        hidden_size=width,
        intermediate_size=read_size(gguf, "llama.feed_forward_length"),
        num_hidden_layers=read_size(gguf, "llama.block_count"),
        num_attention_heads=heads,
        num_key_value_heads=key_heads,
        head_dim=head_width,
        max_position_embeddings=read_size(gguf, "llama.context_length"),
        rms_norm_eps=read_positive(gguf, "llama.attention.layer_norm_rms_epsilon"),
        rope_parameters={
            "rope_type": "default",
            "rope_theta": read_positive(gguf, "llama.rope.freq_base"),
        },
        tie_word_embeddings=True,
        architectures=["LlamaForCausalLM"],
        bos_token_id=read_value(gguf, "tokenizer.ggml.bos_token_id", int),
        eos_token_id=read_value(gguf, "tokenizer.ggml.eos_token_id", int),
        pad_token_id=read_value(gguf, "tokenizer.ggml.padding_token_id", int),
    )


class ModelTensor(NamedTuple):
    """A tensor of the model: its name and its shape there."""

    name: str
    shape: tuple[int, ...]


def list_llama_tensors(config: LlamaConfig) -> dict[str, ModelTensor]:
    """List the tensors of a Llama with tied embeddings by their names in the file."""
    width = config.hidden_size
    inner = config.intermediate_size
    assert config.num_key_value_heads is not None  # `make_config` sets both
    assert config.head_dim is not None
    keys = config.num_key_value_heads * config.head_dim
    shapes = {
        "attn_norm": (width,),
        "attn_q": (width, width),
        "attn_k": (keys, width),
        "attn_v": (keys, width),
        "attn_output": (width, width),
        "ffn_norm": (width,),
        "ffn_gate": (inner, width),
        "ffn_up": (inner, width),
        "ffn_down": (width, inner),
    }
    tensors = {
        "token_embd.weight": ModelTensor("model.embed_tokens.weight", (config.vocab_size, width)),
        "output_norm.weight": ModelTensor("model.norm.weight", (width,)),
    }
    for block in range(config.num_hidden_layers):
        for part, name in BLOCK_TENSORS.items():
            tensor = ModelTensor(f"model.layers.{block}.{name}.weight", shapes[part])
            tensors[f"blk.{block}.{part}.weight"] = tensor
    return tensors


def check_tensors(gguf: Gguf, config: LlamaConfig) -> None:
    """Raise UserError unless the file has the tensors of the configuration and no others.

    Their shapes must be those of the configuration, too.
    """
    # Before the list is made: a file that announces a million blocks has not as many tensors.
    if config.num_hidden_layers * len(BLOCK_TENSORS) > len(gguf.tensors):
        raise UserError(
            f"{gguf.path} has {len(gguf.tensors)} tensors for {config.num_hidden_layers} blocks; "
            "fetch it again"
        )
    expected = list_llama_tensors(config)
    differing = sorted(expected.keys() ^ gguf.tensors.keys())
    if differing:
        problem = "has no tensor" if differing[0] in expected else "has the unknown tensor"
        raise UserError(
            f"{gguf.path} {problem} {differing[0]}; "
            "only a Llama with tied embeddings can be read here"
        )
    for name, tensor in expected.items():
        stored = gguf.tensors[name].shape
        if stored != tensor.shape:
            raise UserError(
                f"{gguf.path}: {name} is {list(stored)}, not {list(tensor.shape)}; "
                "fetch the file again"
            )


def rebuild_tensors(gguf: Gguf, config: LlamaConfig) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (name in the model, float32 weight)."""
    heads_of_part = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for name, tensor in list_llama_tensors(config).items():
        weight = gguf.read_tensor(name)
        part = name.split(".")[-2]  # of `blk.0.attn_q.weight`
        if part in heads_of_part:
            weight = split_halves(weight, heads_of_part[part])
        yield tensor.name, weight


def split_halves(weight: np.ndarray, heads: int) -> np.ndarray:
    """Order the rows of each head as transformers does: weight [heads * d, width].

    llama.cpp rotates neighbouring dimensions, 0 with 1, and transformers those of two halves, 0
    with d / 2.
    """
    by_pair = weight.reshape(heads, -1, 2, weight.shape[1])
    return np.ascontiguousarray(by_pair.swapaxes(1, 2)).reshape(weight.shape)


def make_tokenizer(gguf: Gguf, size: int) -> Tokenizer:
    """Make the tokenizer of the file's tokens and merges.

    Raises UserError if they do not go together.
    """
    tokens = read_texts(gguf, "tokenizer.ggml.tokens")
    kinds = read_value(gguf, "tokenizer.ggml.token_type", list)
    if len(set(tokens)) != size or len(kinds) != size or not set(kinds) <= {ORDINARY, CONTROL}:
        raise UserError(
            f"{gguf.path}: tokenizer.ggml.tokens has a token twice, or unknown types; "
            "fetch it again"
        )
    vocabulary = {token: number for number, token in enumerate(tokens)}
    merges = []
    for merge in read_texts(gguf, "tokenizer.ggml.merges"):
        parts = merge.split(" ")
        if len(parts) != 2 or not {*parts, "".join(parts)} <= vocabulary.keys():
            raise UserError(
                f"{gguf.path}: tokenizer.ggml.merges has {merge!r:.50}; fetch the file again"
            )
        merges.append((parts[0], parts[1]))
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = Sequence(
        [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = ByteLevelDecoder()
    control_tokens = []
    for token, kind in zip(tokens, kinds, strict=True):
        if kind == CONTROL:
            control_tokens.append(AddedToken(token, normalized=False, special=True))
    tokenizer.add_special_tokens(control_tokens)
    return tokenizer


def read_texts(gguf: Gguf, key: str) -> list[str]:
    """Return a list of texts. Raises UserError if it is missing or of something else."""
    texts = read_value(gguf, key, list)
    if not all(isinstance(text, str) for text in texts):
        raise UserError(f"{gguf.path}: {key} is no list of texts; fetch the file again")
    return texts
