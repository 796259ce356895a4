"""PAWS: the real files, upstream's archives as small files, the swap-only subset."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data import upstream_files
from tests.data.preparing import prepare_data
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets import paws


def test_upstream_archives(tmp_path):
    sources = upstream_files.write(tmp_path)
    made = prepare_data(paws, {}, sources)
    assert {split: columns["item"][3] for split, columns in made.tables.items()} == {
        "train": "train-3", "valid": "valid-3", "in_distribution": "in_distribution-3", "test": "swap-3"
    }  # fmt: skip
    found = zip(made.tables["test"]["first"], made.tables["test"]["label"], strict=True)
    assert list(found) == [(one, y) for _, one, _, y in upstream_files.texts(0)]
    assert set(made.tables["test"]["subset"]) == {"swap"}
    assert made.described["labels"] == ["different", "paraphrase"]
    with pytest.raises(UserError, match=r"needs the source paws/paws_wiki_labeled_final.tar.gz"):
        prepare_data(paws, {}, {paws.SWAP: sources[paws.SWAP]})


def test_the_real_dev_and_test_parts(mirror):
    made = prepare_data(
        paws, {"set": "dev_test"}, {name: mirror / name for name in (paws.DEV, paws.TEST)}
    )
    assert {split: len(columns["item"]) for split, columns in made.tables.items()} == {
        "train": 7200, "valid": 800, "test": 8000
    }  # fmt: skip
    assert Counter(made.tables["test"]["label"]) == {0.0: 4464, 1.0: 3536}
    assert made.tables["test"]["subset"].count("swap") == 531 and made.protocol == "reduced"
    # The bags of words are equal, counted another way.
    rows = zip(*(made.tables["test"][name] for name in ("first", "second", "subset")), strict=True)
    for first, second, subset in rows:
        equal = (
            Counter(first.lower().split()) == Counter(second.lower().split())
            and first.lower() != second.lower()
        )
        assert equal == (subset == "swap") or first.lower().split() == second.lower().split()
    assert not {*made.tables["train"]["item"]} & {*made.tables["valid"]["item"]}


@given(st.lists(st.sampled_from(["a", "B", "c", "a"]), min_size=1), st.randoms())
def test_swapped_words(words, rng):
    other = rng.sample(words, len(words))
    same = [w.lower() for w in words] == [w.lower() for w in other]
    assert paws.is_word_swap(" ".join(words), " ".join(other).upper()) == (not same)
    assert not paws.is_word_swap(" ".join(words), " ".join([*other, "d"]))


def test_the_stand_in_has_swapped_pairs_of_both_labels():
    made = prepare_data(paws, {"from": "stand_in", "validation": 80}, {})
    assert made.protocol == "stand_in"
    test = made.tables["test"]
    assert {"swap", ""} == set(test["subset"])
    pairs = zip(test["label"], test["subset"], strict=True)
    assert {label for label, subset in pairs if subset == "swap"} == {0.0, 1.0}
    assert set(made.tables["train"]["label"]) == {0.0, 1.0}
