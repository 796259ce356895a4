"""What identifies prepared data."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.prepared import digest_data
from workflow_scripts.tasks.seq2seq.batches import read_pairs

MANIFEST = {"task": "toy", "subset_groups": {"x": ["y"]}}


def folder(path, manifest: dict, rows: bytes = b"rows"):
    path.mkdir()
    (path / "train.parquet").write_bytes(rows)
    (path / "dataset.json").write_text(json.dumps(manifest))
    return path


def test_equal_data_have_an_equal_digest_however_they_were_made(tmp_path):
    first = digest_data(folder(tmp_path / "first", MANIFEST))
    (folder(tmp_path / "second", MANIFEST) / "record.json").write_text('{"started": "2026-01-01"}')
    assert digest_data(tmp_path / "second") == first


def test_other_data_have_another_digest(tmp_path):
    digests = [digest_data(folder(tmp_path / "first", MANIFEST))]
    digests.append(digest_data(folder(tmp_path / "rows", MANIFEST, b"other rows")))
    digests.append(digest_data(folder(tmp_path / "groups", MANIFEST | {"subset_groups": {}})))
    named = folder(tmp_path / "named", MANIFEST)
    (named / "train.parquet").rename(named / "test.parquet")
    digests.append(digest_data(named))
    assert len(set(digests)) == len(digests)


def test_a_folder_without_data(tmp_path):
    with pytest.raises(UserError, match=r"dataset.json does not exist; pass an existing file"):
        digest_data(tmp_path)


@pytest.mark.parametrize(
    ("side", "ids", "said"),
    [
        ("source", [[4, 5], [], [4, 7]], "row 2 has the source token 7, but vocabulary.json ends at 5"),
        ("target", [[4, -1], [6], [4]], "row 0 has the target token -1, but vocabulary.json ends at 6"),
    ],
)
def test_a_token_outside_the_vocabulary_is_named(tmp_path, side, ids, said):
    words = {"source": [*"0123ab"], "target": [*"0123abc"]}
    (tmp_path / "vocabulary.json").write_text(json.dumps(words))
    good = {"source_ids": [[4, 5], [], [4]], "target_ids": [[4], [6], [4]]}
    pq.write_table(pa.table(good), tmp_path / "train.parquet")
    assert read_pairs(tmp_path, "train").source.length.tolist() == [2, 0, 1]
    pq.write_table(pa.table(good | {f"{side}_ids": ids}), tmp_path / "train.parquet")
    with pytest.raises(UserError) as caught:
        read_pairs(tmp_path, "train")
    assert f"train.parquet: {said}" in str(caught.value) and "\n" not in str(caught.value)
