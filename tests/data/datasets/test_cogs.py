"""COGS: the real files' counts and kinds, and how lines are read."""

from collections import Counter

import pytest

from tests.data.preparing import prepare_data
from workflow_scripts.data.datasets import cogs
from workflow_scripts.data.datasets.cogs import read_cogs
from workflow_scripts.data.splits import Example

FILES = ["cogs/train.tsv", "cogs/dev.tsv", "cogs/test.tsv", "cogs/gen.tsv"]


@pytest.fixture(scope="module")
def sources(mirror):
    return {file: mirror / file for file in FILES}


def test_sizes_and_kinds_of_the_real_data(sources):
    prepared = prepare_data(cogs, {}, sources)
    sizes = {split: len(examples) for split, examples in prepared.splits.items()}
    assert sizes == {
        "train": 24_155,
        "valid": 4_200,
        "dev": 3_000,
        "in_distribution": 3_000,
        "test": 21_000,
    }
    kinds = Counter(example.subset for example in prepared.splits["test"])
    assert set(kinds.values()) == {1_000}
    assert prepared.subset_groups["structural"] == [
        "cp_recursion",
        "obj_pp_to_subj_pp",
        "pp_recursion",
    ]
    assert len(prepared.subset_groups["lexical"]) == 18
    assert {kind for group in prepared.subset_groups.values() for kind in group} == set(kinds)
    assert prepared.protocol == "paper"
    for split, file in {
        "train": "train",
        "dev": "dev",
        "in_distribution": "test",
        "test": "gen",
    }.items():
        assert prepared.splits[split] == read_cogs(sources[f"cogs/{file}.tsv"])


def test_line_ends_blank_lines_and_repeated_lines(tmp_path):
    file = tmp_path / "train.tsv"
    file.write_bytes(
        b"\xef\xbb\xbfA cat ran .\trun . agent\tprimitive\r\n\nA cat ran .\trun . agent\tprimitive"
    )
    assert read_cogs(file) == [Example("A cat ran .", "run . agent", "primitive")] * 2
