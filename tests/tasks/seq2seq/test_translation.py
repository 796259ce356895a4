"""Scores of translations: joined outputs, BLEU against a count by hand, CTER from the data's files,
and validation.
"""

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu import corpus_bleu
from sacrebleu.metrics import BLEU

from tests.config.as_json import resolve_evaluation, resolve_run
from tests.data.preparing import prepare_data, write_data
from tests.training.toy import ROOT, assert_one_error, run_main
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import Run
from workflow_scripts.config import specs
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.data.datasets import cognition, cognition_compounds
from workflow_scripts.data.prepared import read_table, read_vocabularies
from workflow_scripts.evaluation import bleu, compound_measure
from workflow_scripts.evaluation.compounds import (
    compute_rates_by_phrase,
    find_compound_errors,
    make_checker,
)
from workflow_scripts.evaluation.measures import parse_measure_options
from workflow_scripts.evaluation.options.bleu import Tokenizer
from workflow_scripts.evaluation.scores import find_subset_rows, read_scores
from workflow_scripts.provenance.spec_fingerprints import (
    fingerprint_evaluation,
    fingerprint_training,
)
from workflow_scripts.tasks.seq2seq.checkpoint import load_run
from workflow_scripts.tasks.seq2seq.decoding import COLUMNS, decode, join_tokens
from workflow_scripts.tasks.seq2seq.settings import Seq2SeqEvaluation, Seq2SeqValidation
from workflow_scripts.tasks.seq2seq.training_setup import make_validation

RUN = "cognition/transformer/default/seed-1"
BLEUS = parse_measure_options(
    "bleu", {"bleu_zh": {"tokenize": "zh"}, "bleu_char": {"tokenize": "char"}}, "spec"
)
COMPOUNDS = parse_measure_options("compound_measure", {}, "spec")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """The stand-in of CoGnition as `prepare` writes it."""
    folder = tmp_path_factory.mktemp("cognition") / "data"
    spec = {
        "task": "cognition",
        "prepare": "workflow_scripts.data.datasets.cognition",
        "options": {"from": "stand_in", "cg_valid_share": 0.2},
    }
    write_data(
        prepare_data(cognition, spec["options"], {}),
        spec | {"sources": [], "protocol": "stand_in"},
        folder,
    )
    return folder


def test_parts_are_joined():
    tokens = ["服@@ 务@@ 员 很 累 。", "a b"]
    assert join_tokens(tokens, "tokens") == tokens
    assert join_tokens(tokens, "words") == ["服务员 很 累 。", "a b"]
    assert join_tokens(tokens, "text") == ["服务员很累。", "ab"]
    assert join_tokens(["服@@ 务@@"], "text") == ["服务"]  # cut off within a word


def bleu_by_hand(hypotheses: list[list[str]], references: list[list[str]]) -> float:
    """Papineni et al. (2002), corpus level, up to four words; 0 where a length has no match."""
    logs = []
    for n in range(1, 5):
        grams = [
            [Counter(zip(*(s[i:] for i in range(n)), strict=False)) for s in side]
            for side in (hypotheses, references)
        ]
        matched = sum(sum((one & other).values()) for one, other in zip(*grams, strict=True))
        total = sum(sum(one.values()) for one in grams[0])
        if not matched:
            return 0.0
        logs.append(math.log(matched / total))
    length, reference = (sum(map(len, side)) for side in (hypotheses, references))
    return 100 * math.exp(sum(logs) / 4 + min(0, 1 - reference / length))


def test_bleu_over_characters_is_that_by_hand(data):
    references = pq.read_table(data / "cg_test.parquet")["target"].to_pylist()
    outputs = references[1:] + references[:1]
    rows = {
        row.subset: row
        for row in bleu.score_outputs(outputs, references, read_table(data, "cg_test"), data, BLEUS)
        if row.metric == "bleu_char"
    }
    assert rows["all"].value == pytest.approx(
        bleu_by_hand(list(map(list, outputs)), list(map(list, references)))
    )
    assert rows["NP"].value == pytest.approx(
        bleu_by_hand(list(map(list, outputs[:60])), list(map(list, references[:60])))
    )
    assert {name: row.n for name, row in rows.items()} == {
        "all": 180,
        "NP": 60,
        "VP": 60,
        "PP": 60,
    }


def test_bleu_in_both_ways_of_the_literature(data):
    references = pq.read_table(data / "cg_test.parquet")["target"].to_pylist()
    outputs = [text.replace("蛋糕", "cake") for text in references]
    rows = {
        row.metric: row.value
        for row in bleu.score_outputs(
            outputs, references, read_table(data, "cg_test"), data, BLEUS
        )[::4]
    }
    spaced = [[" ".join(text) for text in side] for side in (outputs, references)]
    assert rows["bleu_char"] == pytest.approx(
        corpus_bleu(spaced[0], [spaced[1]], tokenize="none").score
    )
    assert rows["bleu_zh"] == pytest.approx(corpus_bleu(outputs, [references], tokenize="zh").score)
    # of `cake` one word, or four characters
    assert rows["bleu_zh"] != pytest.approx(rows["bleu_char"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokenize": "jieba"}, "key 'bleu_zh.tokenize' is 'jieba'; input should be 'none', "),
        ({"tokenise": "zh"}, "unknown key 'bleu_zh.tokenise'; did you mean 'tokenize'?"),
        ("zh", "key 'bleu_zh' is 'zh'; input should be a valid dictionary"),
    ],
)
def test_wrong_options_of_a_metric_are_named(options, message):
    with pytest.raises(UserError, match=f"^spec: {re.escape(message)}"):
        parse_measure_options("bleu", {"bleu_zh": options}, "spec")


def test_the_tokenizers_are_those_of_sacrebleu():
    assert get_args(Tokenizer) == tuple(BLEU.TOKENIZERS)


def test_errors_of_compounds_by_type(data):
    table = pq.read_table(data / "cg_test.parquet")
    compounds, references = table["compound"].to_pylist(), table["target"].to_pylist()
    outputs = references[:90] + ["x"] * 90
    found = compound_measure.score_outputs(
        outputs, references, read_table(data, "cg_test"), data, COMPOUNDS
    )
    values = {(row.metric, row.subset): (row.value, row.n) for row in found}
    assert values["cter_instance", "all"] == (50, 180) and values["cter_aggregate", "all"] == (
        50,
        36,
    )
    assert values["cter_instance", "NP"] == (0, 60) and values["cter_aggregate", "PP"] == (100, 12)
    lexicon = json.loads((data / "lexicon.json").read_text())
    assert (
        values["cter_instance", "VP"][0]
        == compute_rates_by_phrase(compounds, find_compound_errors(compounds, outputs, lexicon))[
            "VP"
        ][0]
    )
    assert (
        compound_measure.score_outputs(["x"], ["x"], read_table(data, "test"), data, COMPOUNDS)
        == []
    )


@given(st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=1, max_size=12))
def test_rows_of_subsets(subsets):
    import numpy as np

    rows = find_subset_rows(np.array(subsets), {"some": ["a", "c"], "none": ["d"]})
    assert rows.pop("all").tolist() == list(range(len(subsets)))
    expected = {name: [i for i, s in enumerate(subsets) if s == name] for name in "abc"}
    expected["some"] = [i for i, s in enumerate(subsets) if s in ("a", "c")]
    assert {name: found.tolist() for name, found in rows.items()} == {
        name: found for name, found in expected.items() if found
    }


@pytest.fixture(scope="module")
def translated(data, tmp_path_factory) -> Path:
    """A short run on the stand-in of CoGnition whose checkpoint BLEU chooses, trained and scored by
    the commands.
    """
    folder = tmp_path_factory.mktemp("translated")
    catalogue = load_catalogue(ROOT)
    spec = resolve_run(catalogue, RUN, "demo")
    spec["training"] |= {"max_steps": 30, "validate_every": 15}
    spec["training"]["validation"] = resolve_run(catalogue, RUN, "full")["training"]["validation"]
    common = {"data": data, "device": "cpu"}
    assert run_main("train", spec=spec, out=folder / "out", state=folder / "state", **common) == 0
    settings = resolve_evaluation(catalogue, parse_run(catalogue, RUN), "demo")
    assert (
        run_main(
            "evaluate", run_dir=folder / "out", out=folder / "eval", settings=settings, **common
        )
        == 0
    )
    return folder


def test_scores_of_a_run(translated, data):
    scores = read_scores(translated / "eval/scores.csv")
    measured = {(row.split, row.metric, row.subset) for row in scores}
    for metric in ("bleu_zh", "bleu_char", "cter_instance", "cter_aggregate", "exact_match"):
        assert {("cg_test", metric, subset) for subset in ("all", "NP", "VP", "PP")} <= measured
    assert ("test", "bleu_zh", "all") in measured and (
        "test",
        "cter_instance",
        "all",
    ) not in measured
    assert {row.protocol for row in scores} == {"stand_in"}
    predictions = pq.read_table(translated / "eval/predictions.parquet").to_pylist()
    assert len(predictions) == 240 and not any(" " in row["prediction"] for row in predictions)
    # The limit: 1.2 tokens for each of the source's with its end, and 10 more.
    words = json.loads((data / "vocabulary.json").read_text())["target"]
    longest = max(map(len, words))
    sources = pq.read_table(data / "cg_test.parquet")["source"].to_pylist()
    for row, source in zip(predictions[:180], sources, strict=True):
        assert len(row["prediction"]) <= longest * (int(1.2 * (len(source.split()) + 1)) + 10)


def test_error_rates_by_seed_and_compound_can_be_counted_from_predictions(tmp_path):
    """Each prediction for a new compound has the compound's number, the others have none."""
    catalogue, run = load_catalogue(ROOT), "cognition-compounds/lrf/plain/seed-1"
    data, spec = tmp_path / "data", resolve_run(catalogue, run, "demo")
    write_data(prepare_data(cognition_compounds, spec["data"]["options"], {}), spec["data"], data)
    spec["training"] |= {"max_steps": 10, "validate_every": 10}
    common = {"data": data, "device": "cpu"}
    assert (
        run_main("train", spec=spec, out=tmp_path / "out", state=tmp_path / "state", **common) == 0
    )
    settings = resolve_evaluation(catalogue, parse_run(catalogue, run), "demo")
    assert (
        run_main(
            "evaluate", run_dir=tmp_path / "out", out=tmp_path / "eval", settings=settings, **common
        )
        == 0
    )

    predictions = pq.read_table(tmp_path / "eval/predictions.parquet").to_pylist()
    table = pq.read_table(data / "cg_test.parquet").to_pylist()
    tested = [row for row in predictions if row["split"] == "cg_test"]
    assert [row["item"] for row in tested] == [row["item"] for row in table]
    assert {row["item"] for row in predictions if row["split"] == "test"} == {None}
    compound = {row["item"]: row["compound"] for row in table}
    lexicon = json.loads((data / "lexicon.json").read_text())
    errors = [make_checker(compound[row["item"]], lexicon)(row["prediction"]) for row in tested]
    by_item = [
        any(wrong for row, wrong in zip(tested, errors, strict=True) if row["item"] == item)
        for item in compound
    ]
    scores = {
        row.metric: row.value
        for row in read_scores(tmp_path / "eval/scores.csv")
        if row.subset == "all"
    }
    assert scores["cter_instance"] == pytest.approx(100 * sum(errors) / len(errors))
    assert scores["cter_aggregate"] == pytest.approx(100 * sum(by_item) / len(by_item))


def test_bleu_chose_the_checkpoint(translated, data):
    run = json.loads((translated / "out/run.json").read_text())
    model, _, _ = load_run(translated / "out", data)
    validation = Seq2SeqValidation(**run["spec"]["training"]["validation"])
    torch.set_num_threads(1)
    with torch.no_grad():
        found = make_validation(data, validation, 4096, None, torch.device("cpu"))(model)
    assert run["best_validation"] == {"bleu_char": pytest.approx(found["bleu_char"])}
    # It is BLEU of whole words, whatever their parts.
    table, words = read_table(data, "cg_valid", COLUMNS), read_vocabularies(data)["target"]
    settings = Seq2SeqEvaluation(
        splits=["cg_valid"], beam=5, max_length=10, max_length_ratio=1.2, batch_tokens=4096
    )
    sides = decode(model, table, words, settings, torch.device("cpu")), table["target"].to_pylist()
    outputs, references = (
        [" ".join(text.replace("@@ ", "").replace(" ", "")) for text in side] for side in sides
    )
    assert found["bleu_char"] == pytest.approx(
        corpus_bleu(outputs, [references], tokenize="none").score, abs=0.01
    )


def test_wrong_decoding_settings_are_refused_in_one_line(capsys, translated, data, tmp_path):
    spec = json.loads((translated / "out/run.json").read_text())["spec"]
    spec["training"]["validation"]["decoding"]["beems"] = 5
    assert (
        run_main("train", spec=spec, data=data, out=tmp_path / "out", state=tmp_path / "state") == 1
    )
    assert_one_error(
        capsys.readouterr().err,
        "unknown key 'training.validation.decoding.beems'",
        "did you mean 'beam'",
    )


def test_the_modules_that_score_are_part_of_the_facts():
    catalogue = load_catalogue(ROOT)
    spec = specs.resolve_training(catalogue, Run.parse(RUN), "full")
    settings = specs.resolve_evaluation(catalogue, parse_run(catalogue, RUN), "full")
    evaluated = fingerprint_evaluation(settings, spec).modules
    assert {
        "workflow_scripts.evaluation.bleu",
        "workflow_scripts.evaluation.compound_measure",
    } <= set(evaluated)
    assert "workflow_scripts.evaluation.bleu" in fingerprint_training(spec).modules
    small = specs.resolve_training(catalogue, Run.parse(RUN), "small")
    assert "workflow_scripts.evaluation.bleu" not in fingerprint_training(small).modules
