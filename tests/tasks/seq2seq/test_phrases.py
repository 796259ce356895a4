"""Phrases of SCAN and COGS become spans of the source, and CARMA on an encoder runs from the
catalogue alone.
"""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.config.as_json import resolve_evaluation, resolve_run
from tests.objectives.carma_cases import stability_by_hand
from tests.training.toy import ROOT, here
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.data.datasets import scan
from workflow_scripts.evaluation.scores import read_scores
from workflow_scripts.models.transformer import model as seq2seq
from workflow_scripts.objectives.carma import objective as carma
from workflow_scripts.tasks.batching import SequencePairs, make_bucketed_batches, to_sequences
from workflow_scripts.tasks.seq2seq.batches import PhrasePairs, mark_phrases
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss

torch.set_num_threads(1)

TASKS = load_catalogue(ROOT).tasks
SMALL = {"layers": 2, "heads": 2, "width": 8, "feed_forward": 8, "dropout": 0.0}
CARMA = {"last_block_mi": 1, "last_block_stability": 1}


def as_pairs(sentences: list[str]) -> SequencePairs:
    """Pairs of these sentences, and themselves as their targets; ids count from 4."""
    words = sorted({word for sentence in sentences for word in sentence.split(" ")})
    ids = [[4 + words.index(word) for word in sentence.split(" ")] for sentence in sentences]
    column = to_sequences(pa.chunked_array([pa.array(ids, pa.list_(pa.int32()))]))
    return SequencePairs(column, column)


def phrase_pairs(sentences: list[str], phrase: str) -> PhrasePairs:
    return mark_phrases(as_pairs(sentences), sentences, phrase)


def words_of(sentences: list[str], phrase: str) -> list[list[int]]:
    return phrase_pairs(sentences, phrase).make_batch(np.arange(len(sentences))).words.tolist()


def found(task: str, sentence: str) -> list[str]:
    """The phrases of several tokens in a sentence, by the task's pattern."""
    (words,) = words_of([sentence], TASKS[task].phrases)
    tokens = sentence.split(" ")
    texts = [
        " ".join(t for t, w in zip(tokens, words, strict=False) if w == word)
        for word in sorted(set(words))
    ]
    return [text for text in texts if " " in text]


@pytest.mark.parametrize(
    ("task", "sentence", "phrases"),
    [
        ("scan-jump", "walk", []),
        ("scan-jump", "jump twice and run thrice", []),
        ("scan-jump", "turn left", ["turn left"]),
        ("scan-around-right", "walk around left twice", ["walk around left"]),
        (
            "scan-jump-x2",
            "jump1 opposite right after turn left thrice",
            ["jump1 opposite right", "turn left"],
        ),
        ("scan-complexity-20x", "look and run_7 around right", ["run_7 around right"]),
        ("cogs", "A rose was helped by a dog .", ["A rose", "a dog"]),
        ("cogs", "Emma rolled the teacher in a TV .", ["the teacher", "a TV"]),
        ("cogs-clean", "The moose wanted to read .", ["The moose"]),
        ("cogs", "Emma smiled .", []),
        ("cogs", "shark", []),
        ("cfq-mcd2-official", "Did M1 ' s editor and M0 direct a film", ["M1 ' s", "a film"]),
        ("wmt14-fr-en", "la com@@ mis@@ sion a re@@ jeté .", ["com@@ mis@@ sion", "re@@ jeté"]),
    ],
)
def test_phrases_of_worked_examples(task: str, sentence: str, phrases: list[str]):
    assert found(task, sentence) == phrases


def test_every_verb_phrase_of_scan_is_one_phrase():
    for command, _ in scan.iterate_verb_phrases(scan.PRIMITIVES):
        phrase = [command] if " " in command else []
        assert found("scan-jump", f"{command} twice after look") == phrase
        assert found("scan-jump", f"jump and {command} thrice") == phrase


def test_every_sequence_to_sequence_task_says_what_its_phrases_are():
    assert [
        name for name, task in TASKS.items() if (task.kind == "seq2seq") != bool(task.phrases)
    ] == []


def test_words_count_from_zero_in_each_sentence_and_padding_has_none():
    sentences = ["walk around left and run right", "jump", "turn left twice"]
    assert words_of(sentences, TASKS["scan-jump"].phrases) == [
        [0, 0, 0, 1, 2, 2, 3],
        [0, 1, -1, -1, -1, -1, -1],
        [0, 0, 1, 2, -1, -1, -1],
    ]


@pytest.mark.parametrize("phrase", ["a", "a b|c", "aa b", "b (a|b)"])
def test_a_match_that_ends_within_a_token_is_no_phrase(phrase: str):
    assert words_of(["ab aa bc"], phrase) == [[0, 1, 2, 3]]


@given(
    st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=9), min_size=1, max_size=8),
    st.integers(10, 40),
)
def test_words_by_hand(letters: list[list[str]], budget: int):
    """Phrases are `a`, any number of `b`, `c`: token by token."""

    def by_hand(tokens: str) -> list[int]:
        words, word, i = [], 0, 0
        while i < len(tokens):
            match = re.match("ab*c", tokens[i:])
            count = len(match[0]) if match else 1
            words += [word] * count
            i, word = i + count, word + 1
        return [*words, word]

    letter = dict(enumerate(sorted({name for row in letters for name in row}), start=4))
    rows = []
    for batch in make_bucketed_batches(
        phrase_pairs([" ".join(row) for row in letters], "a (b )*c"), budget
    ):
        for ids, words in zip(batch.source.tolist(), batch.words.tolist(), strict=True):
            end = ids.index(2)
            rows.append([letter[i] for i in ids[:end]])
            assert words == by_hand("".join(rows[-1])) + [-1] * (len(ids) - end - 1)
    assert sorted(rows) == sorted(letters)


def test_a_batch_keeps_its_other_parts_and_its_words_when_it_moves():
    sentences = ["turn left", "run"]
    plain = as_pairs(sentences).make_batch(np.arange(2))
    batch = (
        phrase_pairs(sentences, TASKS["scan-jump"].phrases)
        .make_batch(np.arange(2))
        .to(torch.device("cpu"))
    )
    for name in ("source", "target_in", "target_out"):
        assert torch.equal(getattr(batch, name), getattr(plain, name))
    assert batch.words.dtype == torch.int64
    assert batch.words.tolist() == [[0, 0, 1], [0, 1, -1]]


def test_no_regular_expression_is_one_line():
    with pytest.raises(UserError, match=r"phrases is '\(a', not a regular expression") as error:
        phrase_pairs(["a b"], "(a")
    assert "\n" not in str(error.value)


def losses(sentences: list[str], phrase: str | None, **settings: object):
    """(loss, parts, batch) of CARMA on a small encoder, always with the same weights and draws."""
    pairs = phrase_pairs(sentences, phrase) if phrase else as_pairs(sentences)
    batch = pairs.make_batch(np.arange(len(sentences)))
    torch.manual_seed(0)
    model = seq2seq.build(seq2seq.Settings(**SMALL), 30, 30)
    return (
        *carma.build(carma.Settings(**(CARMA | settings)), WordLoss())(model, batch),
        batch,
        model,
    )


def test_a_batch_without_phrases_gives_the_losses_of_the_task_and_of_stability_and_nothing_else():
    sentences = ["jump twice", "walk and run", "look"]
    loss, parts, batch, model = losses(sentences, TASKS["scan-jump"].phrases)
    assert (float(parts["mi"]), float(parts["pairs"]), float(parts["without_pairs"])) == (0, 0, 1)
    assert torch.equal(loss.detach(), 0.8 * parts["word"] + 0.2 * (0.3 * parts["stability"]))
    outputs = model.run_encoder(model.embed_source(batch.source), batch.source.eq(0)[:, None, None])
    by_hand = stability_by_hand([output.transpose(0, 1) for output in outputs], batch.source.ne(0))
    assert float(parts["stability"]) == pytest.approx(by_hand, rel=1e-4)
    without, _, _, _ = losses(sentences, None, mi=0.0)
    assert torch.equal(loss, without)
    # A first word outside of phrases is no BOS: it counts as every other does.
    assert torch.equal(parts["stability"], losses(sentences, None)[1]["stability"])


# The catalogue


def test_only_runs_that_read_phrases_depend_on_them():
    catalogue = load_catalogue(ROOT)
    for scale in catalogue.scales:
        for task in ("scan-jump", "cogs"):
            read = resolve_run(catalogue, f"{task}/transformer-carma/carma/seed-1", scale)
            assert read["phrases"] == TASKS[task].phrases
            for other in (
                "transformer-carma/stability-only",
                "transformer/default",
                "sq-transformer/sal",
            ):
                assert "phrases" not in resolve_run(catalogue, f"{task}/{other}/seed-1", scale)


@pytest.mark.parametrize(
    ("task", "variant", "steps"),
    [
        pytest.param("scan-jump-x2", "carma", 500, marks=pytest.mark.slow),
        ("cogs", "stability-only", 100),
    ],
)
def test_it_is_trained_and_scored_as_the_catalogue_says(
    task: str, variant: str, steps: int, tmp_path: Path
):
    data, out = tmp_path / "data", tmp_path / "out"
    assert (
        here("prepare", "--task", task, "--scale", "demo", "--downloads", tmp_path, "--out", data)
        == 0
    )
    run = f"{task}/transformer-carma/{variant}/seed-1"
    places = ("--data", data, "--out", out, "--state", tmp_path / "state")
    assert here("train", "--run", run, "--scale", "demo", *places, "--device", "cpu") == 0
    with open(out / "training.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    values = {
        name: [float(row["value"]) for row in rows if row["name"] == name]
        for name in {r["name"] for r in rows}
    }
    assert values["loss"][-1] < values["loss"][0]
    assert values["stability"][-1] > 0
    assert ("mi" in values) == (variant == "carma")
    if variant == "carma":
        assert min(values["pairs"]) > 0
        assert values["mi"][-1] < values["mi"][0]
    run_json = json.loads((out / "run.json").read_text())
    assert run_json["steps"] == steps and run_json["spec"] == resolve_run(
        load_catalogue(ROOT), run, "demo"
    )
    assert (
        here("evaluate", "--run-dir", out, "--data", data, "--out", out / "eval", "--device", "cpu")
        == 0
    )
    splits = resolve_evaluation(load_catalogue(ROOT), parse_run(load_catalogue(ROOT), run), "demo")[
        "splits"
    ]
    rows = read_scores(out / "eval/scores.csv")
    assert list(dict.fromkeys(row.split for row in rows)) == splits and {
        row.seed for row in rows
    } == {1}
    assert {row.protocol for row in rows} == {"stand_in" if task == "cogs" else "reduced"}
