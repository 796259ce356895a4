"""CFQ: archives in upstream's format, and the stand-in."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.memory import measure_peak
from tests.data.packing import pack
from tests.data.preparing import prepare_data
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets import cfq
from workflow_scripts.data.datasets.cfq import split_punctuation
from workflow_scripts.data.splits import Example
from workflow_scripts.data.stand_ins.cfq import HELD_OUT

ITEMS = [
    {
        "questionPatternModEntities": f"Did M0's editor meet M{i}",
        "sparqlPatternModEntities": "SELECT count(*) WHERE {\nM0 ns:film.film.edited_by ?x0 .\n"
        f"?x0 ns:a.b.met M{i}\n}}",
        "ruleTree": {"ruleId": 3, "subTrees": [None, 2.5, {"x": []}]},
    }
    for i in range(4)
]
SPLIT = {"trainIdxs": [3, 0], "devIdxs": [1], "testIdxs": [2]}


@pytest.fixture
def archive(tmp_path):
    def make(items=ITEMS, split=SPLIT, splits_first=False, **others):
        files = {
            "cfq/dataset.json": items,
            "cfq/splits/mcd2.json": split,
            "cfq/splits/mcd1.json": others,
        }
        encoded = {
            name: files[name]
            if isinstance(files[name], bytes)
            else json.dumps(files[name], indent=1)
            for name in sorted(files, reverse=splits_first)
        }
        return {"cfq/cfq.tar.gz": pack(tmp_path / "cfq.tar.gz", encoded)}

    return make


@pytest.mark.parametrize("splits_first", [False, True])
def test_splits_of_an_archive_in_upstreams_format(archive, splits_first):
    prepared = prepare_data(
        cfq, {"split": "mcd2", "inverse": True}, archive(splits_first=splits_first)
    )
    found = {
        split: [e.source[-2:] for e in examples] for split, examples in prepared.splits.items()
    }
    assert found == {"train": ["M3", "M0"], "valid": ["M1"], "test": ["M2"]}
    assert prepared.splits["test"] == [
        Example(
            "Did M0 ' s editor meet M2",
            "SELECT count ( * ) WHERE { ?x0 a.b.met M2 . ?x0 film.editor.film M0 }",
        )
    ]
    assert prepared.protocol == "paper"


def test_official_queries(archive):
    prepared = prepare_data(cfq, {"split": "mcd2", "preprocessing": "official"}, archive())
    assert prepared.splits["test"][0].target == (
        "SELECT count ( * ) WHERE { M0 film.film.edited_by ?x0 . ?x0 a.b.met M2 }"
    )


@pytest.mark.parametrize(
    "content",
    [
        {"items": b"[{"},
        {"items": [{"questionPatternModEntities": "Did M0"}]},
        {"split": b"{'trainIdxs'}"},
        {"split": {"trainIdxs": [0]}},
        {"split": SPLIT | {"testIdxs": [4]}},
        {"split": SPLIT | {"testIdxs": ["one"]}},
    ],
    ids=str,
)
def test_another_content_is_one_line(archive, content):
    with pytest.raises(UserError, match=r"cfq.tar.gz cannot be read \(.*\); fetch it again$"):
        prepare_data(cfq, {"split": "mcd2"}, archive(**content))


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"])))
def test_spaces_around_punctuation_lose_nothing(question):
    spaced = split_punctuation(question)
    assert spaced.replace(" ", "") == question.replace(" ", "")
    assert all(len(token) == 1 or token.isalnum() for token in spaced.split())


def test_what_is_not_read_takes_no_memory(archive, tmp_path):
    """Ten times the items with 1 MB of other fields each, 180 MB more: the peak stays."""
    filler = '{"subTrees": [' + ",".join(['{"ruleId": "' + "x" * 990 + '"}'] * 1000) + "]}"
    line = (
        json.dumps(ITEMS[0])[:-1].replace('"ruleTree": {', '"old": {') + f', "ruleTree": {filler}}}'
    )
    peaks = []
    for count in (20, 200):
        (tmp_path / str(count)).mkdir()
        sources = archive(items=("[" + ",\n".join([line] * count) + "]").encode())
        peaks.append(measure_peak(tmp_path / str(count), "cfq", {"split": "mcd2"}, sources)[1])
    assert peaks[1] - peaks[0] < 60_000, f"KiB: {peaks}"


@pytest.fixture(scope="module")
def made():
    return prepare_data(cfq, {"from": "stand_in", "split": "mcd1", "preprocessing": "official"}, {})


def test_the_made_up_splits_share_words_and_no_question(made):
    assert made.protocol == "stand_in"
    assert {split: len(examples) for split, examples in made.splits.items()} == {
        "train": 800,
        "valid": 60,
        "test": 120,
    }
    questions = [example.source for examples in made.splits.values() for example in examples]
    assert len(set(questions)) == len(questions)
    train, test = (
        {word for e in made.splits[split] for word in f"{e.source} {e.target}".split()}
        for split in ("train", "test")
    )
    assert test <= train


def test_the_made_up_test_holds_the_compounds_that_training_lacks(made):
    for example in made.splits["valid"] + made.splits["test"]:
        words = set(example.source.split())
        assert any({role, verb} <= words for role, verb in HELD_OUT)


def test_made_up_splits_differ(made):
    other = prepare_data(
        cfq, {"from": "stand_in", "split": "mcd2", "preprocessing": "official"}, {}
    ).splits
    assert other["test"] != made.splits["test"]


def test_the_made_up_queries_are_well_formed_in_both_preprocessings():
    options = {"from": "stand_in", "split": "mcd3"}
    grouped = prepare_data(cfq, options | {"inverse": True}, {}).splits["train"]
    official = prepare_data(cfq, options | {"preprocessing": "official"}, {}).splits["train"]
    assert [example.source for example in grouped] == [example.source for example in official]
    assert not any("film.film." in example.target for example in grouped)
    assert any("film.film." in example.target for example in official)
    assert sum(len(e.target) for e in grouped) < sum(len(e.target) for e in official)
