"""The grammar against an interpreter that reads the words, and against the published counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.scan_oracle import interpret
from workflow_scripts.data.datasets import scan_grammar

WORDS = st.lists(st.sampled_from(["walk", "look", "run", "jump", "walk1", "jump12", "dax"]), min_size=1, unique=True)


@given(WORDS, st.data())
def test_any_command_means_what_its_words_say(primitives, data):
    parts = scan_grammar.list_phrases(primitives)
    index = data.draw(st.integers(0, scan_grammar.count_commands(parts) - 1))
    command, actions = scan_grammar.get_command(parts, index)
    assert actions.split(" ") == interpret(command)


@pytest.mark.parametrize(("primitives", "commands"), [(3, 13_203), (4, 20_910), (9, 85_905)])
def test_number_of_commands(primitives, commands):
    parts = scan_grammar.list_phrases(["walk", "look", "run", "jump", *"abcde"][:primitives])
    assert len(parts) == 3 * (7 * primitives + 6)
    assert scan_grammar.count_commands(parts) == commands


def test_the_four_primitives_make_20910_distinct_commands():
    everything = scan_grammar.list_commands(scan_grammar.PRIMITIVES)
    assert len(everything) == len({command for command, _ in everything}) == 20_910
    assert all(actions.split(" ") == interpret(command) for command, actions in everything)


def test_the_examples_of_the_paper():
    meaning = dict(scan_grammar.list_commands(scan_grammar.PRIMITIVES))
    assert meaning["jump thrice"] == "I_JUMP I_JUMP I_JUMP"
    assert meaning["turn opposite left"] == "I_TURN_LEFT I_TURN_LEFT"
    assert meaning["jump opposite left after walk around left"] == (
        "I_TURN_LEFT I_WALK I_TURN_LEFT I_WALK I_TURN_LEFT I_WALK I_TURN_LEFT I_WALK I_TURN_LEFT I_TURN_LEFT I_JUMP"
    )
    assert "turn" not in meaning
    assert "turn twice" not in meaning
