"""What all sequence-to-sequence sets share: draws, vocabulary, and the files of a data folder."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import NamedTuple

import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_files
from workflow_scripts.data.prepared import Seq2SeqDataset, build_vocabulary, digest_data, write_data
from workflow_scripts.data.splits import Example, SplitOptions, make_splits, split_by_key

SPEC = {
    "task": "toy",
    "protocol": "paper",
    "options": {"seed": 3},
    "sources": ["toy/file.txt"],
    "prepare": "workflow_scripts.data.datasets.cogs",
}
TRAIN = [Example("b a", "B A"), Example("b", "B"), Example("c", "C", "rare")]
TEST = [Example("a b d", "A D D", "new")]


def toy(**changes) -> Seq2SeqDataset:
    return Seq2SeqDataset(**{"splits": {"train": TRAIN, "test": TEST}, "notes": ["made by hand"]} | changes)


@given(
    st.lists(st.integers(), max_size=40),
    st.lists(st.integers(), min_size=1, max_size=40),
    st.sampled_from(["paper", "clean"]),
    st.floats(0.01, 0.99),
    st.integers(0, 100),
    st.integers(1, 50),
)
def test_splitting_loses_and_invents_nothing(train, test, validation, fraction, seed, limit):
    train, test = ([Example(str(number), "x") for number in numbers] for numbers in (train, test))
    options = SplitOptions(validation=validation, validation_fraction=fraction, seed=seed, limit={"test": limit})
    splits, _ = make_splits(train, test, {"dev": train}, options)
    assert splits["train"] == splits["dev"] == train
    kept = min(limit, len(test))
    assert len(splits["valid"]) <= fraction * kept + 1e-9
    whole = Counter(splits["test"]) + (Counter(splits["valid"]) if validation == "clean" else Counter())
    assert whole.total() == kept
    assert whole <= Counter(test)
    assert Counter(splits["valid"]) <= whole
    assert make_splits(train, test, {"dev": train}, options)[0] == splits


@given(st.integers(0, 100), st.integers(10, 300))
def test_a_limited_training_set_keeps_every_word(seed, limit):
    train = [Example("common", "C")] * 500 + [Example(f"rare{i} common", f"R{i} C") for i in range(9)]
    splits, notes = make_splits(train, TEST, {}, SplitOptions(seed=seed, limit={"train": limit}))
    assert len(splits["train"]) == limit
    assert Counter(splits["train"]) <= Counter(train)
    assert {word for example in splits["train"] for word in example.source.split(" ")} == {
        "common",
        *(f"rare{i}" for i in range(9)),
    }
    assert f"train: {limit} of 509 examples, drawn with seed {seed}" in notes


class Keyed(NamedTuple):
    source: str
    key: str
    text: str


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), min_size=1, max_size=200),
    st.booleans(),
    st.integers(0, 100),
)
def test_equal_keys_are_in_one_split(rows, shared, seed):
    rows = [Keyed(source, f"key {key}", str(i)) for i, (source, key) in enumerate(rows)]
    splits = split_by_key(rows, 0.1, shared, seed)
    assert sorted(splits["train"] + splits["valid"]) == sorted(rows)
    assert not {row.key for row in splits["train"]} & {row.key for row in splits["valid"]}
    assert splits == split_by_key(rows, 0.1, shared, seed)


@pytest.mark.parametrize(("size", "drawn"), [(7706, 1541), (4476, 895), (21000, 4200), (10800, 2160)])
def test_a_fifth_is_rounded_down_as_in_the_paper(size, drawn):
    test = [Example(str(number), "x") for number in range(size)]
    assert len(make_splits([], test, {}, SplitOptions())[0]["valid"]) == drawn


def test_vocabulary_by_frequency_then_alphabet():
    assert build_vocabulary(["b a", "b c", "c b"]) == ["<pad>", "<s>", "</s>", "<unk>", "b", "c", "a"]


def test_the_files_of_a_data_folder(tmp_path):
    write_data(toy(subset_groups={"lexical": ["new"]}), SPEC, tmp_path / "toy")
    assert sorted(file.name for file in (tmp_path / "toy").iterdir()) == [
        "dataset.json",
        "test.parquet",
        "train.parquet",
        "vocabulary.json",
    ]
    words = json.loads((tmp_path / "toy/vocabulary.json").read_text())
    assert words["source"][4:] == ["b", "a", "c"]  # d is in the test set only
    table = pyarrow.parquet.read_table(tmp_path / "toy/test.parquet")
    assert [(field.name, str(field.type)) for field in table.schema] == [
        ("source", "string"),
        ("target", "string"),
        ("subset", "string"),
        ("source_ids", "list<element: int32>"),
        ("target_ids", "list<element: int32>"),
    ]
    assert table.to_pylist() == [
        {"source": "a b d", "target": "A D D", "subset": "new", "source_ids": [5, 4, 3], "target_ids": [5, 3, 3]}
    ]
    summary = json.loads((tmp_path / "toy/dataset.json").read_text())
    files = summary.pop("files")
    assert files.keys() == {"test.parquet", "train.parquet", "vocabulary.json"}
    assert all(hashlib.sha256((tmp_path / "toy" / name).read_bytes()).hexdigest() == files[name] for name in files)
    assert summary == {
        "task": "toy",
        "protocol": "paper",
        "spec": SPEC,
        "notes": ["made by hand"],
        "subset_groups": {"lexical": ["new"]},
        "vocabulary": {"source": 7, "target": 7},
        "splits": {
            "train": {
                "rows": 3,
                "distinct": 3,
                "out_of_vocabulary_tokens": 0,
                "longest_source": 2,
                "longest_target": 2,
            },
            "test": {
                "rows": 1,
                "distinct": 1,
                "out_of_vocabulary_tokens": 3,
                "longest_source": 3,
                "longest_target": 3,
            },
        },
    }


def test_the_same_input_gives_the_same_bytes(tmp_path):
    found = []
    for name in ("first", "second"):
        write_data(toy(), SPEC, tmp_path / name)
        found.append((hash_files(tmp_path / name), digest_data(tmp_path / name)))
    assert found[0] == found[1] and len(found[0][0]) == 4


def test_the_worse_protocol_is_written(tmp_path):
    write_data(toy(protocol="reduced"), SPEC, tmp_path / "toy")
    assert json.loads((tmp_path / "toy/dataset.json").read_text())["protocol"] == "reduced"
    write_data(toy(protocol="reduced"), SPEC | {"protocol": "stand_in"}, tmp_path / "toy")
    assert json.loads((tmp_path / "toy/dataset.json").read_text())["protocol"] == "stand_in"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocol": "stand_in"}, "stand-in data, but the protocol is paper"),
        ({"splits": {"train": TRAIN, "valid": []}}, "valid is empty"),
    ],
)
def test_what_is_refused_leaves_the_earlier_folder(tmp_path, changes, message):
    write_data(toy(), SPEC, tmp_path / "toy")
    before = {file.name: file.read_bytes() for file in (tmp_path / "toy").iterdir()}
    with pytest.raises(UserError, match=message):
        write_data(toy(**changes), SPEC, tmp_path / "toy")
    assert {file.name: file.read_bytes() for file in (tmp_path / "toy").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]


def test_a_killed_process_leaves_no_half_folder(tmp_path):
    """The folder appears at once: whoever looks meanwhile sees no folder, or all of it."""
    spec = {"task": "t", "prepare": "workflow_scripts.data.datasets.scan", "sources": [], "protocol": "paper"}
    (tmp_path / "spec.json").write_text(json.dumps(spec | {"options": {"set": "add_jump_2x"}}))
    command = [sys.executable, "-m", "workflow_scripts", "prepare", "--spec", tmp_path / "spec.json"]
    process = subprocess.Popen([*command, "--out", tmp_path / "data"])
    while process.poll() is None and not list(tmp_path.glob(".data.*/data/*.parquet")):
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "data").exists()
