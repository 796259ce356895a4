"""SST: sentences and labels of bracketed trees, and the real files' counts."""

from collections import Counter

import pytest

from tests.data.packing import pack
from tests.data.preparing import prepare_data
from workflow_scripts.data.datasets import sst
from workflow_scripts.data.datasets.sst import SOURCE, clean_sentence

TREE = "(3 (2 It) (4 (4 (2 's) (4 (3 (2 a) (4 (3 lovely) (2 film))))) (2 .)))"


def archive(path, **changes: str):
    files = {
        "train": TREE,
        "dev": "(0 (1 No) (2 .))\n",
        "test": "(2 (2 Fine) (2 .))\r\n\n(4 Great)",
    } | changes
    return {SOURCE: pack(path, {f"trees/{name}.txt": content for name, content in files.items()})}


def test_a_small_archive(tmp_path):
    prepared = prepare_data(sst, {}, archive(tmp_path / "trees.zip"))
    assert prepared.tables["train"] == {
        "item": ["train-1"], "content": ["it's a lovely film"], "label": ["positive"], "subset": [""]
    }  # fmt: skip
    assert prepared.tables["valid"]["label"] == ["negative"]
    assert prepared.tables["test"]["item"] == ["test-1", "test-3"]
    assert prepared.tables["test"]["label"] == ["neutral", "positive"]
    assert prepared.protocol == "paper"


@pytest.mark.parametrize(
    ("written", "tidied"),
    [
        ("It 's a lovely film .", "it's a lovely film"),
        ("Do n't ask , they 'll say no !", "don't ask, they'll say no!"),
        ("A `` film '' -- of sorts ... no ?", "a '' film '' - of sorts. no?"),
        ("Wait . . . what ... ", "wait. what"),
        ("( It 's long ) .", "( it's long )"),
        ("I 'm sure they 'd like what you 've made", "i'm sure they'd like what you've made"),
        ("Mr. Burns's best .", "mr. burns's best"),
        ("  Two   spaces . ", "two spaces"),
        (".", ""),
    ],
)
def test_tidying(written, tidied):
    assert clean_sentence(written) == tidied


def test_brackets_and_slashes_of_the_text(tmp_path):
    sources = archive(tmp_path / "trees.zip", dev=r"(2 (2 -LRB-) (2 (2 9\/11) (2 -RRB-)))")
    assert sst.read_sst(sst.Options(), sources)["valid"] == [(1, "( 9/11 )", 2)]


def test_the_stand_in():
    first = prepare_data(sst, {"from": "stand_in"}, {})
    assert first.protocol == "stand_in"
    assert {split: len(table["item"]) for split, table in first.tables.items()} == {
        "train": 600, "valid": 90, "test": 90
    }  # fmt: skip
    sentences = [sentence for table in first.tables.values() for sentence in table["content"]]
    assert len(set(sentences)) == len(sentences)
    assert Counter(first.tables["test"]["label"]) == {"negative": 36, "positive": 36, "neutral": 18}


def test_sizes_and_labels_of_the_real_data(mirror):
    prepared = prepare_data(sst, {}, {SOURCE: mirror / SOURCE})
    labels = {split: Counter(table["label"]) for split, table in prepared.tables.items()}
    assert labels == {
        "train": {"negative": 3310, "neutral": 1624, "positive": 3610},
        "valid": {"negative": 428, "neutral": 229, "positive": 444},
        "test": {"negative": 912, "neutral": 389, "positive": 909},
    }
    assert all(sentence for table in prepared.tables.values() for sentence in table["content"])
    assert (
        prepared.tables["valid"]["content"][0]
        == "it's a lovely film with lovely performances by buy and accorsi"
    )
