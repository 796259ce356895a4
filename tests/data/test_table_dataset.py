"""Writing the tables of prompt and text tasks: bytes, counts, and what is refused."""

import copy
import json

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_files
from workflow_scripts.data.prepared import TableDataset, digest_data, write_data

SPEC = {
    "task": "sst",
    "prepare": "workflow_scripts.data.datasets.sst",
    "options": {},
    "sources": [],
    "protocol": "paper",
}
ROWS = {
    "item": ["a-1", "a-2", "a-3"],
    "content": ["good film", "bad film", "good film"],
    "label": ["positive", "negative", "positive"],
    "subset": ["", "", ""],
}
DOCUMENTS = {"source": ["sst", "sst", "glosses"], "ids": [[4, 5], [4, 5], []]}


def test_tables_counts_and_extra_files(tmp_path):
    import pyarrow.parquet

    prepared = TableDataset(
        {"train": ROWS, "valid": DOCUMENTS},
        ["a note"],
        extra_files={"tokenizer.json": '{"é": 1}', "more.json": {"b": 1}},
    )
    write_data(prepared, SPEC, tmp_path / "out")
    assert pyarrow.parquet.read_table(tmp_path / "out/train.parquet").to_pydict() == ROWS
    table = pyarrow.parquet.read_table(tmp_path / "out/valid.parquet")
    assert table.to_pydict() == DOCUMENTS
    assert table.schema.field("ids").type == pyarrow.list_(pyarrow.int32())
    summary = json.loads((tmp_path / "out/dataset.json").read_text())
    assert summary["splits"] == {"train": {"rows": 3, "distinct": 2}, "valid": {"rows": 3, "distinct": 2}}
    assert summary["protocol"] == "paper" and summary["notes"] == ["a note"]
    assert (tmp_path / "out/tokenizer.json").read_text(encoding="utf-8") == '{"é": 1}'
    assert json.loads((tmp_path / "out/more.json").read_text()) == {"b": 1}
    assert sorted(summary["files"]) == ["more.json", "tokenizer.json", "train.parquet", "valid.parquet"]


def test_the_same_input_gives_the_same_bytes_and_replaces_the_folder(tmp_path):
    prepared = TableDataset({"train": ROWS}, [], "reduced", {"a.txt": "a"})
    write_data(prepared, SPEC, tmp_path / "out")
    first = hash_files(tmp_path / "out"), digest_data(tmp_path / "out")
    (tmp_path / "out/stray").write_text("from elsewhere")
    write_data(copy.deepcopy(prepared), SPEC, tmp_path / "out")
    assert (hash_files(tmp_path / "out"), digest_data(tmp_path / "out")) == first
    assert json.loads((tmp_path / "out/dataset.json").read_text())["protocol"] == "reduced"


def test_made_up_data_must_be_called_so(tmp_path):
    with pytest.raises(UserError, match="task sst: stand-in data, but the protocol is paper"):
        write_data(TableDataset({"train": ROWS}, [], "stand_in"), SPEC, tmp_path / "out")


def test_an_empty_split_is_refused_and_leaves_nothing(tmp_path):
    empty = TableDataset({"train": ROWS, "valid": {"source": [], "ids": []}}, [])
    with pytest.raises(UserError, match="task sst: split valid is empty"):
        write_data(empty, SPEC, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
