"""Compound translation error rate: upstream's own numbers, and an oracle written from its
description.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.data.datasets.cognition import read_cognition_lexicon
from workflow_scripts.data.sources.archives import read_text_lines
from workflow_scripts.evaluation.compounds import (
    PART_OF,
    PARTS,
    compute_error_rates,
    find_compound_errors,
    find_phrase_type,
    make_checker,
    remove_spaces,
    split_compound,
)

LEXICON = {
    "the": [],
    "every": ["每", "所有"],
    "liked": ["喜欢", ""],
    "took": ["带", "拿"],
    "small": ["小"],
    "red": ["红"],
    "dog": ["狗", "犬"],
    "car": ["车"],
    "under": ["下"],
    "on": [],
    "mod0": ["他喜欢的"],
    "mod2": ["地上", "地板上"],
}


@pytest.fixture(scope="session")
def upstream(mirror):
    folder = mirror / "cognition"
    lines = {
        name: read_text_lines(folder / f"cg-test_cg-test.{name}")
        for name in ("en", "zh", "compound")
    }
    return lines | {"lexicon": read_cognition_lexicon(folder / "eval_lexicon")}


def rates(upstream, translations, rows=slice(None)):
    errors = find_compound_errors(upstream["compound"], translations, upstream["lexicon"])[rows]
    return pytest.approx(compute_error_rates(errors), abs=0.0005)


def test_upstreams_script_has_these_numbers_for_its_references(upstream):
    references = upstream["zh"]
    assert rates(upstream, references) == (2.620, 9.815)
    assert rates(upstream, references, slice(0, 3600)) == (0.889, 3.333)
    assert rates(upstream, references, slice(3600, 7200)) == (1.361, 5.694)
    assert rates(upstream, references, slice(7200, None)) == (5.611, 20.417)
    assert rates(upstream, ["x"] * 10_800) == (100, 100)
    assert rates(upstream, references[1:] + references[:1]) == (18.528, 82.824)
    assert rates(upstream, references[5:] + references[:5]) == (82.074, 83.657)


def test_types_of_phrases_are_upstreams_thirds(upstream):
    found = [find_phrase_type(compound) for compound in upstream["compound"]]
    assert found == ["NP"] * 3600 + ["VP"] * 3600 + ["PP"] * 3600


def test_words_of_the_lexicon(upstream):
    counts = {part: len(words.split()) for part, words in PARTS.items()}
    assert counts == {"P": 17, "V": 19, "DET": 5, "ADJ": 11, "N": 19, "MOD": 3}
    assert upstream["lexicon"].keys() == PART_OF.keys()
    assert "房子" in upstream["lexicon"]["building"]  # of two lines the later one
    assert upstream["lexicon"]["liked"] == ["喜欢", ""]


def described(compound: str, translation: str) -> bool:
    """Whether there is an error, step by step as the metric is described, with regular expressions."""
    for phrase, name in (("he liked", "mod0"), ("at the store", "mod1"), ("on the floor", "mod2")):
        compound = compound.replace(phrase, name)
    translation = translation.replace("@@ ", "").replace(" ", "")
    state = {part: (True, []) for part in ("P", "V", "DET", "ADJ", "N", "MOD")}
    for atom in compound.split(" "):
        correct, positions = not LEXICON[atom], []
        for alternative in LEXICON[atom]:
            starts = [match.start() for match in re.finditer(alternative, translation)]
            correct |= bool(starts)
            positions += starts
        state[PART_OF[atom]] = correct, positions
    if not all(correct for correct, _ in state.values()):
        return True

    def before(first: str, second: str) -> bool:
        one, other = state[first][1], state[second][1]
        return not one or not other or min(one) < max(other)

    checks = [before("DET", "N"), before("ADJ", "N")]
    if not state["V"][1]:
        checks.append(before("MOD", "N"))
    return not all(checks)


@given(
    st.lists(
        st.sampled_from(["every", "liked", "took", "small", "red", "dog", "car", "under", "on"]),
        min_size=1,
    ),
    st.sampled_from(["", " he liked", " on the floor"]),
    st.lists(
        st.sampled_from([*"每所有喜欢带拿小红狗犬车下地上的他", "他喜欢的", "地板上", "@@ ", " "]),
        max_size=16,
    ),
)
def test_as_described(words, modifier, signs):
    compound, translation = " ".join(words) + modifier, "".join(signs)
    assert make_checker(compound, LEXICON)(remove_spaces(translation)) == described(
        compound, translation
    )


@pytest.mark.parametrize(
    ("compound", "translation", "wrong"),
    [
        ("every small dog", "每只小狗", False),
        ("every small dog", "每 只 小@@ 狗 。", False),
        ("every small dog", "每只狗很小", True),  # after the noun
        ("every small dog", "每只狗很小，犬", False),  # any translation of the noun will do
        ("the dog on the floor", "地板上的狗", False),
        ("the dog on the floor", "狗在地板上", True),
        (
            "took the dog on the floor",
            "把狗带到地上",
            False,
        ),  # with a verb the modifier's place is free
        ("liked the dog", "狗", False),  # the empty translation of `liked` is everywhere
        ("the small dog", "小狗和红狗", False),
        ("the dog", "车", True),
    ],
)
def test_single_translations(compound, translation, wrong):
    assert make_checker(compound, LEXICON)(remove_spaces(translation)) == wrong


def test_a_compound_is_wrong_if_one_of_its_five_sentences_is():
    errors = [number in (1, 3, 12, 16) for number in range(17)]
    # The last two lines are no group of five.
    assert compute_error_rates(errors) == pytest.approx((100 * 4 / 17, 100 * 2 / 3))
    assert compute_error_rates(errors[:4]) == (50, None)


def test_words_and_phrases():
    assert split_compound("took every small car at the store") == [
        "took",
        "every",
        "small",
        "car",
        "mod1",
    ]
    found = [
        find_phrase_type(text) for text in ("the dog he liked", "took the dog", "under the car")
    ]
    assert found == ["NP", "VP", "PP"]
