"""Inverse dictionary: cleaning of glosses, which items there are, and that splits part them."""

import random

import pytest

from workflow_scripts.data.datasets import inverse_dictionary
from workflow_scripts.data.datasets.inverse_dictionary import (
    SOURCE,
    Item,
    clean_definition,
    find_items,
    group_connected_items,
    select_held_out_items,
    split_items,
)
from workflow_scripts.data.formats.wordnet import Synset, WordNet
from workflow_scripts.data.prepared import prepare_data
from workflow_scripts.data.stand_ins.wordnet import write_wordnet

TOPICS = {"law", "american football", "physics"}


@pytest.mark.parametrize(
    ("gloss", "content"),
    [
        ('a tall boy; "the boy ran"; "no"', "a tall boy"),
        ("(law) a formal claim; a demand", "in law a formal claim and a demand"),
        ("(American football) a throw", "in American football a throw"),
        ("(weapons) of atomic energy", "weapons of atomic energy"),
        ("a claim; law", "in law a claim"),
        ("American football; the game", "American football and the game"),
        ("(usually followed by `to') having the skill or know-how", "having the skill or knowhow"),
        ("keep away; often followed by `from'", "keep away"),
        ("keep away; - said of dogs", "keep away"),
        ("the end -- or the/a stop; and the rest", "the end or the a stop and the rest"),
        ("the batter's 2.5 knees, and_so on", "the batters 25 knees andso on"),
        ("as in: \"a 'b' c\"", "as in"),
        ('"only an example"', ""),
        ("(followed by `of')", ""),
    ],
)
def test_cleaning(gloss, content):
    assert clean_definition(gloss, TOPICS) == content


def test_items_of_a_small_dictionary():
    synsets = [
        Synset("1n", ("domestic_dog", "hound", "dog"), "a tame wolf", ()),
        Synset("2n", ("dog", "Hound"), "a dull person", ()),
        Synset("3n", ("dog",), "barker", ()),  # a definition of one word
        Synset("4n", ("rare",), "not in the tagged texts", ()),
        Synset("5n", ("Hound", "dog"), "a rake of equal counts", ()),
        Synset("6n", ("x-ray", "o"), "no plain words", ()),
        Synset("7n", ("Dog_racing",), "a sport", ()),
        Synset("8n", ("hound",), "(dog racing) one of the runners", ("7n",)),
    ]
    counts = {("dog", "1n"): 9, ("hound", "1n"): 2, ("hound", "2n"): 1, ("x-ray", "6n"): 99, ("o", "6n"): 99}
    wordnet = WordNet({synset.id: synset for synset in synsets}, counts)
    assert find_items(wordnet, 10) == [
        Item("1n", "a tame wolf", "dog"),
        Item("2n", "a dull person", "Hound"),
        Item("5n", "a rake of equal counts", "Hound"),
        Item("8n", "in dog racing one of the runners", "hound"),
    ]
    assert [item.synset for item in find_items(wordnet, 1)] == ["1n", "2n", "5n"]
    assert {item.label for item in find_items(wordnet, 1)} == {"dog"}


def test_how_frequent_a_word_is_does_not_hang_on_its_senses():
    senses = {("run", "1v"): 3, ("run", "2n"): 3, ("hold", "3v"): 5, ("add", "4v"): 5, ("ice_cream", "5n"): 99}
    wordnet = WordNet({key: Synset(key, (word,), "two words", ()) for word, key in senses}, senses)
    assert [{item.label for item in find_items(wordnet, n)} for n in (1, 2)] == [{"run"}, {"run", "add"}]


def made_up(count: int, words: int, contents: int, seed: int) -> list[Item]:
    rng = random.Random(seed)
    return [Item(f"{i}n", f"content {rng.randrange(contents)}", f"word{rng.randrange(words)}") for i in range(count)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("by", ["item", "word"])
def test_splits_part_the_items(seed, by):
    items = made_up(500, 300, 2000, seed)
    splits = split_items(items, by)
    assert sorted(i for positions in splits.values() for i in positions) == list(range(500))
    assert {split: len(positions) for split, positions in splits.items()} == {"train": 400, "valid": 50, "test": 50}
    if by == "word":
        for part in ("label", "content"):
            values = [{getattr(items[i], part) for i in positions} for positions in splits.values()]
            assert not values[0] & values[1] and not values[0] & values[2] and not values[1] & values[2]
    assert splits == split_items(items, by)


@pytest.mark.parametrize("count", [9, 40, 333])
def test_the_split_is_that_of_seed_42(count):
    order = list(range(count))
    random.Random(42).shuffle(order)
    tenth = count // 10
    parts = {"train": order[2 * tenth :], "valid": order[tenth : 2 * tenth], "test": order[:tenth]}
    assert split_items(made_up(count, 9, 9, 0), "item") == {split: sorted(rows) for split, rows in parts.items()}


def test_words_are_connected_through_a_definition():
    items = [Item("1", "a b", "x"), Item("2", "c d", "y"), Item("3", "A b", "Y"), Item("4", "e f", "z")]
    assert sorted(map(sorted, group_connected_items(items))) == [[0, 1, 2], [3]]


def test_held_out_are_those_of_either_split():
    items = made_up(500, 300, 2000, 0)
    keys = {item.synset for item in select_held_out_items(items)}
    for by in ("item", "word"):
        splits = split_items(items, by)
        assert keys >= {items[i].synset for i in splits["valid"] + splits["test"]}
    assert len(keys) < 250


def test_the_stand_in_and_the_same_folder_as_a_source(tmp_path):
    made = prepare_data(inverse_dictionary, {"from": "stand_in"}, {})
    assert made.protocol == "stand_in"
    assert {split: len(table["item"]) for split, table in made.tables.items()} == {
        "train": 248, "valid": 30, "test": 30
    }  # fmt: skip
    write_wordnet(tmp_path)
    read = prepare_data(inverse_dictionary, {}, {SOURCE: tmp_path})
    assert read.tables == made.tables and read.protocol == "reduced"
    keys = [key for table in made.tables.values() for key in table["item"]]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("by", ["item", "word"])
def test_sizes_of_the_real_data(mirror, by):
    prepared = prepare_data(inverse_dictionary, {"split_by": by}, {SOURCE: mirror / SOURCE})
    assert {split: len(table["item"]) for split, table in prepared.tables.items()} == {
        "train": 11_948, "valid": 1_493, "test": 1_493
    }  # fmt: skip
    contents = [content for table in prepared.tables.values() for content in table["content"]]
    assert not [content for content in contents if any(mark in content for mark in '";()`,')]
    assert min(len(content.split()) for content in contents) == 2
