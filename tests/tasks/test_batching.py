"""Batches hold every example once, within the token budget, padded as the models expect it."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.preparing import prepare_data
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets import scan
from workflow_scripts.tasks import batching as module
from workflow_scripts.tasks.batching import (
    Batch,
    LazySequence,
    SequencePairs,
    bucket_by_length,
    make_bucketed_batches,
    shuffle_examples,
    to_sequences,
)

token_lists = st.lists(st.integers(4, 40), max_size=9)
examples = st.lists(st.tuples(token_lists, token_lists), min_size=1, max_size=60)


def as_pairs(rows: list[tuple[list[int], list[int]]], chunks: int = 1) -> SequencePairs:
    """Pairs from Python lists, by way of Parquet-like columns in one or more chunks."""
    columns = []
    for side in (0, 1):
        lists = [row[side] for row in rows]
        size = -(-len(lists) // chunks)
        parts = [
            pa.array(lists[i : i + size], pa.list_(pa.int32())) for i in range(0, len(lists), size)
        ]
        columns.append(to_sequences(pa.chunked_array(parts)))
    return SequencePairs(*columns)


def unpadded(batch: Batch) -> list[tuple[list[int], list[int]]]:
    """The examples of a batch, read back by hand: everything before the first end symbol."""
    rows = []
    for source, target_in, target_out in zip(
        batch.source.tolist(), batch.target_in.tolist(), batch.target_out.tolist(), strict=True
    ):
        source_end, target_end = source.index(2), target_out.index(2)
        assert set(source[source_end + 1 :]) <= {0} and set(target_out[target_end + 1 :]) <= {0}
        assert target_in == [2, *target_out[:target_end]] + [0] * (len(target_out) - target_end - 1)
        rows.append((source[:source_end], target_out[:target_end]))
    return rows


@given(examples, st.integers(10, 80), st.integers(1, 3))
def test_every_example_is_in_one_batch_and_no_batch_exceeds_the_budget(rows, budget, chunks):
    batches = make_bucketed_batches(as_pairs(rows, chunks), budget)
    assert sorted(row for batch in batches for row in unpadded(batch)) == sorted(rows)
    for batch in batches:
        count, longest = len(batch.source), max(batch.source.size(1), batch.target_out.size(1))
        assert count * longest <= budget


@given(examples, st.integers(10, 80))
def test_batches_are_filled_in_order_of_length_until_the_next_example_would_not_fit(rows, budget):
    lengths = [(len(source) + 1, len(target) + 1) for source, target in rows]
    expected, current = [], []
    for row in sorted(range(len(rows)), key=lambda row: lengths[row]):
        longest = max(max(lengths[member]) for member in [*current, row])
        if longest * (len(current) + 1) > budget:
            expected.append(current)
            current = []
        current.append(row)
    expected.append(current)
    source, target = np.array(lengths).T
    assert [chosen.tolist() for chosen in bucket_by_length(source, target, budget)] == expected


@given(examples, st.integers(10, 80), st.integers(0, 2**31 - 1))
def test_shuffled_rows_fill_batches_of_the_same_lengths(rows, budget, seed):
    source, target = np.array([(len(source) + 1, len(target) + 1) for source, target in rows]).T
    shuffled = bucket_by_length(source, target, budget, shuffle_seed=seed)
    assert sorted(np.concatenate(shuffled).tolist()) == list(range(len(rows)))
    for one, other in zip(shuffled, bucket_by_length(source, target, budget), strict=True):
        assert (
            source[one].tolist() == source[other].tolist()
            and target[one].tolist() == target[other].tolist()
        )


def test_a_resumed_training_has_the_same_batches_and_another_seed_has_others():
    pairs, cpu = as_pairs([([4 + i % 30], [4 + i % 30]) for i in range(300)]), torch.device("cpu")
    first, again, other = (
        make_bucketed_batches(pairs, 64, cpu, shuffle_seed=seed) for seed in (7, 7, 8)
    )
    assert all(torch.equal(one.source, two.source) for one, two in zip(first, again, strict=True))
    assert not all(
        torch.equal(one.source, two.source) for one, two in zip(first, other, strict=True)
    )


def fairseq_batches(
    source: np.ndarray, target: np.ndarray, budget: int, seed: int
) -> list[list[int]]:
    """Make batches like fairseq 0.10.2, by its description.

    A random permutation, a stable sort by target and one by source length, batches filled up to
    `budget` and cut to a multiple of 8 rows; the rest opens the next batch.
    """
    order = np.random.RandomState(seed).permutation(len(source))
    for length in (target, source):
        order = order[np.argsort(length[order], kind="stable")]
    batches, batch, longest = [], [], 0
    widths = np.maximum(source, target).tolist()
    for row in order.tolist():
        if batch and max(longest, widths[row]) * (len(batch) + 1) > budget:
            kept = max(len(batch) // 8 * 8, len(batch) % 8)
            batches.append(batch[:kept])
            batch = batch[kept:]
            longest = max((widths[member] for member in batch), default=0)
        longest = max(longest, widths[row])
        batch.append(row)
    return [*batches, batch]


def test_batches_of_addjump_2x_mix_first_words_as_fairseqs_do():
    """About 10 of the 12 in the median; in the order of the file, which lists the grammar's
    commands, about 4.
    """
    train = prepare_data(scan, {"set": "add_jump_2x", "limit": {}}, {}).splits["train"]
    words = {
        word: number
        for number, word in enumerate(dict.fromkeys(e.source.split(" ")[0] for e in train))
    }
    first = np.array([words[example.source.split(" ")[0]] for example in train])
    source, target = (
        np.array([text.count(" ") + 2 for text in side])
        for side in zip(*((e.source, e.target) for e in train), strict=True)
    )

    def distinct(batches: list) -> float:
        return float(np.median([len(set(first[rows].tolist())) for rows in batches]))

    upstream = distinct(fairseq_batches(source, target, 4096, seed=1))
    assert upstream == pytest.approx(10, abs=1)
    assert distinct(bucket_by_length(source, target, 4096, shuffle_seed=1)) == pytest.approx(
        upstream, abs=0.5
    )
    assert distinct(bucket_by_length(source, target, 4096)) < 6


def test_an_example_longer_than_the_budget_is_refused():
    with pytest.raises(ValueError, match="8 tokens, more than 7"):
        make_bucketed_batches(as_pairs([([4], [5] * 7)]), 7)


def test_sequences_of_a_slice_are_those_of_its_rows():
    column = pa.chunked_array([pa.array([[4], [5, 6], [], [7]], pa.list_(pa.int32()))]).slice(1, 2)
    found = to_sequences(column)
    assert found.ids.tolist() == [5, 6] and found.length.tolist() == [2, 0]
    assert found.pad(np.array([1, 0])).tolist() == [[2, 0, 0], [5, 6, 2]]


@given(examples, st.integers(10, 80))
def test_batches_on_demand_are_those_that_are_kept(rows, budget):
    pairs, cpu = as_pairs(rows), torch.device("cpu")
    kept = make_bucketed_batches(pairs, budget, cpu)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_CACHED_TOKENS", -1)
        made = make_bucketed_batches(pairs, budget, cpu)
    assert isinstance(kept, list) and isinstance(made, LazySequence)
    assert len(made) == len(kept)
    for one, other in zip(made, kept, strict=True):
        for name in ("source", "target_in", "target_out"):
            assert getattr(one, name).dtype == torch.int64
            assert torch.equal(getattr(one, name), getattr(other, name))


def test_ids_stay_as_wide_as_in_the_file():
    assert as_pairs([([5, 6], [7])], chunks=1).source.ids.dtype == np.int32


@given(st.integers(1, 60), st.integers(1, 9), st.integers(0, 5))
def test_each_epoch_of_shuffled_batches_has_every_example_once(count, size, seed):
    batches = shuffle_examples(np.full(count, 7), 7 * size, size, np.ndarray.tolist)
    found = list(batches.draw_epoch(np.random.default_rng(seed)))
    assert [len(batch) for batch in found] == [size] * (count // size) + [count % size] * (
        count % size > 0
    )
    assert len(batches) == len(found)
    assert sorted(row for batch in found for row in batch) == list(range(count))


def test_shuffled_batches_mix_short_and_long_examples_and_change():
    length = np.arange(1, 101)
    batches = shuffle_examples(length, 2000, 20, lambda rows: length[rows])
    one, same, other = (list(batches.draw_epoch(np.random.default_rng(seed))) for seed in (1, 1, 2))
    assert np.array_equal(one, same) and not np.array_equal(one, other)
    assert min(np.ptp(batch) for batch in one) > 50  # sorted by length it would be 19
    assert {frozenset(batch.tolist()) for batch in one}.isdisjoint(
        frozenset(batch.tolist()) for batch in other
    )


def test_a_batch_of_the_longest_examples_must_fit():
    length = np.array([3, 9, 5])
    assert shuffle_examples(length, 30, None, list).size == 3
    with pytest.raises(
        UserError,
        match=r"has 9 tokens, and 4 of them are more than 30; raise training.batch_tokens",
    ):
        shuffle_examples(length, 30, 4, list)
    with pytest.raises(UserError, match="has 9 tokens, and 1 of them are more than 8"):
        shuffle_examples(length, 8, None, list)
