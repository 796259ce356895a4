"""CoGnition split by compound: what is new, what is trained on, and the words of both."""

import hashlib
import re
from collections import Counter
from itertools import pairwise

import pytest

from tests.data.datasets.test_cognition import REDUCED, files_in, spans
from tests.data.preparing import prepare_data
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets import cognition, cognition_compounds
from workflow_scripts.data.datasets.cognition import split_into_words
from workflow_scripts.data.datasets.cognition_compounds import is_trained_on
from workflow_scripts.evaluation.compounds import PARTS

OPTIONS = REDUCED | {"trained_share": 0.2, "salt": "recompose"}
STAND_IN = {"from": "stand_in", "trained_share": 0.4, "salt": "recompose"}


@pytest.fixture(scope="module")
def plain(mirror):
    return prepare_data(cognition, REDUCED, files_in(mirror / "cognition"))


@pytest.fixture(scope="module")
def real(mirror):
    return prepare_data(cognition_compounds, OPTIONS, files_in(mirror / "cognition"))


@pytest.fixture(scope="module")
def larger(mirror):
    return prepare_data(
        cognition_compounds, OPTIONS | {"trained_share": 0.5}, files_in(mirror / "cognition")
    )


def compounds_of(made) -> list[str]:
    return made.columns["cg_test"]["compound"]


def test_sizes_of_the_real_data(real, larger):
    for made, train, tested in ((real, 19_626, 8_480), (larger, 22_728, 5_255)):
        sizes = {split: len(examples) for split, examples in made.splits.items()}
        assert sizes == {"train": train, "valid": 1_000, "test": 1_000, "cg_test": tested}
        assert made.protocol == "reduced" and made.whole_targets == ["cg_test"]


def test_the_digest_of_a_compound_alone_says_whether_it_is_new(plain, real, larger):
    every = list(dict.fromkeys(compounds_of(plain)))
    for made, share in ((real, 0.2), (larger, 0.5)):
        digests = {
            compound: hashlib.sha256(b"recompose/" + compound.encode()).hexdigest()
            for compound in every
        }
        new = [compound for compound in every if int(digests[compound], 16) / 16**64 >= share]
        assert list(dict.fromkeys(compounds_of(made))) == new
    assert set(compounds_of(larger)) < set(compounds_of(real))
    other = prepare_data(cognition_compounds, STAND_IN | {"salt": "another"}, {})
    assert compounds_of(other) != compounds_of(prepare_data(cognition_compounds, STAND_IN, {}))


def test_no_pair_of_train_has_a_new_compound(real, larger):
    for made in (real, larger):
        new = set(compounds_of(made))
        for split in ("train", "valid", "test"):
            assert all(new.isdisjoint(spans(example.source, 7)) for example in made.splits[split])


def test_validation_on_new_compounds_is_drawn_from_those_that_are_new_here(mirror):
    """The share is of what is tested after the division: no pair of it is in train."""
    options = OPTIONS | {"cg_valid_share": 0.2}
    made = prepare_data(cognition_compounds, options, files_in(mirror / "cognition"))
    of_train, of_valid, of_test = (
        [example.source for example in made.splits[split]]
        for split in ("train", "cg_valid", "cg_test")
    )
    assert len(of_valid) == len(of_test) // 5 and set(of_valid) <= set(of_test)
    new = set(compounds_of(made))
    assert set(of_valid).isdisjoint(of_train)
    assert not any(new.isdisjoint(spans(source, 7)) for source in of_valid)
    assert made.notes[-1].startswith(f"cg_valid: {len(of_valid)} of the {len(of_test)} pairs")


def test_what_is_added_are_the_other_pairs_without_a_new_compound(plain, real):
    new = set(compounds_of(real))
    assert real.splits["train"][: len(plain.splits["train"])] == plain.splits["train"]
    added = real.splits["train"][len(plain.splits["train"]) :]
    rows = zip(plain.splits["cg_test"], compounds_of(plain), strict=True)
    expected = [
        row
        for row, compound in rows
        if compound not in new and new.isdisjoint(spans(row.source, 7))
    ]
    assert [example.source for example in added] == [row.source for row in expected]
    # Their targets are the references, split into words and subwords.
    joined = [re.sub("(@@)? ", "", example.target) for example in added]
    assert joined == [row.target for row in expected] and len(added) == 1_802
    assert any("@@ " in example.target for example in added)
    assert sum(example.target.count(" ") for example in added) > 10 * len(added)


def test_sets_in_distribution_are_those_of_the_undivided_task(plain, real):
    for split in ("valid", "test"):
        assert real.splits[split] == plain.splits[split]
    assert real.files == plain.files


def test_compounds_keep_their_five_sentences_and_their_number(plain, real):
    order = {compound: number for number, compound in enumerate(dict.fromkeys(compounds_of(plain)))}
    columns, rows = real.columns["cg_test"], real.splits["cg_test"]
    assert [int(item) for item in columns["item"]] == [
        order[compound] for compound in columns["compound"]
    ]
    assert all(len(set(columns["item"][row : row + 5])) == 1 for row in range(0, len(rows), 5))
    assert len(set(columns["item"])) == len(rows) / 5 == 1_696
    assert all(
        f" {compound} " in f" {row.source} "
        for row, compound in zip(rows, columns["compound"], strict=True)
    )
    assert {row.subset for row in rows} == {"NP", "VP", "PP"}


def test_every_atom_of_the_new_compounds_is_in_train_as_often_as_dataset_json_says(real):
    words = Counter(word for example in real.splits["train"] for word in example.source.split(" "))
    atoms, liked = real.described["atoms"], 0
    for example in real.splits["train"]:
        liked += len(re.findall(r"(?<!\S)he liked(?!\S)", example.source))
    assert atoms["MOD"]["he liked"] == liked == 528
    assert atoms["V"]["liked"] == words["liked"] - liked
    # No word of these parts is a word of a modifier.
    for part in ("ADJ", "N"):
        assert atoms[part] == {word: words[word] for word in sorted(PARTS[part].split())}
    counts = sorted(count for found in atoms.values() for count in found.values())
    assert (len(counts), counts[0], (counts[36] + counts[37]) / 2) == (74, 30, 147)
    assert any(
        "at least 30 times ('towards'), in the median 147 times" in note for note in real.notes
    )


def test_a_context_is_seldom_in_train_with_another_compound(plain, real):
    """So contexts are new, too: compounds and contexts are not crossed."""
    train = {example.source for example in real.splits["train"]}

    def contexts(made) -> list[tuple[str, str]]:
        """Each sentence, and the same with `…` in the place of its compound."""
        rows = zip(made.splits["cg_test"], compounds_of(made), strict=True)
        return [
            (row.source, re.sub(rf"(^| ){compound}( |$)", " … ", row.source))
            for row, compound in rows
        ]

    trained = {context for source, context in contexts(plain) if source in train}
    assert sum(context in trained for _, context in contexts(real)) == 870
    assert any(
        "870 pairs have a context that is in train with another compound" in note
        for note in real.notes
    )


def test_words_are_the_most_probable_ones():
    words = Counter({"他": 50, "喜欢": 30, "喜": 1, "欢": 1, "他喜": 1, "的": 100, "狗": 9})
    assert split_into_words(["他喜欢的狗", "猫的狗"], words) == [
        ["他", "喜欢", "的", "狗"],
        ["猫", "的", "狗"],
    ]


def test_upstreams_words_are_found_again(plain):
    targets = [example.target.replace("@@ ", "") for example in plain.splits["train"]]
    words = Counter(word for target in targets[2_000:] for word in target.split(" "))
    made = split_into_words([target.replace(" ", "") for target in targets[:2_000]], words)
    found = total = 0
    for target, tokens in zip(targets[:2_000], made, strict=True):
        sides = []
        for parts in (target.split(" "), tokens):
            ends = [sum(map(len, parts[:count])) for count in range(len(parts) + 1)]
            sides.append(set(pairwise(ends)))
        found, total = found + len(sides[0] & sides[1]), total + len(sides[0])
    assert found / total > 0.96


def test_the_share_is_that_of_digests():
    names = [f"compound {number}" for number in range(4_000)]
    trained = [name for name in names if is_trained_on(name, "salt", 0.3)]
    assert 0.27 < len(trained) / len(names) < 0.33
    assert set(trained) <= {name for name in names if is_trained_on(name, "salt", 0.4)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"trained_share": 1e-9},
            "key 'trained_share' is 1e-09, which leaves 36 of 36 compounds to test",
        ),
        ({"min_atom_count": 10_000}, "key 'min_atom_count' is 10000, but '"),
        ({"trained_share": 1.0}, "trained_share"),
    ],
)
def test_a_share_that_leaves_too_little_is_refused_in_one_line(options, message):
    with pytest.raises(UserError) as caught:
        prepare_data(cognition_compounds, STAND_IN | options, {})
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_the_stand_in_is_divided_as_well():
    made = prepare_data(cognition_compounds, STAND_IN, {})
    assert made.protocol == "stand_in"
    new = set(compounds_of(made))
    assert 0 < len(new) < 36 and all(
        new.isdisjoint(spans(example.source, 8)) for example in made.splits["train"]
    )
    assert min(count for found in made.described["atoms"].values() for count in found.values()) > 20
