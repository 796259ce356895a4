"""SCAN's splits against upstream's files, and the sets with more primitives against their
definitions.
"""

import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.preparing import prepare_data
from tests.data.scan_oracle import interpret
from workflow_scripts.data.datasets import scan
from workflow_scripts.data.datasets.scan import read_scan
from workflow_scripts.data.splits import Example

# sha256 of the sorted lines, each with its line feed, of the files of github.com/brendenlake/SCAN
# at commit c4b756cbc010d75c912f16c42c8f15dc6b7e6c8f.
UPSTREAM = {
    ("add_jump", "train"): (
        14_670,
        "0683daacfdce23cf8ed6f5077feda21785e93ac82e0d11363a9280b7b0c6561e",
    ),
    ("add_jump", "test"): (
        7_706,
        "522454c6280eab957dfc4ea9579ef1d780a716ac34df09619970e1d98822d7e2",
    ),
    ("around_right", "train"): (
        15_225,
        "f2b91818e1216d5c95bf050c8d328ade7f773664fdc87e67d07f945e2134ebdc",
    ),
    ("around_right", "test"): (
        4_476,
        "8e1297eb61d98ff61ef480e9d4641d1d8596fe21c20131a57411a3fbdfd653a9",
    ),
}
FILES = {"add_jump": "addprim_jump", "around_right": "template_around_right"}


def lines(examples: list[Example]) -> list[str]:
    return sorted(f"IN: {example.source} OUT: {example.target}" for example in examples)


@pytest.mark.parametrize("name", ["add_jump", "around_right"])
def test_splits_of_the_grammar_are_upstreams(name):
    splits = prepare_data(scan, {"set": name}, {}).splits
    for split in ("train", "test"):
        text = "".join(line + "\n" for line in lines(splits[split]))
        assert (len(splits[split]), hashlib.sha256(text.encode()).hexdigest()) == UPSTREAM[
            name, split
        ]


@pytest.mark.parametrize("name", ["add_jump", "around_right"])
def test_splits_equal_the_real_files(name, mirror):
    files = {split: f"scan/tasks_{split}_{FILES[name]}.txt" for split in ("train", "test")}
    made = prepare_data(scan, {"set": name}, {}).splits
    taken = prepare_data(
        scan, {"set": name, "from": "upstream"}, {file: mirror / file for file in files.values()}
    ).splits
    for split, file in files.items():
        assert sorted((mirror / file).read_text().splitlines()) == lines(made[split])
        assert Counter(taken[split]) == Counter(made[split])
    assert all(
        example.target.split(" ") == interpret(example.source)
        for example in taken["train"] + taken["test"]
    )


def test_twice_the_primitives_has_the_lines_of_the_paper():
    prepared = prepare_data(scan, {"set": "add_jump_2x"}, {})
    train = prepared.splits["train"]
    copies = Counter(train)
    assert (len(train), len(copies)) == (97_906, 85_908)
    assert copies[Example("jump", "I_JUMP")] == copies[Example("walk2", "I_WALK2")] == 1_001
    assert copies[Example("jump1", "I_JUMP1")] == copies[Example("jump2", "I_JUMP2")] == 1_000
    assert copies[Example("walk2 left and run", "I_TURN_LEFT I_WALK2 I_RUN")] == 1
    assert all(example.target.split(" ") == interpret(example.source) for example in copies)
    in_context = {
        word for example in copies for word in example.source.split(" ") if " " in example.source
    }
    assert not any(word.startswith("jump") for word in in_context)
    original = prepare_data(scan, {"set": "add_jump"}, {}).splits
    assert set(original["train"]) < set(copies) and original["test"] == prepared.splits["test"]


def test_test_set_of_twice_the_primitives_from_upstreams_file(mirror):
    file = "scan/tasks_test_addprim_jump.txt"
    prepared = prepare_data(scan, {"set": "add_jump_2x", "from": "upstream"}, {file: mirror / file})
    assert prepared.splits["test"] == read_scan(mirror / file)
    assert len(prepared.splits["train"]) == 97_906


@pytest.mark.parametrize("copies", [1, 10, 100])
def test_atomic_copies(copies):
    train = prepare_data(scan, {"set": "add_jump_2x", "atomic_copies": copies}, {}).splits["train"]
    assert len(train) == 85_905 + 12 * copies + 1
    assert Counter(train)[Example("jump1", "I_JUMP1")] == copies


@pytest.mark.parametrize(("multiple", "name"), [(1, "add_jump"), (2, "add_jump_2x")])
def test_complexity_of_one_is_the_original_and_of_two_the_set_of_table_1(multiple, name):
    made = prepare_data(scan, {"set": "complexity", "multiple": multiple}, {})
    assert made.splits == prepare_data(scan, {"set": name}, {}).splits


@pytest.mark.parametrize(("multiple", "primitives", "lone"), [(20, 84, 142), (200, 804, 14)])
def test_complexity_is_sampled(multiple, primitives, lone):
    prepared = prepare_data(scan, {"set": "complexity", "multiple": multiple}, {})
    copies = Counter(prepared.splits["train"])
    assert len(prepared.splits["train"]) == 85_905 + primitives * lone + 1
    words = {word for example in copies for word in example.source.split(" ")}
    # turn, left, right, opposite, around, twice, thrice, and, after
    assert len(words) == primitives + 9
    context = [example for example in copies if not example.source.startswith("jump")]
    assert not any("jump" in example.source for example in context)
    # The commands of figures 1, 5 and 8 are trained on at every complexity.
    assert {"walk around left", "look around left", "run around left"} <= {
        example.source for example in context
    }
    assert all(example.target.split(" ") == interpret(example.source) for example in copies)
    assert (
        f"85905 of {3 * (7 * 3 * (multiple + 1) + 6) * (1 + 2 * 3 * (7 * 3 * (multiple + 1) + 6))}"
        in prepared.notes[0]
    )


def test_sampled_sentences_depend_on_the_seed_alone(monkeypatch):
    monkeypatch.setattr(scan, "CONTEXT_SENTENCES", 14_000)
    options = {"set": "complexity", "multiple": 20, "atomic_copies": 1}
    first, again = prepare_data(scan, options, {}), prepare_data(scan, options, {})
    other = prepare_data(scan, {**options, "seed": 1}, {})
    assert first == again
    assert first.splits["train"] != other.splits["train"]
    assert len(first.splits["train"]) == 14_000 + 84 + 1
    assert set(prepare_data(scan, {"set": "add_jump"}, {}).splits["train"]) < set(
        other.splits["train"]
    )


@pytest.mark.parametrize(("name", "size"), [("add_jump", 1_541), ("around_right", 895)])
def test_validation_inside_or_outside_the_test_set(name, size):
    paper = prepare_data(scan, {"set": name, "validation": "paper"}, {}).splits
    clean = prepare_data(scan, {"set": name, "validation": "clean"}, {}).splits
    assert paper["valid"] == clean["valid"]
    assert len(set(paper["valid"])) == size
    assert set(paper["valid"]) < set(paper["test"])
    assert not set(clean["valid"]) & set(clean["test"])
    assert Counter(clean["valid"]) + Counter(clean["test"]) == Counter(paper["test"])


def test_in_distribution_is_drawn_from_the_distinct_training_commands():
    splits = prepare_data(scan, {"set": "add_jump", "in_distribution": 300}, {}).splits
    assert len(set(splits["in_distribution"])) == 300
    assert set(splits["in_distribution"]) < set(splits["train"])


def test_limits_make_the_protocol_reduced():
    full = prepare_data(scan, {"set": "around_right"}, {})
    cut = prepare_data(scan, {"set": "around_right", "limit": {"train": 100, "test": 50}}, {})
    sizes = {split: len(examples) for split, examples in cut.splits.items()}
    assert sizes == {"train": 100, "valid": 10, "in_distribution": 100, "test": 50}
    assert (
        set(cut.splits["in_distribution"]) == set(cut.splits["train"]) < set(full.splits["train"])
    )
    assert set(cut.splits["test"]) < set(full.splits["test"])
    assert (full.protocol, cut.protocol) == ("paper", "reduced")


def test_line_ends_blank_lines_and_repeated_lines(tmp_path):
    file = tmp_path / "lines.txt"
    file.write_bytes(
        b"IN: jump OUT: I_JUMP\r\n\r\n  \nIN: jump OUT: I_JUMP\nIN: run twice OUT: I_RUN I_RUN"
    )
    assert read_scan(file) == [Example("jump", "I_JUMP")] * 2 + [
        Example("run twice", "I_RUN I_RUN")
    ]


WORDS = st.lists(
    st.sampled_from(["walk", "look", "run", "jump", "walk1", "jump12", "dax"]),
    min_size=1,
    unique=True,
)


@given(WORDS, st.data())
def test_any_command_means_what_its_words_say(primitives, data):
    parts = scan.list_phrases(primitives)
    index = data.draw(st.integers(0, scan.count_commands(parts) - 1))
    command, actions = scan.get_command(parts, index)
    assert actions.split(" ") == interpret(command)


@pytest.mark.parametrize(("primitives", "commands"), [(3, 13_203), (4, 20_910), (9, 85_905)])
def test_number_of_commands(primitives, commands):
    parts = scan.list_phrases(["walk", "look", "run", "jump", *"abcde"][:primitives])
    assert len(parts) == 3 * (7 * primitives + 6)
    assert scan.count_commands(parts) == commands


@pytest.mark.parametrize("name", ["add_jump", "around_right", "add_jump_2x"])
def test_longest_actions_leaves_out_every_longer_command(name):
    """No other command is left out; `walk around right` has 8 actions."""
    usual = prepare_data(scan, {"set": name}, {}).splits
    short = prepare_data(scan, {"set": name, "longest_actions": 9}, {})
    for split in ("train", "test"):
        expected = [example for example in usual[split] if len(example.target.split()) <= 9]
        assert short.splits[split] == expected != usual[split]
    longest = max(len(row.target.split()) for rows in short.splits.values() for row in rows)
    assert longest == 9 and short.protocol == "reduced"


def test_commands_that_are_held_out_are_like_those_of_training_and_none_of_them():
    options = {"set": "add_jump_2x", "in_distribution": 300}
    usual = prepare_data(scan, options, {}).splits
    made = prepare_data(scan, options | {"hold_out": True}, {})
    held_out = made.splits["in_distribution"]
    assert len(set(held_out)) == 300 and not set(held_out) & set(made.splits["train"])
    taken = Counter(usual["train"]) - Counter(made.splits["train"])
    assert taken == Counter(held_out)
    # All lone primitives are trained on, as often as without; `jump` is nowhere else.
    assert all(" " in example.source for example in held_out)
    assert not any("jump" in example.source for example in held_out)
    assert (made.splits["test"], made.splits["valid"]) == (usual["test"], usual["valid"])
    assert made.protocol == "reduced"
    limited = prepare_data(scan, options | {"hold_out": True, "limit": {"train": 500}}, {}).splits
    assert limited["in_distribution"] == held_out and len(limited["train"]) == 500
    assert Example("jump", "I_JUMP") in limited["train"]
