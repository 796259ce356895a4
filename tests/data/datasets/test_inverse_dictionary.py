"""Inverse dictionary: cleaning of glosses, which items there are, and that splits part them."""

import json
import random

import pytest

from tests.data.nltk_wordnet import unpack_for_nltk
from tests.data.preparing import prepare_data, write_data
from workflow_scripts.data.datasets import inverse_dictionary
from workflow_scripts.data.datasets.inverse_dictionary import (
    SOURCE,
    Item,
    clean_definition,
    collect_topic_words,
    find_items,
    group_connected_items,
    has_own_word,
    select_held_out_items,
    split_items,
)
from workflow_scripts.data.formats.wordnet import Lexicon, Synset, WordNet, read_wordnet
from workflow_scripts.data.stand_ins.wordnet import write_wordnet

TOPICS = {"law", "american football", "physics"}


@pytest.mark.parametrize(
    ("gloss", "content"),
    [
        ('a tall boy; "the boy ran"; "no"', "a tall boy"),
        ("(law) a formal claim; a demand", "in law a formal claim and a demand"),
        ("(American football) a throw", "in American football a throw"),
        ("(weapons) of atomic energy", "of atomic energy"),
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
        (
            "of a suit (law) or a claim",
            "of a suit or a claim",
        ),  # no topic: it is not at the start of a part
        ("a claim; (law; physics) a demand", "a claim and a demand"),
        ("a claim; (law) a demand", "in law a claim and a demand"),
        (
            "other than the former one(s); having an (over)abundance",
            "other than the former ones and having an overabundance",
        ),
        ("an unclosed (bracket", "an unclosed bracket"),
    ],
)
def test_cleaning(gloss, content):
    assert clean_definition(gloss, TOPICS) == content


# Parts of glosses of WordNet 3.0, and what the paper's "removal of special characters, punctuation,
# extra spaces, and parenthesised content where necessary" makes of the glosses; the official data
# keep topic domains, as `in <topic>`.
REAL = {
    ("neckwear consisting of a long narrow piece of material", "tie"): (
        "(mostly by men)",
        "neckwear consisting of a long narrow piece of material worn under a collar and tied in knot at the front",
    ),
    ("compact and fine-grained", "heavy"): ("(used of soil)", "compact and finegrained"),
    ("several contests played", "series"): (
        "(sports)",
        "several contests played successively by the same teams",
    ),
    ("a turn trying to get a hit", "bat"): ("(baseball)", "in baseball a turn trying to get a hit"),
    ("expressing action rather than", "active"): (
        "(e.g. `running' in `running water')",
        "expressing action rather than a state of being",
    ),
    ("United States jazz tenor saxophonist", "Young"): (
        "(1909-1959)",
        "United States jazz tenor saxophonist",
    ),
    ("governed by fate", "bound"): ("(usually followed by `to')", "governed by fate"),
    ("any group of human beings", "people"): ("(plural)", "any group of human beings collectively"),
    ("other than the former one", "new"): ("one(s)", "other than the former ones and different"),
}


@pytest.mark.parametrize("key", REAL, ids=lambda key: key[1])
def test_parentheses_of_real_glosses_are_removed(key, real_wordnet):
    (part, label), (inside, content) = key, REAL[key]
    (synset,) = (s for s in real_wordnet.synsets.values() if part in s.gloss and label in s.lemmas)
    assert inside in synset.gloss
    assert clean_definition(synset.gloss, collect_topic_words(real_wordnet)) == content


@pytest.fixture(scope="module")
def real_wordnet(mirror) -> WordNet:
    return read_wordnet(mirror / SOURCE)


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
    counts = {
        ("dog", "1n"): 9,
        ("hound", "1n"): 2,
        ("hound", "2n"): 1,
        ("x-ray", "6n"): 99,
        ("o", "6n"): 99,
    }
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
    senses = {
        ("run", "1v"): 3,
        ("run", "2n"): 3,
        ("hold", "3v"): 5,
        ("add", "4v"): 5,
        ("ice_cream", "5n"): 99,
    }
    wordnet = WordNet({key: Synset(key, (word,), "two words", ()) for word, key in senses}, senses)
    assert [{item.label for item in find_items(wordnet, n)} for n in (1, 2)] == [
        {"run"},
        {"run", "add"},
    ]


def made_up(count: int, words: int, contents: int, seed: int) -> list[Item]:
    rng = random.Random(seed)
    return [
        Item(f"{i}n", f"content {rng.randrange(contents)}", f"word{rng.randrange(words)}")
        for i in range(count)
    ]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("by", ["item", "word"])
def test_splits_part_the_items(seed, by):
    items = made_up(500, 300, 2000, seed)
    splits = split_items(items, by)
    assert sorted(i for positions in splits.values() for i in positions) == list(range(500))
    assert {split: len(positions) for split, positions in splits.items()} == {
        "train": 400,
        "valid": 50,
        "test": 50,
    }
    if by == "word":
        for part in ("label", "content"):
            values = [{getattr(items[i], part) for i in positions} for positions in splits.values()]
            assert (
                not values[0] & values[1]
                and not values[0] & values[2]
                and not values[1] & values[2]
            )
    assert splits == split_items(items, by)


@pytest.mark.parametrize("count", [9, 40, 333])
def test_the_split_is_that_of_seed_42(count):
    order = list(range(count))
    random.Random(42).shuffle(order)
    tenth = count // 10
    parts = {"train": order[2 * tenth :], "valid": order[tenth : 2 * tenth], "test": order[:tenth]}
    assert split_items(made_up(count, 9, 9, 0), "item") == {
        split: sorted(rows) for split, rows in parts.items()
    }


def test_words_are_connected_through_a_definition():
    items = [
        Item("1", "a b", "x"),
        Item("2", "c d", "y"),
        Item("3", "A b", "Y"),
        Item("4", "e f", "z"),
    ]
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
        "train": 11_913, "valid": 1_488, "test": 1_488
    }  # fmt: skip
    contents = [content for table in prepared.tables.values() for content in table["content"]]
    assert not [content for content in contents if any(mark in content for mark in '";()`,')]
    assert min(len(content.split()) for content in contents) == 2


def lexicon(*words: str, exceptions: dict[tuple[str, str], list[str]] | None = None) -> Lexicon:
    """A dictionary of `n:dog` and so on."""
    return Lexicon([], {tuple(word.split(":")): [0] for word in words}, exceptions or {})


@pytest.mark.parametrize(
    ("label", "content", "holds"),
    [
        ("dog", "a dog that barks", True),
        ("Dog", "a DOG that barks", True),
        ("dog", "an animal like dogs", True),
        ("dog", "the dogs tail", True),  # it was `the dog's tail`
        ("child", "the childs toy", True),  # and `the child's toy`
        ("child", "the childrens toy", True),  # `children` is irregular
        ("run", "the act of running", True),
        ("run", "he ran away", True),
        ("late", "later than usual", True),  # as an adjective
        ("dog", "a dogged person", False),  # another word
        ("run", "a runner on foot", False),
        ("cat", "a category", False),
        ("cold", "of coldblooded animals", False),  # a part of a word
        ("running", "to run away", False),  # `run` is no form of the noun
    ],
)
def test_a_definition_holds_its_own_word_in_any_form(label, content, holds):
    irregular = {("n", "children"): ["child"], ("v", "ran"): ["run"], ("v", "running"): ["run"]}
    known = lexicon(
        "n:dog",
        "n:child",
        "v:run",
        "n:running",
        "a:late",
        "a:dogged",
        "n:runner",
        exceptions=irregular,
    )
    assert has_own_word(Item("1n", content, label), known) is holds


def test_items_with_their_word_in_the_definition_are_left_out_of_all_splits(tmp_path, monkeypatch):
    """Five items in six hold it; those that stay are in the split where they are without the
    option.
    """
    items = [Item(f"{i}n", "the act of jumping" if i % 6 else "to leap", "jump") for i in range(60)]
    monkeypatch.setattr(inverse_dictionary, "find_items", lambda *_: items)
    whole = prepare_data(inverse_dictionary, {"from": "stand_in"}, {})
    made = prepare_data(
        inverse_dictionary, {"from": "stand_in", "leave_out": "word_in_definition"}, {}
    )
    counts = {}
    for split, table in whole.tables.items():
        stay = [
            item
            for item, content in zip(table["item"], table["content"], strict=True)
            if content == "to leap"
        ]
        assert made.tables[split]["item"] == stay
        counts[split] = len(table["item"]) - len(stay)
    assert sum(counts.values()) == 50 and min(counts.values()) > 0
    module = "workflow_scripts.data.datasets.inverse_dictionary"
    spec = {"task": "idm", "prepare": module, "options": {}, "sources": [], "protocol": "stand_in"}
    for name, data in (("whole", whole), ("made", made)):
        write_data(data, spec, tmp_path / name)
    assert "left_out" not in json.loads((tmp_path / "whole/dataset.json").read_text())
    content = json.loads((tmp_path / "made/dataset.json").read_text())
    assert content["left_out"] == {"word_in_definition": counts}
    said = ", ".join(f"{counts[split]} of {split}" for split in ("train", "valid", "test"))
    assert any(
        note.endswith(f"the definition holds a form of the word: {said}")
        for note in content["notes"]
    )


@pytest.mark.filterwarnings("ignore:The multilingual functions")
@pytest.mark.slow
def test_what_the_real_data_leave_out_is_what_nltks_lemmatiser_finds(mirror, tmp_path, monkeypatch):
    prepared = prepare_data(
        inverse_dictionary, {"leave_out": "word_in_definition"}, {SOURCE: mirror / SOURCE}
    )
    whole = prepare_data(inverse_dictionary, {}, {SOURCE: mirror / SOURCE})
    reader = unpack_for_nltk(mirror / SOURCE, tmp_path, monkeypatch)

    def finds(label: str, content: str) -> bool:
        words = {
            *content.lower().split(),
            *(word.removesuffix("s") for word in content.lower().split()),
        }
        return label.lower() in {
            form for word in words for pos in "nvar" for form in (word, *reader._morphy(word, pos))
        }

    left_out = prepared.described["left_out"]["word_in_definition"]
    for split, table in whole.tables.items():
        rows = list(zip(table["item"], table["label"], table["content"], strict=True))
        assert prepared.tables[split]["item"] == [
            item for item, *texts in rows if not finds(*texts)
        ]
        assert left_out[split] == len(rows) - len(prepared.tables[split]["item"])
    assert sum(left_out.values()) == 2_088
