"""Pairs for pre-training: what is in them, and that nothing of the items that models are evaluated
on is.
"""

import csv
import json
import unicodedata
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.as_json import resolve_data
from tests.data.preparing import prepare_data
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.data.datasets import pretraining_pairs, sst2
from workflow_scripts.data.datasets.contamination import (
    SOURCES,
    EvaluationTexts,
    normalise_words,
    read_evaluation_texts,
)
from workflow_scripts.data.datasets.pretraining_pairs import TextPair, iterate_wikitext_pairs
from workflow_scripts.data.formats.tokenizer_training import train_wordpiece
from workflow_scripts.data.splits import split_by_key

SMALL = {"from": "stand_in", "vocabulary_size": 400, "valid_fraction": 0.1}


def texts_of(folder: Path, split: str) -> list[tuple[str, str, str]]:
    """(source, first, second) of a split, read back from the pieces."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    table = pq.read_table(folder / f"{split}.parquet")
    ids = (table[side].to_pylist() for side in ("first_ids", "second_ids"))
    sides = [tokenizer.decode_batch(rows, skip_special_tokens=False) for rows in ids]
    return list(zip(table["source"].to_pylist(), *sides, strict=True))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    prepare_data(pretraining_pairs, SMALL, {}).fill(folder)
    return folder


def test_the_stand_in_has_pairs_of_both_kinds_and_sememes_of_their_words(made):
    train, valid = texts_of(made, "train"), texts_of(made, "valid")
    assert (
        {source for source, *_ in train}
        == {source for source, *_ in valid}
        == {"definitions", "examples"}
    )
    assert any("goat" in first.split(" , ") for _, first, _ in train)
    table, names = (
        pq.read_table(made / "sememes.parquet"),
        json.loads((made / "sememe_names.json").read_text()),
    )
    known = dict(zip(table["word"].to_pylist(), table["sememes"].to_pylist(), strict=True))
    assert {names[number] for number in known["goat"]} == {"animal", "mountain"}
    words = {word for _, first, second in train for word in f"{first} {second}".split()}
    assert len(words & known.keys()) > 20


def test_no_definition_is_in_both_splits(made):
    definitions = {
        split: {second for source, _, second in texts_of(made, split) if source == "definitions"}
        | {first for source, first, _ in texts_of(made, split) if source == "examples"}
        for split in ("train", "valid")
    }
    assert not definitions["train"] & definitions["valid"]


def test_splits_take_the_asked_share_of_each_source():
    pairs = [
        TextPair(source, f"{source}-{n // 2}", str(n), "x")
        for source in ("a", "b")
        for n in range(200)
    ]
    splits = split_by_key(pairs, 0.1, shared_keys=True)
    assert Counter(pair.source for pair in splits["valid"]) == {"a": 20, "b": 20}
    assert sorted(splits["train"] + splits["valid"]) == sorted(pairs)


def test_paragraphs_become_pairs_of_neighbours_in_usual_text(tmp_path):
    file = tmp_path / "valid.txt"
    lines = [
        " = Title = ",
        "",
        " One <unk> , two . Three @-@ four ( five ) ! Six 's end . ",
        " Alone . ",
    ]
    file.write_text("\n".join(lines))
    pairs = list(iterate_wikitext_pairs(file))
    middle = "Three-four (five)!"
    assert [pair[2:] for pair in pairs] == [("One [UNK], two.", middle), (middle, "Six's end.")]
    assert {pair.key for pair in pairs} == {"valid.txt:3"}


def test_a_tokenizer_is_berts_in_form_and_the_same_each_time():
    texts = ["The Goat's horns, and Ünïque ones", "unhorned goats [UNK] graze"] * 20
    one, other = train_wordpiece(90, texts), train_wordpiece(90, texts)
    assert one.to_str() == other.to_str()
    encoded = one.encode("the goat", "horns")
    assert (
        encoded.tokens[0] == "[CLS]"
        and encoded.tokens[-1] == "[SEP]"
        and set(encoded.type_ids) == {0, 1}
    )
    assert one.encode("GOAT [UNK]", add_special_tokens=False).tokens[-1] == "[UNK]"
    assert one.decode(one.encode("ÜNÏQUE horns").ids) == "unique horns"


def test_a_text_is_held_out_for_every_reason_there_is():
    sentences = [
        "Too short.",
        "A sentence of seven words it is.",
        "this one is much longer than eight words, yes",
    ]
    held = EvaluationTexts(
        sentences, [("adult male", "men"), ("campaign", "public relations campaign")]
    )
    for text in (
        "too SHORT",
        "And: a sentence of seven words, it is!",
        "one is much longer than eight words yes, so",
        "an adult male; or men",
        "men or adult males, adult male",
        "a public-relations campaign",
    ):
        assert held.is_leaked_by(text), text
    others = (
        "too short to matter",
        "a sentence of seven words it was",
        "men and adult males",
        "one is much longer",
    )
    assert not any(map(held.is_leaked_by, others))
    # Also where it is in one of two texts alone, or begins in the first.
    assert held.is_leaked_by("too short", "yes") and held.is_leaked_by(
        "men and adult", "males, adult male"
    )
    assert held.is_leaked_by("And a sentence of", "seven words it is") and not held.is_leaked_by(
        "too", "long"
    )


@given(st.text())
def test_words_are_parted_as_by_unicodes_rules_for_every_letter(text):
    letters = [
        c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.combining(c) == 0
    ]
    marked = "".join(c if c.isalnum() or c.isspace() else " " for c in letters)
    assert normalise_words(text) == tuple(marked.split())


def test_missing_sources_and_columns_are_named(tmp_path):
    with pytest.raises(
        UserError, match=r"must not hold items of paws/.*name it in the task's sources"
    ):
        read_evaluation_texts({})
    (tmp_path / "x.tsv").write_text("1\tone\ttwo\t0\n2\tone\n")
    with pytest.raises(UserError, match=r"x.tsv: .*:2: 2 fields, 4 needed"):
        read_evaluation_texts(dict.fromkeys(SOURCES, tmp_path / "x.tsv"))


@pytest.fixture(scope="module")
def real(mirror, tmp_path_factory) -> tuple[Path, dict[str, Path]]:
    spec = resolve_data(load_catalogue(), "pairs-wordpiece", "small")
    sources = {name: mirror / name for name in spec["sources"]}
    if missing := [name for name, path in sources.items() if not path.exists()]:
        pytest.skip(f"{missing[0]} is not in RECOMPOSE_MIRROR")
    folder = tmp_path_factory.mktemp("real")
    prepare_data(pretraining_pairs, spec["options"], sources).fill(folder)
    return folder, sources


@pytest.mark.whole_data
def test_the_real_pairs_hold_nothing_of_the_evaluation_sets(real):
    """Read in another way: sentences by the csv module, and compared as strings."""
    folder, sources = real
    rows = [row for split in ("train", "valid") for row in texts_of(folder, split)]
    words_of = {text: normalise_words(text) for _, *texts in rows for text in texts}
    documents = [f" {' '.join(words_of[first] + words_of[second])} " for _, first, second in rows]
    sides = {" ".join(words) for words in words_of.values()}

    def cells(name: str, columns: tuple[int, ...]) -> list[list[str]]:
        with open(sources[name], newline="", encoding="utf-8") as stream:
            rows = list(csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
        return [[" ".join(normalise_words(row[column])) for column in columns] for row in rows]

    sentences = {
        text
        for name, columns in {
            "paws/paws_wiki_final_dev.noheader.tsv": (1, 2),
            "paws/paws_wiki_final_test.noheader.tsv": (1, 2),
            "sst2/dev.tsv": (0,),
            "stsb/sts-dev.csv": (5, 6),
            "stsb/sts-test.csv": (5, 6),
        }.items()
        for row in cells(name, columns)[name == "sst2/dev.tsv" :]
        for text in row
    }
    assert len(sentences) > 19_000 and len(documents) > 160_000
    assert not sides & sentences
    eight = {
        tuple(words[i : i + 8])
        for s in sentences
        if len(words := s.split()) >= 8
        for i in range(len(words) - 7)
    }
    shared = [
        document for document in documents
        if any(tuple(words[i : i + 8]) in eight for words in [document.split()] for i in range(len(words) - 7))
    ]  # fmt: skip
    assert shared == []
    pairs = cells("bird/BiRD.txt", (1, 2))[1:]
    assert len(pairs) == 3345
    with_phrase: dict[str, list[str]] = {first: [] for first, _ in pairs}
    for document in documents:
        words = document.split()
        for i in range(len(words) - 1):
            if (phrase := f"{words[i]} {words[i + 1]}") in with_phrase:
                with_phrase[phrase].append(document)
    assert not [p for p in pairs for document in with_phrase[p[0]] if f" {p[1]} " in document]
    # SST-2's test phrases are training phrases of GLUE, and nothing looks for them.
    folder = sources["sst2/dev.tsv"].parent
    phrases = prepare_data(
        sst2, {}, {name: folder.parent / name for name in ("sst2/train.tsv", "sst2/dev.tsv")}
    )
    by_start: dict[tuple[str, ...], list[str]] = {}
    for words in map(normalise_words, phrases.tables["test"]["first"]):
        if len(words) >= 6:
            by_start.setdefault(words[:6], []).append(f" {' '.join(words)} ")
    assert len(by_start) > 3000
    for document in documents:
        words = tuple(document.split())
        starts = by_start.keys() & {words[i : i + 6] for i in range(len(words) - 5)}
        assert not [phrase for start in starts for phrase in by_start[start] if phrase in document]


@pytest.mark.whole_data
def test_sizes_of_the_real_pairs(real):
    folder, _ = real
    rows = {
        split: pq.read_metadata(folder / f"{split}.parquet").num_rows
        for split in ("train", "valid")
    }
    assert rows == {"train": 159_065, "valid": 4_618}
    assert pq.read_metadata(folder / "sememes.parquet").num_rows == 104_026
    assert len(json.loads((folder / "sememe_names.json").read_text())) == 3152
