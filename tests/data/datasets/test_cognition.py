"""CoGnition: the real files' counts, the training set in place of upstream's, and files that do not
belong together.
"""

from collections import Counter
from pathlib import Path

import pytest

from tests.data.preparing import prepare_data
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets import cognition
from workflow_scripts.data.stand_ins import cognition as stand_in
from workflow_scripts.evaluation.compounds import find_compound_errors

REDUCED = {"training": "valid_and_test"}


def spans(sentence: str, longest: int) -> set[str]:
    words = sentence.split(" ")
    return {
        " ".join(words[i : i + n]) for n in range(1, longest + 1) for i in range(len(words) - n + 1)
    }


def files_in(folder: Path) -> dict[str, Path]:
    return {f"cognition/{path.name}": path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def real(mirror):
    return prepare_data(cognition, REDUCED, files_in(mirror / "cognition"))


@pytest.fixture
def made(tmp_path) -> Path:
    stand_in.write_cognition(tmp_path, 0)
    return tmp_path


def test_sizes_of_the_real_data(real):
    sizes = {split: len(examples) for split, examples in real.splits.items()}
    assert sizes == {"train": 17_824, "valid": 1_000, "test": 1_000, "cg_test": 10_800}
    assert Counter(example.subset for example in real.splits["cg_test"]) == {
        "NP": 3_600,
        "VP": 3_600,
        "PP": 3_600,
    }
    compounds = real.columns["cg_test"]["compound"]
    assert len(set(compounds)) == 2_160
    assert all(len(set(compounds[row : row + 5])) == 1 for row in range(0, 10_800, 5))
    assert real.protocol == "reduced" and "176 pairs" in real.notes[1]


def test_no_new_compound_is_in_the_training_set_and_no_sentence_in_two_splits(real):
    new = set(real.columns["cg_test"]["compound"])
    for split in ("train", "valid", "test"):
        assert all(new.isdisjoint(spans(example.source, 7)) for example in real.splits[split])
    sources = [
        example.source for split in ("train", "valid", "test") for example in real.splits[split]
    ]
    assert len(set(sources)) == len(sources)


def test_training_words_of_the_test_set(real):
    """All but two of the words of cg_test are in training, as upstream promises of its own training
    set.
    """
    known = {word for example in real.splits["train"] for word in example.source.split(" ")}
    unknown = {
        word for example in real.splits["cg_test"] for word in example.source.split(" ")
    } - known
    assert len(unknown) <= 4
    assert not unknown & {
        word for compound in real.columns["cg_test"]["compound"] for word in compound.split(" ")
    }


def test_chinese_is_divided_and_english_is_not(real):
    targets = [example.target for example in real.splits["train"]]
    assert any("@@ " in target for target in targets) and not any(
        target.endswith("@@") for target in targets
    )
    assert not any("@@" in example.source for example in real.splits["train"])
    assert not any(" " in example.target for example in real.splits["cg_test"])


def test_upstreams_code_takes_words_apart(real):
    targets = {
        example.target for split in ("train", "valid", "test") for example in real.splits[split]
    }
    assert {
        "泰勒 想要 一台 好 电脑 。",
        "当 她 奶奶 开车 回家 时 ， 她 凝@@ 视@@ 着 窗外 。",
    } <= targets


def test_upstreams_split(made):
    prepared = prepare_data(cognition, {}, files_in(made))
    sizes = {split: len(examples) for split, examples in prepared.splits.items()}
    assert sizes == {"train": 700, "valid": 60, "test": 60, "cg_test": 180}
    assert prepared.protocol == "paper" and not prepared.notes
    assert prepared.whole_targets == ["cg_test"]


def test_a_fifth_of_the_new_compounds_sentences_for_validation_stays_inside_the_test_set(made):
    prepared = prepare_data(cognition, {"cg_valid_share": 0.2}, files_in(made))
    test = {example.source: example.target for example in prepared.splits["cg_test"]}
    sample = prepared.splits["cg_valid"]
    assert (len(sample), len(test)) == (36, 180)
    # The same sentences; only their targets are split, into words of the training set.
    for example in sample:
        assert example.target.replace("@@ ", "").replace(" ", "") == test[example.source]
    known = {token for example in prepared.splits["train"] for token in example.target.split(" ")}
    tokens = [token for example in sample for token in example.target.split(" ")]
    assert sum(token in known for token in tokens) > 0.95 * len(tokens)
    assert prepared.whole_targets == ["cg_test"] and "cg_valid: 36 of the 180" in prepared.notes[0]
    again = prepare_data(cognition, {"cg_valid_share": 0.2}, files_in(made))
    assert again.splits["cg_valid"] == sample


def test_the_draw_depends_on_the_seed_alone(made):
    options = REDUCED | {"held_out": 20}
    first, again, other = (
        prepare_data(cognition, options | {"seed": seed}, files_in(made)).splits
        for seed in (0, 0, 1)
    )
    assert first == again != other
    assert {split: len(first[split]) for split in ("train", "valid", "test")} == {
        "train": 80,
        "valid": 20,
        "test": 20,
    }


def test_the_stand_in_is_marked_and_its_references_are_right():
    prepared = prepare_data(cognition, {"from": "stand_in"}, {})
    assert prepared.protocol == "stand_in"
    targets = [example.target for example in prepared.splits["cg_test"]]
    assert not any(
        find_compound_errors(
            prepared.columns["cg_test"]["compound"], targets, prepared.files["lexicon.json"]
        )
    )
    new = set(prepared.columns["cg_test"]["compound"])
    assert len(new) == 36 and any("@@ " in example.target for example in prepared.splits["train"])
    assert all(new.isdisjoint(spans(example.source, 8)) for example in prepared.splits["train"])
    known = {word for example in prepared.splits["train"] for word in example.source.split(" ")}
    assert {word for compound in new for word in compound.split(" ")} <= known


def replace_line(file: Path, number: int, line: str | None) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    lines[number - 1 : number] = [] if line is None else [line]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "number", "line", "message"),
    [
        ("train.zh", 7, "", "train.zh:7: an empty line"),
        ("train.zh", 7, None, "train.zh has 699 lines, "),
        ("cg-test_cg-test.zh", 180, None, "cg-test_cg-test.zh has 179 lines, "),
    ],
)
def test_files_that_do_not_belong_together_are_refused_in_one_line(
    made, file, number, line, message
):
    replace_line(made / file, number, line)
    with pytest.raises(UserError) as caught:
        prepare_data(cognition, {}, files_in(made))
    assert message in str(caught.value) and "\n" not in str(caught.value)
