"""Texts of a causal language model: special tokens, pieces of the length that a model can hold,
padding.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workflow_scripts.tasks.language_modelling.training_setup import pad_texts, read_text_pieces

TEXTS = [[5], [6, 7, 8], [9] * 4, [10, 11, 12, 13, 14], list(range(20, 33))]


@pytest.mark.parametrize("bos", [None, 0])
@pytest.mark.parametrize("limit", [2, 4, 5, 100])
def test_texts_are_cut_into_pieces_of_which_each_predicts_something(
    tmp_path: Path, bos: int | None, limit: int
):
    pq.write_table(
        pa.table({"ids": pa.array(TEXTS, pa.list_(pa.int32()))}), tmp_path / "train.parquet"
    )
    expected = []
    for text in TEXTS:
        whole = [*([] if bos is None else [bos]), *text, 1]
        pieces = [whole[start : start + limit] for start in range(0, len(whole), limit)]
        expected += [piece for piece in pieces if len(piece) > 1]
    texts = read_text_pieces(tmp_path, "train", bos, limit)
    batch = pad_texts(texts, np.arange(len(texts.length)))
    assert [ids[real].tolist() for ids, real in zip(batch.ids, batch.real, strict=True)] == expected
    assert (batch.ids[~batch.real] == 2).all()
