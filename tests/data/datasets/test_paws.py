"""PAWS: the real files, upstream's archives as small files, the swap-only subset, pairs made from Quora's questions."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data import upstream_files
from tests.data.packing import pack
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets import paws
from workflow_scripts.data.prepared import prepare_data


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
    made = prepare_data(paws, {"set": "dev_test"}, {name: mirror / name for name in (paws.DEV, paws.TEST)})
    assert {split: len(columns["item"]) for split, columns in made.tables.items()} == {
        "train": 7200, "valid": 800, "test": 8000
    }  # fmt: skip
    assert Counter(made.tables["test"]["label"]) == {0.0: 4464, 1.0: 3536}
    assert made.tables["test"]["subset"].count("swap") == 531 and made.protocol == "reduced"
    # The bags of words are equal, counted another way.
    rows = zip(*(made.tables["test"][name] for name in ("first", "second", "subset")), strict=True)
    for first, second, subset in rows:
        equal = Counter(first.lower().split()) == Counter(second.lower().split()) and first.lower() != second.lower()
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


QUESTIONS = (
    "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    '0\t1\t2\tCan a cat see a dog?\t"Can a dog see\na ""cat""?"\t1\n'
    "1\t3\t4\tWhat's new?\tWhy not?\t0\n"
)


def test_pairs_of_quora_questions(tmp_path, mirror):
    (tmp_path / "questions.tsv").write_text(QUESTIONS)
    header = "id\tqid1\tsentence1\tqid2\tsentence2\tlabel\n"
    lines = {
        "train.tsv": f"{header}1\t1\t0/1/5/3/4/2/6\t2\t0/1/2/3/4/6/8\t0\n2\t3\t0/1/2/3\t3\t(3, 0):(4, 1)/3\t1\n",
        "dev_and_test.tsv": f"{header}1\t1\t0/99\t2\t0\t0\n2\t1\t0\t9\t0\t1\n3\t1\t0/1\t2\t0/1\t1\n",
    }
    index = pack(tmp_path / "paws_qqp.tar.gz", lines)
    made, notes = paws.rebuild_paws_qqp(index, tmp_path / "questions.tsv", mirror / paws.PUNKT)
    assert [(pair.first, pair.second, pair.label) for pair in made["train"]] == [
        ("Can a dog see a cat ?", "Can a dog see a cat ?", 0.0),
        ("What 's new ?", "Whatnot ?", 1.0),
    ]
    assert [pair.item for pair in made["dev_and_test"]] == ["dev_and_test-3"]
    assert notes[1] == "dev_and_test: 2 of 3 pairs of PAWS-QQP cannot be made from these questions"


def test_an_index_of_another_form(tmp_path, mirror):
    (tmp_path / "questions.tsv").write_text(QUESTIONS)
    files = {f"{part}.tsv": "id\tqid1\tsentence1\tqid2\tsentence2\tlabel\n1\t1\t0/x\t2\t0\t0\n"
             for part in ("train", "dev_and_test")}  # fmt: skip
    index = pack(tmp_path / "paws_qqp.tar.gz", files)
    with pytest.raises(UserError, match=r"paws_qqp.tar.gz: line 2 is not a pair of lists of words"):
        paws.rebuild_paws_qqp(index, tmp_path / "questions.tsv", mirror / paws.PUNKT)
    files = {name: content.replace("qid2", "question2", 1) for name, content in files.items()}
    with pytest.raises(UserError, match=r"paws_qqp.tar.gz: train.tsv: no column 'qid2'"):
        paws.rebuild_paws_qqp(pack(index, files), tmp_path / "questions.tsv", mirror / paws.PUNKT)


def test_a_question_as_long_as_a_file_is_named(tmp_path, mirror):
    """One quote too many makes one field of all following lines."""
    (tmp_path / "questions.tsv").write_text(QUESTIONS + '2\t5\t6\t"Who' + "\nand so on" * 20_000)
    with pytest.raises(UserError, match=r"questions.tsv:\d+: field larger than field limit .*; get the file again"):
        paws.read_question_words(tmp_path / "questions.tsv", {5}, mirror / paws.PUNKT)
