"""Batches of sentences against the tokenizer's own pairs, and what an item's length is."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.processors import BertProcessing

from tests.training.sentence_toy import write_pairs, write_tokenizer
from workflow_scripts.data.prepared import read_table
from workflow_scripts.tasks.batching import RaggedSequences
from workflow_scripts.tasks.sentence_prediction.problem import Sentences, read_sentences


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("sentences")
    write_pairs(place / "data")
    write_pairs(place / "single", single=True)
    return place


@pytest.mark.parametrize("kind", ["data", "single", "apart"])
def test_batches_are_what_the_tokenizer_makes_of_pairs(place, kind):
    folder = place / kind.replace("apart", "data")
    write_tokenizer(place)
    problem = {"prediction": "cosine" if kind == "apart" else "head", "longest": 32}
    found = read_sentences({"problem": problem}, 512, place, folder, "test")
    oracle = write_tokenizer(place)
    oracle.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    oracle.enable_padding()
    table = read_table(folder, "test", ["first", "second", "label"]).to_pydict()
    rows, batches = found.make_batches(300, 7, torch.device("cpu"))
    assert sorted(np.concatenate(rows).tolist()) == list(range(60))
    for chosen, batch in zip(rows, batches, strict=True):
        assert len(chosen) <= 7 and batch.ids[:, 0].numel() <= 300
        texts = [(table["first"][row], table["second"][row]) for row in chosen]
        if kind == "apart":
            lists = [[text for pair in texts for text in pair]]
        else:
            lists = [texts if kind == "data" else [first for first, _ in texts]]
        expected = oracle.encode_batch(lists[0])
        shape = batch.ids.shape
        assert torch.tensor([e.ids for e in expected]).view(shape).equal(batch.ids)
        assert torch.tensor([e.type_ids for e in expected]).view(shape).equal(batch.types)
        assert torch.tensor([e.attention_mask for e in expected]).bool().view(shape).equal(batch.real)
        assert batch.label.tolist() == [table["label"][row] for row in chosen]


def ragged(lengths: list[int]) -> RaggedSequences:
    length = np.array(lengths, np.int64)
    return RaggedSequences(np.arange(10, 11 + length.sum()), np.cumsum(length) - length, length)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=6), st.integers(5, 40))
def test_what_is_too_long_is_cut_to_the_limit_and_no_more(lengths, limit):
    first, second = (ragged(list(side)) for side in zip(*lengths, strict=True))
    pairs = Sentences(first, second, np.zeros(len(lengths)), False, limit, 2, 3)
    batch = pairs.make_batch(np.arange(len(lengths)))
    for row, (one, other) in enumerate(lengths):
        real = batch.real[row, 0]
        assert int(real.sum()) == min(one + other + 3, limit) == pairs.length[row]
        ids, types = batch.ids[row, 0][real].tolist(), batch.types[row, 0][real]
        assert ids[0] == 2 and ids[-1] == 3 and ids.count(3) == 2
        kept = int((types == 0).sum()) - 2, int(types.sum()) - 1
        # Whichever is cut keeps at least as much as the other, but for one.
        assert kept[0] == one or kept[0] >= kept[1]
        assert kept[1] == other or kept[1] >= kept[0] - 1
        start, begin = first.start[row], second.start[row]
        assert ids[1 : 1 + kept[0]] == first.ids[start : start + kept[0]].tolist()
        assert ids[2 + kept[0] : -1] == second.ids[begin : begin + kept[1]].tolist()
        assert not batch.ids[row, 0][~real].any()


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.integers(5, 20))
def test_single_sentences_are_cut(lengths, limit):
    batch = Sentences(ragged(lengths), None, np.zeros(len(lengths)), False, limit, 2, 3).make_batch(
        np.arange(len(lengths))
    )
    assert batch.real.sum(-1).flatten().tolist() == [min(length + 2, limit) for length in lengths]
    assert not batch.types.any()
