"""Spans: windows against the text, the most probable span, SQuAD's measures, and a model that
learns to answer.
"""

import itertools
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from tests.data.preparing import prepare_data, write_data
from tests.training.sentence_toy import SIZES, sentence_spec, write_encoder
from tests.training.toy import run_main
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets import squad
from workflow_scripts.evaluation.span_metrics import (
    compute_exact_match,
    compute_f1,
    normalise_answer,
    select_worst_variants,
)
from workflow_scripts.tasks.base import Checkpoint
from workflow_scripts.tasks.question_answering.kind import score_questions
from workflow_scripts.tasks.question_answering.training_setup import (
    NOT_HERE,
    find_best_spans,
    read_windows,
)
from workflow_scripts.tasks.run_spec import read_run_spec
from workflow_scripts.tasks.settings import Evaluation
from workflow_scripts.training.search import count_examples, list_candidates
from workflow_scripts.training.settings import Search


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The stand-in data, and an encoder of random weights with a tokenizer of its words."""
    place = tmp_path_factory.mktemp("span")
    made = prepare_data(squad, {"from": "stand_in", "validation": 40}, {})
    spec = {"task": "squad", "prepare": "workflow_scripts.data.datasets.squad", "options": {}, "sources": [],
            "protocol": "stand_in"}  # fmt: skip
    write_data(made, spec, place / "data")
    texts = [text for name in ("question", "context") for text in made.tables["train"][name]]
    words = {
        word for text in texts for word, _ in BertPreTokenizer().pre_tokenize_str(text.lower())
    }
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(words)]
    write_encoder(place / "init", pieces=pieces, positions=48)
    return place


def windows(place, split="train", **changes):
    problem = {"longest": 48, "stride": 8, "longest_question": 16} | changes
    spec = sentence_spec(task="squad", model={"positions": 48}) | {
        "kind": "question_answering",
        "problem": problem,
    }
    spec["training"]["validation"] = "none"
    return read_windows(read_run_spec(spec, "spec"), place / "init", place / "data", split)


@pytest.mark.parametrize("longest", [48, 18])
def test_the_tokens_of_an_answer_are_its_text(place, longest):
    found = windows(place, longest=longest, stride=2, longest_question=8)
    assert (len(found.item) > len(found.contexts)) == (longest == 18)
    whole = np.zeros(len(found.contexts), int)
    for row, (begin, end) in enumerate(found.ends):
        item, offsets = found.item[row], found.offsets[row]
        assert len(found.ids[row]) <= longest
        if begin != NOT_HERE:
            assert (
                found.contexts[item][offsets[begin, 0] : offsets[end, 1]] == found.answers[item][0]
            )
            whole[item] += 1
    assert (whole[: len(found.contexts)] >= 1).mean() > (0.99 if longest == 48 else 0.7)


def test_a_pass_of_a_search_is_over_all_windows(place):
    """As `training.epochs` counts them, and not over the questions, of which there are fewer."""
    problem = {"longest": 18, "stride": 2, "longest_question": 8}
    content = sentence_spec(task="squad", model={"positions": 48}) | {
        "kind": "question_answering",
        "problem": problem,
    }
    content["training"]["validation"] = "none"
    spec = read_run_spec(content, "spec")
    found = windows(place, **problem)
    examples = count_examples(spec, place / "data", place / "init")
    assert examples == len(found.item) > len(found.contexts)
    search = Search(learning_rate=[0.001], batch_sentences=[10], epochs=3)
    (candidate,) = list_candidates(spec.training, search, examples)
    assert candidate.max_steps == math.ceil(3 * len(found.item) / 10)


@pytest.mark.parametrize("answers", ["Paris", "1998", '"Paris"', "[1998]", "[]"])
def test_answers_that_are_no_list_of_texts_are_one_line(place, tmp_path, answers):
    table = pq.read_table(place / "data/train.parquet")
    texts = pa.array([answers] * len(table))
    plain = table.set_column(table.column_names.index("answers"), "answers", texts)
    (tmp_path / "data").mkdir()
    pq.write_table(plain, tmp_path / "data/train.parquet")
    (tmp_path / "init").symlink_to(place / "init")
    with pytest.raises(UserError, match=r"train\.parquet: '.*' in the column answers is no JSON"):
        windows(tmp_path)


def test_a_dash_in_a_name_makes_no_variants():
    """As in q-1 and q-2, or in an identifier; of SQuAD's variants the question itself is there."""
    values = {"f1": [1.0, 0.0, 0.5]}
    assert [score.metric for score in score_questions(["q-1", "q-2", "q-3"], values)] == ["f1"]
    found = {score.metric: score for score in score_questions(["q", "q-turk0", "r"], values)}
    assert (found["adversarial_f1"].value, found["adversarial_f1"].n) == (25, 2)
    # Where some items are variants, those with a dash of their own are still none.
    values = {"f1": [1.0, 0.5, 1.0, 0.0]}
    found = {it.metric: it for it in score_questions(["dev-1", "dev-2", "q", "q-turk0"], values)}
    assert (found["adversarial_f1"].value, found["adversarial_f1"].n) == (50, 3)


def test_batches_allow_the_paragraph_alone(place):
    found, tokenizer = (
        windows(place, "test"),
        Tokenizer.from_file(str(place / "init/tokenizer.json")),
    )
    batches = found.make_batches(300, torch.device("cpu"))
    rows = np.concatenate([batch.rows for batch in batches])
    assert sorted(rows) == list(range(len(found.item)))
    for chosen, batch in batches:
        assert batch.ids.numel() <= 300
        for row, ids, allowed in zip(chosen, batch.ids, batch.allowed, strict=True):
            said = tokenizer.decode(ids[allowed][1:].tolist()).replace(" ", "")
            assert said == found.contexts[found.item[row]].lower().replace(" ", "")


@given(st.integers(2, 7), st.integers(1, 7), st.integers(0, 1000))
def test_the_most_probable_span(size, longest, seed):
    scores = torch.randn(2, 2, size, generator=torch.Generator().manual_seed(seed))
    best, first, last = find_best_spans(scores, longest)
    for row in range(2):
        spans = [
            (a, b) for a, b in itertools.product(range(1, size), repeat=2) if a <= b < a + longest
        ]
        right = max(
            spans, key=lambda span: float(scores[row, 0, span[0]] + scores[row, 1, span[1]])
        )
        assert (int(first[row]), int(last[row])) == right
        assert float(best[row]) == pytest.approx(
            float(scores[row, 0, right[0]] + scores[row, 1, right[1]])
        )


@pytest.mark.parametrize(
    ("predicted", "answers", "match", "overlap"),
    [
        ("The  Eiffel Tower!", ["eiffel tower"], 1, 1),
        ("an apple", ["the apple", "pear"], 1, 1),
        ("theatre", ["atre"], 0, 0),
        ("a red apple", ["apple pie", "tart"], 0, 0.5),
        ("red red", ["red"], 0, 2 / 3),
        ("", ["Paris"], 0, 0),
    ],
)
def test_measures(predicted, answers, match, overlap):
    assert compute_exact_match(predicted, answers) == match
    assert compute_f1(predicted, answers) == pytest.approx(overlap)


@given(st.text(max_size=20), st.text(max_size=20))
@settings(max_examples=50)
def test_measures_are_of_what_is_left_after_normalisation(one, other):
    assert normalise_answer(normalise_answer(one)) == normalise_answer(one)
    assert (
        compute_f1(one, [other]) == pytest.approx(compute_f1(other, [one]))
        and 0 <= compute_f1(one, [other]) <= 1
    )
    assert compute_exact_match(one, [other]) == compute_exact_match(other, [one])
    if compute_exact_match(one, [other]) and normalise_answer(one):
        assert compute_f1(one, [other]) == 1


def test_of_the_variants_of_a_question_the_worst_counts():
    """The question as it was counts only where it has no variant, wherever it is; of equal ones the
    first.
    """
    items = [
        "a",
        "a-high-conf-turk0",
        "a-high-conf-turk1",
        "b",
        "c-x",
        "c",
        "d-x",
        "d-y",
        "d-z",
        "d",
    ]
    f1s = [0.1, 0.7, 0.5, 0.3, 0.9, 0.2, 0.6, 0.6, 0.8, 0.0]
    assert [items[row] for row in select_worst_variants(items, f1s)] == [
        "a-high-conf-turk1",
        "b",
        "c-x",
        "d-x",
    ]


def test_a_model_learns_to_answer(place):
    spec = sentence_spec(
        task="squad",
        steps=30,
        training={"validation": {"split": "valid", "metric": "f1"}, "learning_rate": 0.005},
    ) | {"kind": "question_answering", "protocol": "stand_in"}
    spec["model"] |= SIZES | {"positions": 48}
    spec["problem"] = {"longest": 48, "stride": 8, "longest_question": 16, "longest_answer": 4}
    data, out = place / "data", place / "ft"
    assert (
        run_main("train", data=data, spec=spec, init=place / "init", out=out, state=place / "s")
        == 0
    )
    settings = {"splits": ["test", "add_sent"], "batch_tokens": 512}
    assert run_main("evaluate", data=data, run_dir=out, out=out / "eval", settings=settings) == 0
    scores = pd.read_csv(place / "ft/eval/scores.csv").set_index(["split", "metric"])["value"]
    # The verb decides, so that an answer is easily learnt; another's sentence misleads.
    assert scores["test", "f1"] > 80 and scores["test", "exact_match"] > 60
    assert scores["add_sent", "adversarial_f1"] < scores["add_sent", "f1"] < scores["test", "f1"]
    assert "adversarial_f1" not in scores["test"]
    predictions = pd.read_parquet(place / "ft/eval/predictions.parquet")
    misled = predictions[predictions["item"].str.contains("-")].assign(
        question=lambda rows: rows["item"].str[:-6]
    )
    assert misled["question"].nunique() == 80 and len(misled) == 160
    worst = misled.loc[misled.groupby("question")["f1"].idxmin()]
    for metric in ("f1", "exact_match"):
        assert 100 * worst[metric].mean() == pytest.approx(
            scores["add_sent", f"adversarial_{metric}"]
        )
    assert 100 * predictions.query("split == 'test'")["f1"].mean() == pytest.approx(
        scores["test", "f1"]
    )
    checkpoint = Checkpoint(
        "run", out / "checkpoint", read_run_spec(spec, "spec"), Evaluation(**settings), None
    )
    asked = pd.read_parquet(data / "test.parquet")[["question", "context"]].itertuples(
        index=False, name=None
    )
    answers = checkpoint.predict(checkpoint.load_model(), list(asked))
    assert answers == predictions.query("split == 'test'")["prediction"].tolist()


def test_paragraphs_are_not_divided(place):
    made = prepare_data(squad, {"from": "stand_in", "validation": 40}, {})
    contexts = {split: set(columns["context"]) for split, columns in made.tables.items()}
    assert not contexts["train"] & contexts["valid"] and len(made.tables["valid"]["item"]) >= 40
