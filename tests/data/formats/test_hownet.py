"""Sememes from upstream's pickles and from the stand-ins; malformed ones are named."""

import pickle

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.formats.hownet import read_sememes
from workflow_scripts.data.stand_ins import sememes as stand_in


def test_upstream(mirror):
    words, names = read_sememes(mirror / "sememes")
    assert len(names) == 3152 and len(words) == 104_027 - 1
    assert {names[i] for i in words["wife"]} == {"female", "family", "spouse", "human"}
    assert {names[i] for i in words["dog"]} == {"livestock", "follow", "chase", "domesticated"}
    # Three have the empty word alone, which is left out.
    assert len({i for numbers in words.values() for i in numbers}) == 3149
    assert sum(len(numbers) for numbers in words.values()) / len(words) == pytest.approx(
        2.83, abs=0.01
    )


def test_stand_in(tmp_path):
    stand_in.write_sememes(tmp_path)
    words, names = read_sememes(tmp_path)
    assert len(set(names)) == len(names)
    assert {word: sorted(names[i] for i in numbers) for word, numbers in words.items()} == {
        word: sorted(sememes) for word, sememes in stand_in.list_compositions().items()
    }
    # Words are composed: one sememe is in many words, and most words have several.
    goat, hen, pine = (set(words[word]) for word in ("goat", "hen", "pine"))
    assert goat & hen and goat & pine and not hen & pine


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("sememe.idx", ["animal"], "sememe.idx: not a dict from the numbers"),
        ("sememe.idx", {1: "animal"}, "sememe.idx: not a dict from the numbers"),
        ("sememe.idx", {0: 5}, "sememe.idx: 5 is no name"),
        ("HowNet.idx", [1], "HowNet.idx: not a dict"),
        ("HowNet.idx", {"dog": [0, 10_000]}, "HowNet.idx: 'dog' has not a list of sememes 0 to"),
        ("HowNet.idx", {"dog": [True]}, "HowNet.idx: 'dog'"),
        ("HowNet.idx", {"dog": []}, "HowNet.idx: 'dog'"),
        ("HowNet.idx", {3: [0]}, "HowNet.idx: 3 has not"),
    ],
)
def test_malformed_files_are_named(tmp_path, file, content, message):
    stand_in.write_sememes(tmp_path)
    (tmp_path / file).write_bytes(pickle.dumps(content))
    with pytest.raises(UserError, match=message) as caught:
        read_sememes(tmp_path)
    assert "\n" not in str(caught.value)
