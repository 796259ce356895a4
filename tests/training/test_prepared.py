"""What identifies prepared data."""

import json

import pytest

from workflow_scripts.errors import UserError
from workflow_scripts.training.prepared import data_digest

MANIFEST = {"task": "toy", "facts": "given a, code b", "sources": {"toy/a.zip": "c"}, "subset_groups": {"x": ["y"]}}


def folder(path, manifest: dict, rows: bytes = b"rows"):
    path.mkdir()
    (path / "train.parquet").write_bytes(rows)
    (path / "dataset.json").write_text(json.dumps(manifest))
    return path


def test_equal_data_have_an_equal_digest_whatever_made_them(tmp_path):
    first = data_digest(folder(tmp_path / "first", MANIFEST))
    elsewhere = MANIFEST | {"facts": "given a, code other", "sources": {"toy/a.deb": "d"}, "started": "2026-01-01"}
    assert data_digest(folder(tmp_path / "second", elsewhere)) == first


def test_other_data_have_another_digest(tmp_path):
    digests = [data_digest(folder(tmp_path / "first", MANIFEST))]
    digests.append(data_digest(folder(tmp_path / "rows", MANIFEST, b"other rows")))
    digests.append(data_digest(folder(tmp_path / "groups", MANIFEST | {"subset_groups": {}})))
    named = folder(tmp_path / "named", MANIFEST)
    (named / "train.parquet").rename(named / "test.parquet")
    digests.append(data_digest(named))
    assert len(set(digests)) == len(digests)


def test_a_folder_without_data(tmp_path):
    with pytest.raises(UserError, match=r"dataset.json does not exist; make it with ./reproduce "):
        data_digest(tmp_path)
