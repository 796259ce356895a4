"""Joint byte-pair encoding against the definition: each merge is of a most frequent pair, and no
text is lost.
"""

import json
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_scripts.data.formats.translation_tables import (
    END,
    UNKNOWN,
    encode_texts,
    format_pieces,
    learn_byte_pairs,
)

TEXTS = [
    "low low low lower lower newest newest newest widest",
    "slow slower slowest new newer wide wider ( 3 @-@ 5 )",
]
texts = st.lists(
    st.text("abcß é", min_size=1, max_size=20).map(lambda t: " ".join(t.split())),
    min_size=1,
    max_size=8,
)


def alphabet(lines):
    tokens = [token for line in lines for token in line.split(" ") if token]
    return set("".join(tokens)), {token[-1] for token in tokens}


def merged(word: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    pieces = list(word)
    for i in range(len(pieces) - 1):
        if i + 1 < len(pieces) and (pieces[i], pieces[i + 1]) == pair:
            pieces[i : i + 2] = ["".join(pair)]
    return tuple(pieces)


def segmented(words: Counter, merges: list[tuple[str, str]]) -> None:
    """Assert that each merge is of a pair that occurs most often, at least twice, in the words as
    merged so far.
    """
    for merge in merges:
        pairs: Counter = Counter()
        for word, times in words.items():
            for pair in pairwise(word):
                pairs[pair] += times
        assert pairs[merge] == max(pairs.values()) >= 2
        after: Counter = Counter()
        for word, times in words.items():
            after[merged(word, merge)] += times
        words = after


@pytest.mark.parametrize("merges", [1, 5, 12])
def test_each_merge_is_of_a_most_frequent_pair(merges):
    tokenizer = learn_byte_pairs(TEXTS, merges, *alphabet(TEXTS))
    found = [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
    assert len(found) == merges
    words = Counter((*token[:-1], token[-1] + END) for text in TEXTS for token in text.split(" "))
    segmented(words, found)


@settings(max_examples=40)
@given(texts)
def test_pieces_put_together_are_the_text(lines):
    tokenizer = learn_byte_pairs(lines, 6, *alphabet(lines))
    pieces = format_pieces(tokenizer)
    for line, ids in zip(lines, encode_texts(tokenizer, lines).to_pylist(), strict=True):
        assert " ".join(pieces[i] for i in ids).replace("@@ ", "") == line


def test_the_same_text_gives_the_same_pieces():
    first, second = (learn_byte_pairs(TEXTS, 10, *alphabet(TEXTS)).to_str() for _ in range(2))
    assert first == second


def test_a_character_that_training_lacks_is_unknown():
    tokenizer = learn_byte_pairs(TEXTS, 3, *alphabet(TEXTS))
    ids = encode_texts(tokenizer, ["lxw", "", "w"]).to_pylist()
    assert [[format_pieces(tokenizer)[i] for i in line] for line in ids] == [
        ["l@@", UNKNOWN, "w"],
        [],
        ["w"],
    ]
