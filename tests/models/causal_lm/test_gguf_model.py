"""A Llama out of a GGUF file: the same model as before it was written there; and the real SmolLM2."""

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from shutil import rmtree

import numpy as np
import pytest
import regex
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from tests.data.gguf_files import store_floats, write_gguf
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.formats.gguf import read_gguf
from workflow_scripts.data.formats.wikitext import detokenise_wikitext
from workflow_scripts.models.causal_lm.gguf_model import write_gguf_model
from workflow_scripts.models.causal_lm.model import load_causal_lm
from workflow_scripts.models.causal_lm.perplexity import sum_text_nll
from workflow_scripts.models.hugging_face import load_tokenizer

TOKENS = ["<|end|>", *(chr(code) for code in range(33, 127)), "Ġ", "Ġt", "he", "Ġthe"]
MERGES = ["Ġ t", "h e", "Ġt he"]
SIZES = {
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
}
VALUES = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.context_length": 64,
    "llama.embedding_length": 24,
    "llama.feed_forward_length": 20,
    "llama.attention.head_count": 3,
    "llama.attention.head_count_kv": 1,
    "llama.rope.freq_base": 500.0,
    "llama.rope.dimension_count": 8,
    "llama.attention.layer_norm_rms_epsilon": 0.0009765625,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.token_type": [3] + [1] * (len(TOKENS) - 1),
    "tokenizer.ggml.merges": MERGES,
    "tokenizer.ggml.bos_token_id": 0,
    "tokenizer.ggml.eos_token_id": 0,
    "tokenizer.ggml.padding_token_id": 0,
}  # fmt: skip
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "model.layers": "blk",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(TOKENS), max_position_embeddings=64, rms_norm_eps=2**-10, tie_word_embeddings=True, head_dim=8,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0}, initializer_range=0.3, **SIZES,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    for name, weight in model.named_parameters():
        if "norm" in name:
            weight.data.uniform_(0.5, 1.5)
    return model


def store(model: LlamaForCausalLM) -> dict:
    """The tensors as llama.cpp's converter writes them: dimensions that are rotated together become
    neighbours.
    """
    tensors = {}
    for name, weight in model.state_dict().items():
        for ours, theirs in NAMES.items():
            name = name.replace(ours, theirs)
        if name == "lm_head.weight":
            continue
        stored = weight.numpy()
        if "attn_q" in name or "attn_k" in name:
            heads = 3 if "attn_q" in name else 1
            order = [
                head * 8 + half * 4 + k
                for head in range(heads)
                for k in range(4)
                for half in range(2)
            ]
            stored = stored[order]
        tensors[name] = store_floats(stored)
    return tensors


def converted(folder: Path, values: dict, tensors: dict) -> Path:
    folder.mkdir()
    write_gguf_model(write_gguf(folder.with_suffix(".gguf"), values, tensors), folder)
    return folder


def test_the_model_is_the_same_as_before(tmp_path, llama):
    model = load_causal_lm(converted(tmp_path / "a", VALUES, store(llama)), "llama").eval()
    ids = torch.randint(1, len(TOKENS), (3, 40), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits, llama(ids).logits, rtol=1e-5, atol=1e-5)
    assert {file.name for file in (tmp_path / "a").iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    }


def test_the_tokenizer_merges_and_has_each_digit_alone(tmp_path, llama):
    tokenizer = load_tokenizer(converted(tmp_path / "a", VALUES, store(llama)))
    found = tokenizer.encode("the the 2024<|end|>")
    assert found.tokens == ["t", "he", "Ġthe", "Ġ", "2", "0", "2", "4", "<|end|>"]
    assert tokenizer.decode(found.ids, skip_special_tokens=False) == "the the 2024<|end|>"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"general.architecture": "qwen2"}, "general.architecture is 'qwen2'; only 'llama'"),
        ({"tokenizer.ggml.pre": "default"}, "tokenizer.ggml.pre is 'default'; only 'smollm'"),
        ({"llama.block_count": 3}, "has 20 tensors for 3 blocks"),
        ({"llama.block_count": 2**20}, f"has 20 tensors for {2**20} blocks"),
        ({"llama.block_count": 1}, "has the unknown tensor blk.1"),
        ({"llama.embedding_length": 48, "llama.rope.dimension_count": 16}, r"is \[\d+(, 24)?\], not"),
        ({"llama.embedding_length": 0}, "llama.embedding_length is 0"),
        ({"llama.embedding_length": "x"}, "llama.embedding_length is 'x', not of the type int"),
        ({"llama.attention.head_count": 5}, "these sizes do not go together"),
        ({"llama.rope.dimension_count": 4}, "these sizes do not go together"),
        ({"llama.rope.freq_base": math.nan}, "llama.rope.freq_base is nan"),
        ({"tokenizer.ggml.tokens": TOKENS[:-1]}, r"token_embd.weight is \[99, 24\], not \[98, 24\]"),
        ({"tokenizer.ggml.tokens": [*TOKENS[:-1], "he"]}, "has a token twice"),
        ({"tokenizer.ggml.token_type": [6] * len(TOKENS)}, "unknown types"),
        ({"tokenizer.ggml.merges": ["x y z"]}, "tokenizer.ggml.merges has 'x y z'"),
        ({"tokenizer.ggml.merges": ["h h"]}, "tokenizer.ggml.merges has 'h h'"),
    ],
)  # fmt: skip
def test_another_or_a_damaged_model_is_refused(tmp_path, llama, changes, told):
    with pytest.raises(UserError, match=told):
        converted(tmp_path / "a", VALUES | changes, store(llama))
    assert not list((tmp_path / "a").iterdir())


def test_perplexity_counts_each_token_once(llama):
    ids = torch.randint(1, len(TOKENS), (50,), generator=torch.Generator().manual_seed(2))

    def nll(place: int, first: int) -> float:
        """Of one token, given those from `first` on."""
        with torch.no_grad():
            return float(-llama(ids[first:place][None]).logits[0, -1].log_softmax(-1)[ids[place]])

    counted: list[int] = []
    nats, count = sum_text_nll(llama, ids, 20, 20, counted.append)
    expected = [nll(place, place // 20 * 20) for place in range(50) if place % 20]
    assert (nats, count) == (pytest.approx(sum(expected), rel=1e-5), 47) and sum(counted) == 47
    nats, count = sum_text_nll(llama, ids, 20, 10, counted.append)
    expected = [nll(place, max(0, place // 10 * 10 - 10)) for place in range(1, 50)]
    assert (nats, count) == (pytest.approx(sum(expected), rel=1e-5), 49)


# The real file.

PARTS = regex.compile(r"\p{N}|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def spell_bytes() -> dict[int, str]:
    """GPT-2's character for each byte (Radford et al. 2019): itself if it can be printed, else one
    from 256 on.
    """
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printed]
    return {byte: chr(byte) for byte in printed} | {
        byte: chr(256 + place) for place, byte in enumerate(others)
    }


def encode_slowly(text: str, ranks: dict[tuple[str, str], int]) -> list[str]:
    """Byte pairs by the definition: of each part of the text, merge the pair that was learnt first,
    again and again.

    llama.cpp's parts for `smollm`: each digit alone, else GPT-2's.
    """
    spelling, tokens = spell_bytes(), []
    # The digits are cut out first, so that the rest of GPT-2's parts does not see what follows a
    # digit.
    for chunk in regex.split(r"(\p{N})", text):
        for part in PARTS.findall(chunk):
            pieces = [spelling[byte] for byte in part.encode()]
            while pairs := [pair for pair in pairwise(pieces) if pair in ranks]:
                best = min(pairs, key=ranks.get)
                place = next(k for k in range(len(pieces)) if tuple(pieces[k : k + 2]) == best)
                pieces[place : place + 2] = ["".join(best)]
            tokens += pieces
    return tokens


def read_ranks(gguf_file: Path) -> dict[tuple[str, str], int]:
    merges = read_gguf(gguf_file).values["tokenizer.ggml.merges"]
    return {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}


@pytest.fixture(scope="module")
def smollm(tmp_path_factory, gguf_file) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("smollm")
    write_gguf_model(gguf_file, folder)
    yield folder
    rmtree(folder)  # half a GB, which pytest would keep


TEXTS = [
    "Hello world",
    "In 1987, 24% of 3,500 people didn't; they're fine.  Two spaces,\ttab\n\nand lines \n",
    "naïve café — “quotes” … 北京 Привет 😀 ²½ ٣",
    "def f(x):\n    return x**2  # 10 4\n",
    "'s 'S I'LL we'd ''' 's's",
    " leading and trailing ",
]


def test_the_real_tokenizer(smollm, gguf_file):
    tokenizer = load_tokenizer(smollm)
    assert tokenizer.get_vocab_size() == 49152
    assert tokenizer.encode("Hello world").ids == [19556, 905]  # as the published tokenizer has it
    assert tokenizer.encode("<|im_start|>user\n").ids[0] == 1
    ranks = {
        tuple(merge.split(" ")): rank
        for rank, merge in enumerate(read_gguf(gguf_file).values["tokenizer.ggml.merges"])
    }
    for text in TEXTS:
        found = tokenizer.encode(text)
        assert found.tokens == encode_slowly(text, ranks), text
        assert tokenizer.decode(found.ids) == text


def test_the_real_tokenizer_on_wikipedia(smollm, gguf_file, mirror):
    tokenizer = load_tokenizer(smollm)
    ranks = {
        tuple(merge.split(" ")): rank
        for rank, merge in enumerate(read_gguf(gguf_file).values["tokenizer.ggml.merges"])
    }
    text = (mirror / "wikitext2/test.txt").read_text()[:20_000]
    assert tokenizer.encode(text).tokens == encode_slowly(text, ranks)


def test_the_real_model_reads_english(smollm, mirror):
    """A wrong order of the rotated dimensions, or another base of the angles, has a perplexity of
    hundreds.
    """
    model = load_causal_lm(smollm, "llama").eval()
    assert sum(weight.numel() for weight in model.parameters()) == 134_515_008
    text = detokenise_wikitext((mirror / "wikitext2/test.txt").read_text()[:6000])
    ids = torch.tensor(load_tokenizer(smollm).encode(text).ids)
    nats, count = sum_text_nll(model, ids[:512], 512, 512, lambda _: None)
    assert 5 < math.exp(nats / count) < 40
    with torch.no_grad():
        words = model(
            torch.tensor([load_tokenizer(smollm).encode("The capital of France is").ids])
        ).logits[0, -1]
    assert load_tokenizer(smollm).decode([int(words.argmax())]) == " Paris"
    assert np.isfinite(words.numpy()).all()
