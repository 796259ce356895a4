"""Data folders: random samples, vocabulary, files of sequence pairs and tables, and digests."""

import hashlib
import json
import os
import platform
import random
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

from tests.data.preparing import PairOptions, with_splits, write_data
from workflow_scripts.__main__ import main
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_files
from workflow_scripts.data import prepared
from workflow_scripts.data.data_spec import read_data_spec
from workflow_scripts.data.datasets import cogs
from workflow_scripts.data.prepared import (
    Seq2SeqDataset,
    TableDataset,
    build_vocabulary,
    digest_data,
    read_table,
)
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.splits import Example, make_splits, split_by_key
from workflow_scripts.tasks.seq2seq.batches import read_pairs

SPEC = {
    "task": "toy",
    "protocol": "paper",
    "options": {"seed": 3},
    "sources": ["toy/file.txt"],
    "prepare": "workflow_scripts.data.datasets.cogs",
}
COUNTS = ("rows", "distinct", "out_of_vocabulary_tokens", "longest_source", "longest_target")
TRAIN = [Example("b a", "B A"), Example("b", "B"), Example("c", "C", "rare")]
TEST = [Example("a b d", "A D D", "new")]


def toy(**changes) -> Seq2SeqDataset:
    return Seq2SeqDataset(
        **{"splits": {"train": TRAIN, "test": TEST}, "notes": ["made by hand"]} | changes
    )


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
    options = PairOptions(
        validation=validation, validation_fraction=fraction, seed=seed, limit={"test": limit}
    )
    splits, _ = make_splits(train, test, {"dev": train}, options)
    assert splits["train"] == splits["dev"] == train
    kept = min(limit, len(test))
    assert len(splits["valid"]) <= fraction * kept + 1e-9
    whole = Counter(splits["test"]) + (
        Counter(splits["valid"]) if validation == "clean" else Counter()
    )
    assert whole.total() == kept
    assert whole <= Counter(test)
    assert Counter(splits["valid"]) <= whole
    assert make_splits(train, test, {"dev": train}, options)[0] == splits


@given(st.integers(0, 100), st.integers(10, 300))
def test_a_limited_training_set_keeps_every_word(seed, limit):
    train = [Example("common", "C")] * 500 + [
        Example(f"rare{i} common", f"R{i} C") for i in range(9)
    ]
    splits, notes = make_splits(train, TEST, {}, PairOptions(seed=seed, limit={"train": limit}))
    assert len(splits["train"]) == limit
    assert Counter(splits["train"]) <= Counter(train)
    words = {word for example in splits["train"] for word in example.source.split(" ")}
    assert words == {"common", *(f"rare{i}" for i in range(9))}
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


@pytest.mark.parametrize(
    ("size", "drawn"), [(7706, 1541), (4476, 895), (21000, 4200), (10800, 2160)]
)
def test_a_fifth_is_rounded_down_as_in_the_paper(size, drawn):
    test = [Example(str(number), "x") for number in range(size)]
    assert len(make_splits([], test, {}, PairOptions())[0]["valid"]) == drawn


def test_vocabulary_by_frequency_then_alphabet():
    assert build_vocabulary(["b a", "b c", "c b"]) == [
        "<pad>",
        "<s>",
        "</s>",
        "<unk>",
        "b",
        "c",
        "a",
    ]


def test_the_files_of_a_data_folder(tmp_path):
    write_data(
        toy(subset_groups={"lexical": ["new"]}, described={"words": {"b": 2}}),
        SPEC,
        tmp_path / "toy",
    )
    names = sorted(file.name for file in (tmp_path / "toy").iterdir())
    assert names == ["dataset.json", "test.parquet", "train.parquet", "vocabulary.json"]
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
        {
            "source": "a b d",
            "target": "A D D",
            "subset": "new",
            "source_ids": [5, 4, 3],
            "target_ids": [5, 3, 3],
        }
    ]
    summary = json.loads((tmp_path / "toy/dataset.json").read_text())
    files = summary.pop("files")
    assert files.keys() == {"test.parquet", "train.parquet", "vocabulary.json"}
    assert all(
        hashlib.sha256((tmp_path / "toy" / name).read_bytes()).hexdigest() == files[name]
        for name in files
    )
    assert summary == {
        "task": "toy",
        "protocol": "paper",
        "spec": SPEC,
        "notes": ["made by hand"],
        "subset_groups": {"lexical": ["new"]},
        "words": {"b": 2},
        "vocabulary": {"source": 7, "target": 7},
        "splits": {
            "train": dict(zip(COUNTS, (3, 3, 0, 2, 2), strict=True)),
            "test": dict(zip(COUNTS, (1, 1, 3, 3, 3), strict=True)),
        },
    }


@pytest.mark.parametrize("kind", ["pairs", "tables"])
def test_the_same_input_gives_the_same_bytes_and_replaces_the_folder(tmp_path, kind):
    found = []
    for _ in range(2):
        made = (
            toy() if kind == "pairs" else TableDataset({"train": ROWS}, [], "paper", {"a.txt": "a"})
        )
        write_data(made, SPEC, tmp_path / "out")
        found.append((hash_files(tmp_path / "out"), digest_data(tmp_path / "out")))
        (tmp_path / "out/stray").write_text("from elsewhere")
    assert found[0] == found[1]


def test_the_worse_protocol_is_written(tmp_path):
    write_data(toy(protocol="reduced"), SPEC, tmp_path / "toy")
    assert json.loads((tmp_path / "toy/dataset.json").read_text())["protocol"] == "reduced"
    write_data(toy(protocol="reduced"), SPEC | {"protocol": "stand_in"}, tmp_path / "toy")
    assert json.loads((tmp_path / "toy/dataset.json").read_text())["protocol"] == "stand_in"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocol": "stand_in"}, "task toy: stand-in data, but the protocol is paper"),
        ({"splits": {"train": TRAIN, "valid": []}}, "task toy: split valid is empty"),
    ],
)
def test_what_is_refused_leaves_the_earlier_folder(tmp_path, changes, message):
    write_data(toy(), SPEC, tmp_path / "toy")
    before = {file.name: file.read_bytes() for file in (tmp_path / "toy").iterdir()}
    with pytest.raises(UserError, match=message):
        write_data(toy(**changes), SPEC, tmp_path / "toy")
    assert {file.name: file.read_bytes() for file in (tmp_path / "toy").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]


def test_data_with_memory_mapped_files_can_be_prepared_again(tmp_path):
    """Wikipedia and BookCorpus have memory-mapped files in the folder `train.mapped`."""
    command = ["prepare", "--task", "cogs", "--scale", "demo", "--out", str(tmp_path / "cogs")]
    assert main(command) == 0
    (tmp_path / "cogs/train.mapped").mkdir()
    (tmp_path / "cogs/train.mapped/first_ids.npy").write_bytes(b"x")
    assert main(command) == 0
    assert not (tmp_path / "cogs/train.mapped").exists()


def test_a_killed_process_leaves_no_half_folder(tmp_path):
    """The folder appears at once: whoever looks meanwhile sees no folder, or all of it."""
    spec = {
        "task": "t",
        "prepare": "workflow_scripts.data.datasets.scan",
        "sources": [],
        "protocol": "paper",
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec | {"options": {"set": "add_jump_2x"}}))
    command = [
        sys.executable,
        "-m",
        "workflow_scripts",
        "prepare",
        "--spec",
        tmp_path / "spec.json",
    ]
    process = subprocess.Popen([*command, "--out", tmp_path / "data"])
    while process.poll() is None and not list(tmp_path.glob(".data.*/data/*.parquet")):
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "data").exists()


ROWS = {
    "item": ["a-1", "a-2", "a-3"],
    "content": ["good film", "bad film", "good film"],
    "label": ["positive", "negative", "positive"],
    "subset": ["", "", ""],
}
DOCUMENTS = {"source": ["sst", "sst", "glosses"], "ids": [[4, 5], [4, 5], []]}


def test_tables_counts_and_extra_files(tmp_path):
    files = {"tokenizer.json": '{"é": 1}'}
    prepared = TableDataset({"train": ROWS, "valid": DOCUMENTS}, ["a note"], extra_files=files)
    write_data(prepared, SPEC, tmp_path / "out")
    assert pyarrow.parquet.read_table(tmp_path / "out/train.parquet").to_pydict() == ROWS
    table = pyarrow.parquet.read_table(tmp_path / "out/valid.parquet")
    assert table.to_pydict() == DOCUMENTS
    assert table.schema.field("ids").type == pyarrow.list_(pyarrow.int32())
    summary = json.loads((tmp_path / "out/dataset.json").read_text())
    assert summary["splits"] == {
        "train": {"rows": 3, "distinct": 2},
        "valid": {"rows": 3, "distinct": 2},
    }
    assert summary["protocol"] == "paper" and summary["notes"] == ["a note"]
    assert (tmp_path / "out/tokenizer.json").read_text(encoding="utf-8") == '{"é": 1}'
    assert sorted(summary["files"]) == ["tokenizer.json", "train.parquet", "valid.parquet"]


def test_whole_numbers_are_numbers_and_a_column_of_two_kinds_is_one_line(tmp_path):
    numbers = {"item": ["a", "b"], "label": [1, 0]}
    write_data(TableDataset({"train": numbers}, []), SPEC, tmp_path / "out")
    table = pyarrow.parquet.read_table(tmp_path / "out/train.parquet")
    assert table["label"].to_pylist() == [1.0, 0.0]
    for labels, problem in (
        ([1.0, "negative"], "is not all of the type double"),
        ([True, False], "is not all of the type string"),
        ([1.0, None], "lacks values; correct the data set's prepare"),
        ([None, 1.0], "lacks values; correct the data set's prepare"),
    ):
        columns = {"item": ["a", "b"], "label": labels}
        with pytest.raises(UserError, match=f"column label of the split train {problem}"):
            write_data(TableDataset({"train": columns}, []), SPEC, tmp_path / "mixed")
        assert not (tmp_path / "mixed").exists()


def test_what_a_killed_preparation_has_left_is_deleted_by_the_next_one(tmp_path):
    left = tmp_path / ".out.abcdefgh"
    left.mkdir()
    (left / ".lock").write_text(platform.node())
    (left / "part").write_text("x")
    os.utime(left, (0, 0))
    columns = {"item": ["a"], "label": [1.0]}
    write_data(TableDataset({"train": columns}, []), SPEC, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


MANIFEST = {"task": "toy", "subset_groups": {"x": ["y"]}}


def folder(path, manifest: dict, rows: bytes = b"rows"):
    path.mkdir()
    (path / "train.parquet").write_bytes(rows)
    (path / "dataset.json").write_text(json.dumps(manifest))
    return path


def test_equal_data_have_an_equal_digest_however_they_were_made_and_other_data_another(tmp_path):
    first = digest_data(folder(tmp_path / "first", MANIFEST))
    (folder(tmp_path / "second", MANIFEST) / "record.json").write_text('{"started": "2026-01-01"}')
    (tmp_path / "second/._dataset.json").write_bytes(
        b"\0\5\x16\7"
    )  # macOS writes it next to a copy
    assert digest_data(tmp_path / "second") == first
    digests = [first]
    digests.append(digest_data(folder(tmp_path / "rows", MANIFEST, b"other rows")))
    digests.append(digest_data(folder(tmp_path / "groups", MANIFEST | {"subset_groups": {}})))
    named = folder(tmp_path / "named", MANIFEST)
    (named / "train.parquet").rename(named / "test.parquet")
    digests.append(digest_data(named))
    mapped = folder(tmp_path / "mapped", MANIFEST)
    array = mapped / "train.mapped/first_ids.npy"
    array.parent.mkdir()
    for content in (b"ids", b"other ids"):
        array.write_bytes(content)
        digests.append(digest_data(mapped))
    assert len(set(digests)) == len(digests)


def test_a_folder_without_data(tmp_path):
    with pytest.raises(UserError, match=r"dataset.json does not exist; pass an existing file"):
        digest_data(tmp_path)


@pytest.mark.parametrize(
    ("side", "ids", "said"),
    [
        (
            "source",
            [[4, 5], [], [4, 7]],
            "row 2 has the source token 7, but vocabulary.json ends at 5",
        ),
        (
            "target",
            [[4, -1], [6], [4]],
            "row 0 has the target token -1, but vocabulary.json ends at 6",
        ),
    ],
)
def test_a_token_outside_the_vocabulary_is_named(tmp_path, side, ids, said):
    words = {"source": [*"0123ab"], "target": [*"0123abc"]}
    (tmp_path / "vocabulary.json").write_text(json.dumps(words))
    good = {"source_ids": [[4, 5], [], [4]], "target_ids": [[4], [6], [4]]}
    pyarrow.parquet.write_table(pyarrow.table(good), tmp_path / "train.parquet")
    assert read_pairs(tmp_path, "train").source.length.tolist() == [2, 0, 1]
    pyarrow.parquet.write_table(
        pyarrow.table(good | {f"{side}_ids": ids}), tmp_path / "train.parquet"
    )
    with pytest.raises(UserError) as caught:
        read_pairs(tmp_path, "train")
    assert f"train.parquet: {said}" in str(caught.value) and "\n" not in str(caught.value)


def test_whatever_byte_of_a_table_is_wrong_it_is_read_whole_or_refused(tmp_path):
    """Of names that are no UTF-8 and columns shorter than the others, too."""
    draw, file, refused = random.Random(0), "train.parquet", 0
    rows = {
        f"{side}_ids": [draw.choices(range(50), k=draw.randrange(5)) for _ in range(40)]
        for side in ("first", "second")
    }
    pyarrow.parquet.write_table(pyarrow.table(rows), tmp_path / file, compression="zstd")
    content = (tmp_path / file).read_bytes()
    for place, byte in enumerate(content):
        wrong = (0, byte ^ 255)[place % 2]
        (tmp_path / file).write_bytes(content[:place] + bytes([wrong]) + content[place + 1 :])
        try:
            assert {read_table(tmp_path, "train", [column]).num_rows for column in rows} == {40}
        except UserError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > len(content) / 4


@pytest.mark.parametrize(
    ("splits", "problem"),
    [
        ({"train": TRAIN}, "makes no split test"),
        ({"train": TRAIN, "test": TEST, "valid": TEST, "dev": TEST}, "makes the split dev"),
    ],
)
def test_a_data_set_has_the_splits_that_it_states(tmp_path, splits, problem):
    spec = with_splits(read_data_spec(SPEC, "spec"), ["train", "valid", "test"])
    with pytest.raises(UserError, match=f"task toy: .*cogs {problem}, but its `list_splits` retur"):
        prepared.write_data(toy(splits=splits), spec, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_module_that_states_no_splits_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(cogs, "Options", DataOptions)
    with pytest.raises(UserError, match=r"`Options` of .*cogs is no DataOptions with a method"):
        read_data_spec(SPEC, "spec")
