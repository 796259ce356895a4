"""The arrays that training maps into its memory say what the Parquet file says, and neither side
holds them all.
"""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.memory import ENVIRONMENT
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.formats import mapped_pairs
from workflow_scripts.models.encoder.model import SpecialTokens
from workflow_scripts.tasks.batching import bucket_by_length
from workflow_scripts.tasks.masked_lm.batches import (
    Orders,
    SentencePairs,
    Vocabulary,
    bucket_pairs,
    find_batch_ends,
    read_ordered_sentences,
    read_sentence_ids,
)

VOCABULARY = Vocabulary(SpecialTokens(2, 3), 4, np.arange(5, 100), np.zeros(100, bool))


def write_pairs(folder, count: int, longest: int = 9, seed: int = 0) -> None:
    """A Parquet file of random pairs, some without a token, in several row groups."""
    rng = np.random.default_rng(seed)
    columns = pa.list_(pa.int32())

    def side():
        lengths = rng.integers(0, longest + 1, count)
        offsets = np.concatenate([[0], lengths.cumsum()]).astype(np.int32)
        return pa.ListArray.from_arrays(
            offsets, pa.array(rng.integers(5, 100, offsets[-1]), pa.int32())
        ).cast(columns)

    table = pa.table({"first_ids": side(), "second_ids": side()})
    pq.write_table(table, folder / "train.parquet", row_group_size=min(max(count // 3, 1), 30_000))


@given(count=st.integers(1, 40), longest=st.integers(0, 6), rows=st.integers(1, 50))
def test_they_are_the_pairs_of_the_file_and_their_orders(tmp_path_factory, count, longest, rows):
    folder = tmp_path_factory.mktemp("data")
    write_pairs(folder, count, longest)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(mapped_pairs, "ROWS", rows)
        mapped_pairs.write_mapped_pairs(folder, "train")
    first, second, orders = read_ordered_sentences(folder, "train")
    for mapped, plain in zip((first, second), read_sentence_ids(folder, "train"), strict=True):
        for name in ("ids", "start", "length"):
            assert np.array_equal(getattr(mapped, name), getattr(plain, name)), name
    both = first.length + second.length
    assert np.array_equal(orders.by_length, np.argsort(both, kind="stable"))
    assert np.array_equal(orders.by_second, np.argsort(second.length, kind="stable"))
    assert np.array_equal(orders.by_second[orders.rank], np.arange(count))
    assert np.array_equal(orders.counts, np.bincount(both))


@given(
    lengths=st.lists(st.integers(0, 60), min_size=1, max_size=200),
    limit=st.integers(5, 70),
    tokens=st.integers(1, 400),
    sentences=st.one_of(st.none(), st.integers(1, 20)),
)
def test_batches_have_as_many_rows_as_those_that_are_made_from_the_lengths(
    lengths, limit, tokens, sentences
):
    width = np.minimum(np.array(lengths) + 3, limit)
    theirs = bucket_by_length(width, np.zeros_like(width), max(tokens, limit), sentences)
    ends = find_batch_ends(np.bincount(lengths), limit, tokens, sentences)
    assert np.diff([0, *ends]).tolist() == [len(rows) for rows in theirs]


def test_a_batch_is_that_of_the_pairs_in_memory(tmp_path):
    write_pairs(tmp_path, 500)
    mapped_pairs.write_mapped_pairs(tmp_path, "train")
    first, second, orders = read_ordered_sentences(tmp_path, "train")
    mapped = SentencePairs(first, second, VOCABULARY, 16, True, orders=orders)
    # The same order of equal lengths, which the draw of false pairs depends on.
    plain = SentencePairs(*read_sentence_ids(tmp_path, "train"), VOCABULARY, 16, True)
    rows = bucket_pairs(mapped, 128, 12)
    assert sorted(np.concatenate(list(rows))) == list(range(500))
    assert [len(chosen) for chosen in rows] == [
        len(chosen) for chosen in bucket_pairs(plain, 128, 12)
    ]
    for chosen in (rows[0], rows[7], rows[len(rows) - 1]):
        one, other = (
            pairs.make_batch(chosen, np.random.default_rng(1)) for pairs in (mapped, plain)
        )
        assert all(
            np.array_equal(getattr(one, name), getattr(other, name))
            for name in ("ids", "labels", "types", "follows")
        )


def test_a_split_without_the_files_is_read_into_memory(tmp_path):
    write_pairs(tmp_path, 5)
    first, _, orders = read_ordered_sentences(tmp_path, "train")
    assert orders is None and len(first.length) == 5
    assert isinstance(SentencePairs(first, first, VOCABULARY, 16, True).orders, Orders)


@pytest.mark.parametrize("broken", ["missing", "cut", "no array"])
def test_a_broken_file_is_one_line(tmp_path, broken):
    write_pairs(tmp_path, 50)
    mapped_pairs.write_mapped_pairs(tmp_path, "train")
    file = tmp_path / "train.mapped/second_start.npy"
    content = file.read_bytes()
    file.unlink()
    if broken != "missing":
        file.write_bytes(content[:200] if broken == "cut" else b"x" * 300)
    with pytest.raises(
        UserError, match=r"second_start.npy cannot be read .*prepare it again"
    ) as caught:
        read_ordered_sentences(tmp_path, "train")
    assert "\n" not in str(caught.value)


MEASURE = """
import json, pathlib, sys
import numpy as np
from workflow_scripts.data.formats import mapped_pairs

def kilobytes(what):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(what))

mapped_pairs.write_mapped_pairs(pathlib.Path(sys.argv[1]), "train")
# the peak, unlike getrusage's not that of the process that started this one
written = kilobytes("VmHWM")

import torch
from workflow_scripts.tasks.masked_lm.batches import make_random_batches, SentencePairs, Vocabulary
from workflow_scripts.tasks.masked_lm.batches import bucket_pairs, read_ordered_sentences
from workflow_scripts.models.encoder.model import SpecialTokens

vocabulary = Vocabulary(SpecialTokens(2, 3), 4, np.arange(5, 100), np.zeros(100, bool))
before, most = kilobytes("RssAnon"), 0  # without what files are mapped to
first, second, orders = read_ordered_sentences(pathlib.Path(sys.argv[1]), "train")
pairs = SentencePairs(first, second, vocabulary, 64, True, orders=orders)
drawn = make_random_batches(pairs, bucket_pairs(pairs, 4096, None), torch.device("cpu"))
for index in np.random.default_rng(0).permutation(len(drawn))[:200]:
    drawn[index]
    most = max(most, kilobytes("RssAnon") - before)
print(json.dumps({"written": written, "read": most, "batches": len(drawn)}))
"""


@pytest.mark.faults
def test_memory_does_not_grow_with_the_file(tmp_path):
    """700,000 pairs more are 90 MB on disk: writing may take its 30 bytes per pair, reading
    nothing.
    """
    (tmp_path / "measure.py").write_text(MEASURE)
    found = {}
    for count in (100_000, 800_000):
        folder = tmp_path / str(count)
        folder.mkdir()
        write_pairs(folder, count, 20)
        line = [sys.executable, str(tmp_path / "measure.py"), str(folder)]
        done = subprocess.run(line, capture_output=True, text=True, env=ENVIRONMENT)
        assert done.returncode == 0, done.stderr
        found[count] = json.loads(done.stdout)
        size = sum(path.stat().st_size for path in (folder / "train.mapped").iterdir())
        assert size > 90 * count
    small, large = found.values()
    assert large["batches"] > 7 * small["batches"]
    assert large["written"] - small["written"] < 30_000 and large["read"] - small["read"] < 5_000, (
        f"KiB: {found}"
    )
