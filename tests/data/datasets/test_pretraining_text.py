"""Pre-training text: what is in it, and that nothing of the items that models are tested on is."""

import re

import pytest

from tests.config.as_json import resolve_data
from tests.data.packing import pack
from tests.data.preparing import prepare_data
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.data.datasets import inverse_dictionary, pretraining_text, sst
from workflow_scripts.data.datasets.inverse_dictionary import Item, clean_definition
from workflow_scripts.data.datasets.pretraining_text import (
    HeldOutTexts,
    iterate_gloss_documents,
    iterate_wikitext_paragraphs,
)
from workflow_scripts.data.formats.wordnet import Synset, WordNet, read_wordnet
from workflow_scripts.data.stand_ins import wordnet as made_up_dictionary

MARKS = re.compile(r"[^\w ]|_")
SMALL = {"from": "stand_in", "tokenizer": "bpe", "vocabulary_size": 400, "bare_words": 50}


def texts_of(prepared) -> dict[str, list[str]]:
    """Split -> the documents, read back from their tokens."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(prepared.extra_files["tokenizer.json"])
    return {split: tokenizer.decode_batch(table["ids"]) for split, table in prepared.tables.items()}


def held_out_texts(options: dict, sources: dict) -> list[str]:
    """Definitions and sentences of the validation and test items of all three tasks."""
    tables = [
        *(
            prepare_data(inverse_dictionary, options | {"split_by": by}, sources).tables
            for by in ("item", "word")
        ),
        prepare_data(sst, {"from": options.get("from", "upstream")}, sources).tables,
    ]
    return [
        text
        for splits in tables
        for split in ("valid", "test")
        for text in splits[split]["content"]
    ]


def leaks(texts: list[str], held: list[str], lemmas: set[str] = frozenset()) -> list[str]:
    """Texts that are a held-out text, name it with a word, or contain one of six or more words;
    marks do not count.

    The word before or after a definition is one of the lemmas: `cool` is a whole sentence of SST,
    too.
    """

    def bare(text: str) -> str:
        return " ".join(MARKS.sub("", text.lower()).split())

    held_out = {bare(text) for text in held}
    starts = {" ".join(text.split()[:6]) for text in held_out if len(text.split()) >= 6}
    found = []
    for text in texts:
        words = bare(text).split()
        parts = (text, text.split(": ", 1)[-1], text.rsplit(": ", 1)[0], text.split('" means ')[-1])
        spoken = {bare(part) for part in (*parts, text.split(" is called a")[0])} - lemmas | {
            bare(text)
        }
        begun = [i for i in range(len(words) - 5) if " ".join(words[i : i + 6]) in starts]
        spoken |= {" ".join(words[i:j]) for i in begun for j in range(i + 6, len(words) + 1)}
        if spoken & held_out:
            found.append(text)
    return found


def test_nothing_of_the_held_out_items_is_in_the_made_up_text():
    texts = [
        text
        for split in texts_of(prepare_data(pretraining_text, SMALL, {})).values()
        for text in split
    ]
    held = held_out_texts({"from": "stand_in"}, {})
    assert len(texts) > 800 and len(held) > 250
    assert leaks(texts, held) == []
    # The test finds what it looks for.
    assert len(leaks([f"hen: {text}" for text in held], held)) == len(held)


def test_a_sense_is_held_out_by_its_number_its_definition_and_its_content():
    """Another word may have the definition of a held-out sense, or one that is cleaned to the same."""
    same = "(law) a formal claim that somebody makes"
    synsets = [
        Synset("1n", ("suit",), "a claim before a court; law", ("9n",)),
        Synset("2n", ("action",), "a claim before a court; law", ("9n",)),
        Synset("3n", ("plea",), same, ("9n",)),
        Synset("4n", ("plaint",), "a formal claim that somebody makes; law", ("9n",)),
        Synset("5n", ("dog",), "a tame wolf", ()),
        Synset("9n", ("law",), "all rules of a state", ()),
    ]
    wordnet = WordNet({synset.id: synset for synset in synsets}, {})
    items = [
        Item("1n", "another text", "suit"),
        Item("3n", clean_definition(same, {"law"}), "plea"),
    ]
    documents = iterate_gloss_documents(
        wordnet, items, HeldOutTexts([item.content for item in items])
    )
    expected = ["in law a claim before a court", "a tame wolf", "all rules of a state"]
    assert [document.key for document in documents] == expected


def test_reviews_of_validation_and_test_are_held_out_of_those_of_training(tmp_path):
    trees = {
        "dev.txt": "(3 (2 Good) (2 fun))",
        "test.txt": "(1 (2 Dull) (2 stuff))",
        "train.txt": "(3 (2 Good) (2 fun))\n(1 (2 Dull) (2 stuff))\n"
        + "(2 (2 Quite) (2 long))\n" * 60,
    }
    (tmp_path / "dict").mkdir()
    made_up_dictionary.write_wordnet(tmp_path / "dict")
    sources = {
        inverse_dictionary.SOURCE: tmp_path / "dict",
        sst.SOURCE: pack(tmp_path / "trees.zip", trees),
    }
    prepared = prepare_data(pretraining_text, {"tokenizer": "bpe", "vocabulary_size": 400}, sources)
    texts = {text for split in texts_of(prepared).values() for text in split}
    assert "quite long" in texts and not texts & {"good fun", "dull stuff"}


def test_documents_of_each_source_and_both_splits():
    prepared = prepare_data(pretraining_text, SMALL, {})
    for table in prepared.tables.values():
        assert set(table["source"]) == {"glosses", "examples", "sst"}
        assert all(table["ids"])
    train, valid = texts_of(prepared).values()
    assert not set(train) & set(valid)
    assert 0.01 < len(valid) / len(train + valid) < 0.05
    assert any(' is called a "' in text for text in train) and any(
        '" means ' in text for text in train
    )


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_answers_are_single_tokens_and_other_words_are_not(kind):
    from tokenizers import Tokenizer

    prepared = prepare_data(
        pretraining_text, SMALL | {"tokenizer": kind, "vocabulary_size": 460}, {}
    )
    tokenizer = Tokenizer.from_str(prepared.extra_files["tokenizer.json"])
    tasks = [
        prepare_data(module, {"from": "stand_in"}, {}).tables
        for module in (inverse_dictionary, sst)
    ]
    for label in sorted({label for tables in tasks for label in tables["train"]["label"]}):
        assert len(tokenizer.encode(label).ids) == 1, label
        assert (
            len(tokenizer.encode(f'is called a "{label}').ids)
            == len(tokenizer.encode('is called a "').ids) + 1
        )
    for tables in tasks:
        pieces = [tokenizer.encode(text) for text in tables["train"]["content"]]
        assert sum(len(p.ids) for p in pieces) > 1.05 * sum(
            len(t.split()) for t in tables["train"]["content"]
        )


def test_held_out_texts_are_found_within_others():
    held = HeldOutTexts(["a small town", "in law a formal claim that is denied", "A B c d e f"])
    for text in (
        "A small, town.",
        "he said: (in law) a formal claim, that is denied today",
        "x a b c d e f",
    ):
        assert text in held
    for text in ("in a small town", "in law a formal claim that is", "a b c d e", ""):
        assert text not in held


def test_wikitext(tmp_path):
    lines = [
        " ",
        " = Lobsters = ",
        ' A lobster ( Homarus ) is " big " , does n\'t swim @-@ by . It weighs 1 @,@ 000 g . The <unk> is . Next ! ',
        " Only <unk> . ",
    ]
    (tmp_path / "valid.txt").write_text("\n".join(lines))
    assert list(iterate_wikitext_paragraphs(tmp_path / "valid.txt")) == [
        'A lobster (Homarus) is "big", doesn\'t swim-by. It weighs 1,000 g. Next!'
    ]


def test_text_and_inverse_dictionary_have_the_same_items_at_every_scale():
    catalogue = load_catalogue()
    for scale in catalogue.scales:
        specs = [resolve_data(catalogue, task, scale) for task in catalogue.tasks]
        options = {
            tuple(
                getattr(module.Options(**spec["options"]), key) for key in ("origin", "definienda")
            )
            for spec in specs
            for module in (inverse_dictionary, pretraining_text)
            if spec["prepare"] == module.__name__
        }
        assert len(options) == 1, scale


@pytest.fixture(scope="module")
def real(mirror):
    """One of the real tasks, with its sources."""
    spec = resolve_data(load_catalogue(), "text-bpe-4k", "small")
    sources = {name: mirror / name for name in spec["sources"]}
    return prepare_data(pretraining_text, spec["options"], sources), sources


@pytest.mark.whole_data
def test_the_real_text_holds_nothing_of_the_held_out_items(real):
    prepared, sources = real
    texts = [text for split in texts_of(prepared).values() for text in split]
    held = held_out_texts({}, sources)
    assert len(texts) > 240_000 and len(held) > 8_000
    wordnet = read_wordnet(sources["wordnet/wordnet-3.0-dict.tar.xz"])
    lemmas = {
        lemma.lower().replace("_", " ")
        for synset in wordnet.synsets.values()
        for lemma in synset.lemmas
    }
    assert (
        leaks(
            texts, held, {"".join(c for c in lemma if c.isalnum() or c == " ") for lemma in lemmas}
        )
        == []
    )


@pytest.mark.whole_data
def test_sizes_of_the_real_text(real):
    prepared, _ = real
    rows = {split: len(table["ids"]) for split, table in prepared.tables.items()}
    assert rows == {"train": 242_392, "valid": 4_986}
    tokens = sum(len(ids) for table in prepared.tables.values() for ids in table["ids"])
    assert 5_000_000 < tokens < 6_000_000
    assert any(
        "are one token without a space before them, the answers of 1" in note
        for note in prepared.notes
    )
