"""Small tokenizers: special tokens, offsets that give the text back, bare words, and the same
result every time.
"""

import json
import math
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from workflow_scripts.data.formats.tokenizer_training import SPECIAL_TOKENS, train_tokenizer

TEXTS = [
    f"the {a} {b} runs in the {c}-coloured house"
    for a in "abc"
    for b in ("dog", "otter")
    for c in ("red", "blue")
]
WORDS = Counter({"zebra": 50, "quick": 50})
KINDS = ["bpe", "unigram"]


@pytest.fixture(scope="module")
def tokenizers():
    return {kind: train_tokenizer(kind, 450, TEXTS, WORDS) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_and_nothing_added(tokenizers, kind):
    tokenizer = tokenizers[kind]
    assert [tokenizer.token_to_id(token) for token in SPECIAL_TOKENS] == [0, 1, 2, 3]
    assert tokenizer.encode("").ids == []
    assert len(tokenizer.encode("zebra").ids) == 1
    assert min(tokenizer.encode("the dog").ids) > 3
    assert tokenizer.get_vocab_size() <= 450


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▁"), max_size=40))
@settings(max_examples=200, deadline=None)
def test_ids_give_the_text_back_and_offsets_cover_it(tokenizers, kind, text):
    assume(not any(token in text for token in SPECIAL_TOKENS))
    tokenizer = tokenizers[kind]
    encoded = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(encoded.ids, skip_special_tokens=False) == text
    assert 3 not in encoded.ids
    # In order, and without a gap; the bytes of one character share its offset.
    position = 0
    for start, end in encoded.offsets:
        assert start <= position <= end and start < end
        position = end
    assert position == len(text)


@pytest.mark.parametrize("kind", KINDS)
@given(
    words=st.lists(
        st.sampled_from(["the", "dog", "zebra", "Quick,", "house's", "42", '"', "naïve"]),
        min_size=1,
    )
)
@settings(max_examples=100, deadline=None)
def test_offsets_of_pieces_are_their_text(tokenizers, kind, words):
    text = " ".join(words)
    encoded = tokenizers[kind].encode(text)
    space = {"bpe": "Ġ", "unigram": "▁"}[kind]
    for token, (start, end) in zip(encoded.tokens, encoded.offsets, strict=True):
        # No piece reaches over a space; one that begins a word takes its space along.
        assert " " not in text[start:end].lstrip(" ")
        if token.isascii() and not token.startswith("<0x"):
            assert text[start:end] == token
        elif token.startswith(space) and token[1:].isascii():
            assert text[start:end] == " " + token[1:]
    # Every word after the first begins with a piece of its own that has the space.
    assert sum(text[start:end].startswith(" ") for start, end in encoded.offsets) == len(words) - 1


def test_scores_of_pieces_are_logarithms_of_their_shares(tokenizers):
    scores = dict(json.loads(tokenizers["unigram"].to_str())["model"]["vocab"])
    shares = [math.exp(score) for score in scores.values() if -100 < score < 0]
    assert sum(shares) == pytest.approx(1, abs=0.02) and max(shares) > 3 * min(shares)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_in_every_process(tokenizers, kind):
    code = "from tests.data.formats.test_tokenizer_training import TEXTS, WORDS, train_tokenizer\n"
    code += f"print(train_tokenizer('{kind}', 450, TEXTS, WORDS).to_str())"
    other = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    assert json.loads(other) == json.loads(tokenizers[kind].to_str())


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_reads_it(tokenizers, kind, tmp_path):
    from transformers import PreTrainedTokenizerFast

    tokenizers[kind].save(str(tmp_path / "tokenizer.json"))
    loaded = PreTrainedTokenizerFast(
        tokenizer_file=str(tmp_path / "tokenizer.json"), bos_token="<bos>", pad_token="<pad>"
    )
    text = "the zebra's house"
    assert loaded(text)["input_ids"] == tokenizers[kind].encode(text).ids
    assert loaded.decode(loaded(text)["input_ids"]) == text
    assert (loaded.bos_token_id, loaded.pad_token_id) == (0, 2)
