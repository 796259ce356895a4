from pathlib import Path

import pandas
import pytest

from workflow_scripts.analyses.word_classes import find_cogs_classes, find_scan_classes
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets import cogs


def test_every_scan_word_has_the_class_that_the_paper_names() -> None:
    expected = {
        **dict.fromkeys(["walk", "look", "run", "jump", "turn", "walk17", "jump200"], "verb"),
        **dict.fromkeys(["left", "right"], "direction"),
        **dict.fromkeys(["around", "opposite"], "preposition"),
        **dict.fromkeys(["twice", "thrice"], "adverb"),
        **dict.fromkeys(["and", "after"], "conjunction"),
    }
    assert find_scan_classes([*expected, "<pad>", "<s>", "</s>", "<unk>"]) == expected


def test_a_word_outside_the_grammar_is_an_error() -> None:
    with pytest.raises(UserError, match="'skip' is no word of SCAN"):
        find_scan_classes(["skip"])


SENTENCES = [
    (
        "A rose was helped by a dog .",
        "rose ( x _ 1 ) AND help . theme ( x _ 3 , x _ 1 ) AND help . agent ( x _ 3 , x _ 6 ) AND dog ( x _ 6 )",
    ),
    ("Emma helped the dog .", "* dog ( x _ 3 ) ; help . agent ( x _ 1 , Emma ) AND help . theme ( x _ 1 , x _ 3 )"),
    (
        "Liam ate a cake on a table .",
        "eat . agent ( x _ 1 , Liam ) AND eat . theme ( x _ 1 , x _ 3 ) AND cake ( x _ 3 ) "
        "AND cake . nmod . on ( x _ 3 , x _ 6 ) AND table ( x _ 6 )",
    ),
    ("A cake was eaten by Emma .", "cake ( x _ 1 ) AND eat . theme ( x _ 3 , x _ 1 ) AND eat . agent ( x _ 3 , Emma )"),
    (
        "Emma hoped that Liam wanted to run .",
        "hope . agent ( x _ 1 , Emma ) AND hope . ccomp ( x _ 1 , x _ 4 ) AND want . agent ( x _ 4 , Liam ) "
        "AND want . xcomp ( x _ 4 , x _ 6 ) AND run . agent ( x _ 6 , Liam )",
    ),
    ("shark", "LAMBDA a . shark ( a )"),
    ("crawl", "LAMBDA a . LAMBDA e . crawl . agent ( e , a )"),
    ("Paula", "Paula"),
]


def test_cogs_classes_come_from_the_logical_forms() -> None:
    assert find_cogs_classes(SENTENCES) == {
        **dict.fromkeys(["rose", "dog", "cake", "table", "shark"], "common noun"),
        **dict.fromkeys(["Emma", "Liam", "Paula"], "proper name"),
        **dict.fromkeys(["ate", "hoped", "wanted"], "verb, past"),
        "eaten": "verb, participle",
        "helped": "verb, past or participle",
        **dict.fromkeys(["run", "crawl"], "verb, infinitive"),
        "on": "preposition",
        **dict.fromkeys(["A", "a", "the"], "determiner"),
        **dict.fromkeys(["was", "by", "that", "to", "."], "function word"),
    }


def test_a_word_has_the_class_that_it_shows_most_often() -> None:
    noun, verb = ("saw", "LAMBDA a . saw ( a )"), ("saw", "LAMBDA a . LAMBDA e . saw . agent ( e , a )")
    assert find_cogs_classes([noun, verb, verb]) == {"saw": "verb, infinitive"}
    assert find_cogs_classes([noun, noun, verb]) == {"saw": "common noun"}


def test_the_stand_in_for_cogs_is_classified_whole() -> None:
    prepared = cogs.prepare({"from": "stand_in", "limit": {"train": 600, "test": 100}}, {})
    pairs = [(example.source, example.target) for example in prepared.splits["train"]]
    classes = find_cogs_classes(pairs)
    assert classes.keys() == {word for sentence, _ in pairs for word in sentence.split()}
    assert {"common noun", "proper name", "verb, past", "preposition", "determiner"} <= set(classes.values())
    assert {word for word, name in classes.items() if name == "function word"} <= {"was", "by", "to", "that", "."}


def test_the_words_of_cogs(mirror: Path) -> None:
    table = pandas.read_csv(mirror / "cogs/train.tsv", sep="\t", names=["sentence", "form", "kind"])
    classes = find_cogs_classes(table[["sentence", "form"]].itertuples(index=False))
    counts = pandas.Series(classes).value_counts()
    assert counts.sum() == 743
    names = ["proper name", "common noun", "preposition", "determiner"]
    assert counts[names].tolist() == [103, 406, 3, 4]
    # The paper's appendix C.2: in COGS "can" is a noun only.
    assert (classes["can"], classes["gave"], classes["given"]) == ("common noun", "verb, past", "verb, participle")
