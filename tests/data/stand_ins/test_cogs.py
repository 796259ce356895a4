"""The stand-in of COGS: its format, the meaning of its logical forms, and its kinds of
generalisation.
"""

import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.preparing import prepare_data
from workflow_scripts.data.datasets import cogs
from workflow_scripts.data.datasets.cogs import STRUCTURAL, read_cogs
from workflow_scripts.data.stand_ins.cogs import write_cogs

NOUN = r"(?P<word>\w+) \( x _ (?P<position>\d+) \)"
VERB = r"(?P<word>\w+) \. (agent|theme|recipient|ccomp|xcomp) \( x _ (?P<position>\d+) , (x _ \d+|[A-Z][a-z]+) \)"
MODIFIER = r"(?P<word>\w+) \. nmod \. (?P<preposition>[a-z]+) \( x _ (?P<position>\d+) , x _ (?P<inner>\d+) \)"


@pytest.fixture(scope="module")
def made():
    return prepare_data(cogs, {"from": "stand_in"}, {})


def test_all_kinds_of_generalisation(made):
    kinds = {example.subset for example in made.splits["test"]}
    assert len(kinds) == 21 and made.protocol == "stand_in"
    assert set(STRUCTURAL) < kinds
    assert {len(group) for group in made.subset_groups.values()} == {3, 18}


def test_the_kinds_are_upstreams(mirror, made):
    upstream = set(json.loads((mirror / "cogs/gen_cases_to_paper_sections.json").read_text()))
    upstream |= {example.subset for example in read_cogs(mirror / "cogs/train.tsv")}
    assert {example.subset for examples in made.splits.values() for example in examples} <= upstream


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_no_sentence_stands_twice(seed):
    with tempfile.TemporaryDirectory() as folder:
        write_cogs(Path(folder), seed)
        files = {
            file: read_cogs(Path(folder) / f"{file}.tsv")
            for file in ("train", "dev", "test", "gen")
        }
    sizes = {file: len(examples) for file, examples in files.items()}
    assert sizes == {"train": 1000, "dev": 100, "test": 100, "gen": 210}
    assert len({example.source for examples in files.values() for example in examples}) == 1410


def test_every_fact_is_about_its_word(made):
    for example in {example for examples in made.splits.values() for example in examples}:
        if example.subset == "primitive":
            continue
        words = example.source.split(" ")
        *definite, facts = example.target.split(" ; ")
        order = []
        for fact in facts.split(" AND "):
            noun, verb, modifier = (
                re.fullmatch(pattern, fact) for pattern in (NOUN, VERB, MODIFIER)
            )
            found = noun or verb or modifier
            assert found, fact
            position = int(found["position"])
            order.append(position)
            if verb:
                assert words[position][0] == verb["word"][0]  # gave, give
            else:
                assert words[position] == found["word"]
            if noun:
                assert words[position - 1].lower() == "a"
            if modifier:
                assert words[position + 1] == modifier["preposition"]
                assert int(modifier["inner"]) == position + 3
        assert order == sorted(order)
        for noun in definite:
            found = re.fullmatch(r"\* " + NOUN, noun)
            assert words[int(found["position"])] == found["word"]
            assert words[int(found["position"]) - 1].lower() == "the"
        assert len(definite) == sum(word.lower() == "the" for word in words)


def test_held_out_words_are_where_training_never_has_them(made):
    training = [example for example in made.splits["train"] if example.subset == "in_distribution"]
    for word in (
        "hedgehog",
        "cockroach",
        "Lina",
        "Charlie",
        "shark",
        "Paula",
        "hippo",
        "cobra",
        "crawl",
        "blessed",
    ):
        assert not any(word in example.source.split(" ") for example in training)
        assert (
            any(word in example.source.split(" ") for example in made.splits["train"])
            or word == "crawl"
        )
    depth = max(example.source.split(" ").count("that") for example in training)
    assert depth == 1
    recursive = [example for example in made.splits["test"] if example.subset == "cp_recursion"]
    assert all(example.source.split(" ").count("that") == 3 for example in recursive)


def test_a_sentence_by_hand(made):
    pairs = {
        example.source: example.target for examples in made.splits.values() for example in examples
    }
    source = next(
        s for s in pairs if re.fullmatch(r"The (\w+) saw (Emma|Liam|Olivia|Noah|Ava|James) \.", s)
    )
    noun, name = source.split(" ")[1], source.split(" ")[3]
    assert (
        pairs[source]
        == f"* {noun} ( x _ 1 ) ; see . agent ( x _ 2 , x _ 1 ) AND see . theme ( x _ 2 , {name} )"
    )
