"""Sentences: batches against the tokenizer's own pairs, and fine-tuning by the commands that a user
types.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tokenizers.processors import BertProcessing

from tests.training.sentence_toy import (
    SIZES,
    pairs,
    sentence_spec,
    write_encoder,
    write_pairs,
    write_tokenizer,
)
from tests.training.toy import record_files, run_main
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.prepared import read_table
from workflow_scripts.models.encoder.model import SpecialTokens
from workflow_scripts.tasks.batching import RaggedSequences, find_file_order
from workflow_scripts.tasks.run_spec import read_run_spec
from workflow_scripts.tasks.sentence_prediction.training_setup import (
    Sentences,
    read_sentences,
    set_up_training,
)
from workflow_scripts.training import loop


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("sentences")
    write_pairs(place / "data")
    write_pairs(place / "single", single=True)
    return place


@pytest.mark.parametrize("kind", ["data", "single", "apart"])
def test_batches_are_what_the_tokenizer_makes_of_pairs(place, kind):
    folder = place / kind.replace("apart", "data")
    write_tokenizer(place)
    problem = {"prediction": "cosine" if kind == "apart" else "head", "longest": 32}
    found = read_sentences(
        read_run_spec(sentence_spec(problem=problem), "spec"), 512, place, folder, "test"
    )
    oracle = write_tokenizer(place)
    oracle.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    oracle.enable_padding()
    table = read_table(folder, "test", ["first", "second", "label"]).to_pydict()
    batches = found.make_batches(300, torch.device("cpu"))
    rows = np.concatenate([batch.rows for batch in batches])
    assert rows[find_file_order(batches)].tolist() == list(range(60))
    for chosen, batch in batches:
        assert batch.ids[:, 0].numel() <= 300
        texts = [(table["first"][row], table["second"][row]) for row in chosen]
        if kind == "apart":
            lists = [[text for pair in texts for text in pair]]
        else:
            lists = [texts if kind == "data" else [first for first, _ in texts]]
        expected = oracle.encode_batch(lists[0])
        shape = batch.ids.shape
        assert torch.tensor([e.ids for e in expected]).view(shape).equal(batch.ids)
        assert torch.tensor([e.type_ids for e in expected]).view(shape).equal(batch.types)
        assert (
            torch.tensor([e.attention_mask for e in expected]).bool().view(shape).equal(batch.real)
        )
        assert batch.label.tolist() == [table["label"][row] for row in chosen]


def ragged(lengths: list[int]) -> RaggedSequences:
    length = np.array(lengths, np.int64)
    return RaggedSequences(np.arange(10, 11 + length.sum()), np.cumsum(length) - length, length)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=6),
    st.integers(5, 40),
)
def test_what_is_too_long_is_cut_to_the_limit_and_no_more(lengths, limit):
    first, second = (ragged(list(side)) for side in zip(*lengths, strict=True))
    pairs = Sentences(first, second, np.zeros(len(lengths)), False, limit, SpecialTokens(2, 3))
    batch = pairs.make_batch(np.arange(len(lengths)))
    for row, (one, other) in enumerate(lengths):
        real = batch.real[row, 0]
        assert int(real.sum()) == min(one + other + 3, limit) == pairs.length[row]
        ids, types = batch.ids[row, 0][real].tolist(), batch.types[row, 0][real]
        assert ids[0] == 2 and ids[-1] == 3 and ids.count(3) == 2
        kept = int((types == 0).sum()) - 2, int(types.sum()) - 1
        # Whichever is cut keeps at least as much as the other, but for one.
        assert kept[0] == one or kept[0] >= kept[1]
        assert kept[1] == other or kept[1] >= kept[0] - 1
        start, begin = first.start[row], second.start[row]
        assert ids[1 : 1 + kept[0]] == first.ids[start : start + kept[0]].tolist()
        assert ids[2 + kept[0] : -1] == second.ids[begin : begin + kept[1]].tolist()
        assert not batch.ids[row, 0][~real].any()


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.integers(5, 20))
def test_single_sentences_are_cut(lengths, limit):
    batch = Sentences(
        ragged(lengths), None, np.zeros(len(lengths)), False, limit, SpecialTokens(2, 3)
    ).make_batch(np.arange(len(lengths)))
    assert batch.real.sum(-1).flatten().tolist() == [min(length + 2, limit) for length in lengths]
    assert not batch.types.any()


FAMILIES = ("bert", "roberta", "distilbert")


def train(place: Path, name: str, spec: dict, data: Path, init: Path, *more: str) -> int:
    places = {"data": data, "init": init, "out": place / name, "state": place / f"{name}-state"}
    return run_main("train", *more, spec=spec, **places)


def evaluate(place: Path, name: str, data: Path, splits=("test",)) -> pd.DataFrame:
    settings, out = {"splits": list(splits), "batch_tokens": 512}, place / name / "eval"
    assert run_main("evaluate", run_dir=place / name, data=data, out=out, settings=settings) == 0
    return pd.read_csv(out / "scores.csv")


def value(scores: pd.DataFrame, metric: str, subset: str = "all", readout: str = "last") -> float:
    (found,) = scores.query("metric == @metric and subset == @subset and readout == @readout")[
        "value"
    ]
    return found


def test_data_without_labels_have_scores_and_a_class_without_a_name_is_one_line(tmp_path):
    """As a data set of one's own may have them: `TableDataset` writes no labels by itself."""
    data, init = write_pairs(tmp_path / "data"), write_encoder(tmp_path / "init")
    spec = read_run_spec(sentence_spec(), "spec")
    cpu = torch.device("cpu")
    manifest = json.loads((data / "dataset.json").read_text())
    for labels, outputs in ((["another", "same"], 2), (None, 1)):
        (data / "dataset.json").write_text(json.dumps(manifest | {"labels": labels}))
        setup = set_up_training(spec, data, init, cpu)
        assert setup.model.heads["sentence"][-1].out_features == outputs
    del manifest["labels"]
    (data / "dataset.json").write_text(json.dumps(manifest))
    assert set_up_training(spec, data, init, cpu).model.heads["sentence"][-1].out_features == 1
    (data / "dataset.json").write_text(json.dumps(manifest | {"labels": ["the only one"]}))
    with pytest.raises(
        UserError, match=r"train\.parquet: a label is 1, and the 1 classes have the"
    ):
        set_up_training(spec, data, init, cpu)


def test_a_class_without_a_name_in_a_split_that_is_only_scored_is_one_line(tmp_path):
    data, init = write_pairs(tmp_path / "data"), write_encoder(tmp_path / "init")
    table = pq.read_table(data / "test.parquet")
    labels = [2.0, *table["label"].to_pylist()[1:]]
    place = table.column_names.index("label")
    pq.write_table(table.set_column(place, "label", [labels]), data / "test.parquet")
    spec = read_run_spec(sentence_spec(), "spec")
    assert len(read_sentences(spec, 64, init, data, "train"))
    with pytest.raises(UserError, match=r"test\.parquet: a label is 2, and the 2 classes have the"):
        read_sentences(spec, 64, init, data, "test")


@pytest.mark.parametrize("family", FAMILIES)
def test_end_to_end(tmp_path, family):
    data, init = write_pairs(tmp_path / "data"), write_encoder(tmp_path / "init", family)
    assert train(tmp_path, "ft", sentence_spec(family), data, init) == 0
    scores = evaluate(tmp_path, "ft", data)
    assert value(scores, "accuracy") > 90 and value(scores, "auc") > 90
    assert {"all", "long"} == set(scores["subset"])
    assert value(scores, "zero_states") == 0
    predictions = pd.read_parquet(tmp_path / "ft/eval/predictions.parquet")
    right = (predictions["prediction"] == predictions["label"]).mean()
    assert value(scores, "accuracy") == pytest.approx(100 * right)
    # A checkpoint is an encoder that Hugging Face reads, with a head.
    from transformers import AutoModel

    theirs = AutoModel.from_pretrained(tmp_path / "ft/checkpoint").state_dict()
    ours = load_file(tmp_path / "ft/checkpoint/model.safetensors")
    prefix = next(name for name in ours if not name.startswith("heads")).split(".")[0]
    for name, weight in theirs.items():
        if "pooler" not in name:
            torch.testing.assert_close(ours[f"{prefix}.{name}"], weight)
    assert any(name.startswith("heads.sentence") for name in ours)


def test_a_frozen_encoder_stays_as_it_is_and_its_head_learns(tmp_path):
    data, init = write_pairs(tmp_path / "data"), write_encoder(tmp_path / "init")
    spec = sentence_spec(model={"frozen": True, "dropout": 0.3}, problem={"head_layers": 2})
    assert train(tmp_path, "frozen", spec, data, init) == 0
    before = load_file(init / "model.safetensors")
    after = load_file(tmp_path / "frozen/checkpoint/model.safetensors")
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())
    history = pd.read_csv(tmp_path / "frozen/training.csv")
    losses = history.query("name == 'loss'")["value"].tolist()
    assert losses[-1] < losses[0]
    # The states that were kept are those of the evaluation, which reads the sentences again.
    best = json.loads((tmp_path / "frozen/run.json").read_text())["best_validation"]["accuracy"]
    assert value(evaluate(tmp_path, "frozen", data, ["valid"]), "accuracy") == pytest.approx(best)


@pytest.mark.parametrize("frozen", [False, True], ids=["end to end", "frozen"])
def test_items_are_shuffled_in_each_epoch_by_the_seed_of_the_run(tmp_path, monkeypatch, frozen):
    """200 items are 12 batches of 16, and one of 8."""
    data, init = write_pairs(tmp_path / "data"), write_encoder(tmp_path / "init")
    update, seen = loop.update_weights, []

    def record(setup, optimiser, clip_norm, autocast, batch):
        seen.append(batch.states.sum((1, 2)).tolist() if frozen else batch.ids.sum((1, 2)).tolist())
        return update(setup, optimiser, clip_norm, autocast, batch)

    monkeypatch.setattr(loop, "update_weights", record)
    order = {}
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        seen.clear()
        settings = {"validation": "none", "max_steps": None, "epochs": 2}
        spec = sentence_spec(training=settings, model={"frozen": frozen}) | {"seed": seed}
        assert train(tmp_path, name, spec, data, init) == 0
        order[name] = list(seen)
    assert order["one"] == order["again"] != order["other"]
    for batches in order.values():
        assert [len(batch) for batch in batches] == 2 * (12 * [16] + [8])
        first, second = (
            sorted(x for batch in batches[start : start + 13] for x in batch) for start in (0, 13)
        )
        assert first == second and batches[0] != batches[13]
    assert sorted(x for batch in order["one"] for x in batch) == sorted(
        x for batch in order["other"] for x in batch
    )


def test_scores(tmp_path):
    data, init = write_pairs(tmp_path / "data", scores=True), write_encoder(tmp_path / "init")
    spec = sentence_spec(training={"validation": {"split": "valid", "metric": "pearson"}})
    assert train(tmp_path, "ft", spec, data, init) == 0
    scores = evaluate(tmp_path, "ft", data)
    assert value(scores, "pearson") > 80
    assert set(scores["metric"]) == {"pearson", "spearman", "zero_states"}


def test_an_undefined_correlation_in_validation_counts_as_the_lowest_one(tmp_path):
    """All weights are 0 at first, so all predictions are equal and have no correlation."""
    data, init = write_pairs(tmp_path / "data", scores=True), write_encoder(tmp_path / "init")
    file = init / "model.safetensors"
    weights = {name: torch.zeros_like(weight) for name, weight in load_file(file).items()}
    save_file(weights, file, {"format": "pt"})
    changes = {"validation": {"split": "valid", "metric": "pearson"}, "learning_rate": 1e-30}
    spec = sentence_spec(steps=2, training=changes | {"validate_every": 1})
    assert train(tmp_path, "equal", spec, data, init) == 0
    history = pd.read_csv(tmp_path / "equal/training.csv").query("name == 'valid_pearson'")
    assert history["value"].tolist() == [-100, -100]  # below the correlation of any other weights
    best = json.loads((tmp_path / "equal/run.json").read_text())["best_validation"]
    assert best == {"pearson": -100}


def test_cosines_of_an_untuned_encoder(tmp_path):
    data, init = write_pairs(tmp_path / "data", scores=True), write_encoder(tmp_path / "init")
    file = init / "model.safetensors"  # weights so small make all sentences alike
    save_file(
        {name: 20 * weight for name, weight in load_file(file).items()}, file, {"format": "pt"}
    )
    unchanged = {"learning_rate": 1e-30, "validation": "none"}
    spec = sentence_spec(steps=1, problem={"prediction": "cosine"}, training=unchanged)
    assert train(tmp_path, "untuned", spec, data, init) == 0
    scores = evaluate(tmp_path, "untuned", data)
    predictions = pd.read_parquet(tmp_path / "untuned/eval/predictions.parquet")
    # Each sentence alone, one at a time, through the encoder itself.
    from tokenizers import Tokenizer

    from workflow_scripts.models.encoder.model import Settings, load_model

    tokenizer = Tokenizer.from_file(str(init / "tokenizer.json"))
    model = load_model(init, Settings(**{"family": "bert", **SIZES})).eval()

    def state(text: str) -> torch.Tensor:
        ids = [2, *tokenizer.encode(text, add_special_tokens=False).ids, 3]
        with torch.no_grad():
            return model(torch.tensor([ids])).last_hidden_state[0, 0]

    expected = [
        torch.cosine_similarity(state(p.first), state(p.second), dim=0).item() for p in pairs(60, 2)
    ]
    assert np.std(expected) > 0.1
    assert predictions["prediction"].tolist() == pytest.approx(expected, abs=1e-5)
    assert value(scores, "pearson") == pytest.approx(
        100 * pd.Series(expected).corr(predictions["label"]), abs=1e-2
    )


def test_a_zero_state_has_cosine_0_and_is_counted(tmp_path):
    data, init = write_pairs(tmp_path / "data", scores=True), write_encoder(tmp_path / "init")
    spec = sentence_spec(steps=1, problem={"prediction": "cosine"}, training={"validation": "none"})
    assert train(tmp_path, "zero", spec, data, init) == 0
    file = tmp_path / "zero/checkpoint/model.safetensors"
    weights = load_file(file)
    for name in weights:
        if "layer.1.output.LayerNorm" in name:
            weights[name] = torch.zeros_like(weights[name])
    save_file(weights, file, {"format": "pt"})
    record_files(tmp_path / "zero")
    scores = evaluate(tmp_path, "zero", data)
    assert value(scores, "zero_states") == 100
    assert set(scores["metric"]) == {"zero_states"}
    absent = json.loads((tmp_path / "zero/eval/evaluation.json").read_text())["absent"]
    assert {(row["metric"], row["reason"]) for row in absent} == {
        ("pearson", "all predictions are equal"), ("spearman", "all predictions are equal")
    }  # fmt: skip
    assert set(pd.read_parquet(tmp_path / "zero/eval/predictions.parquet")["prediction"]) == {0.0}


@pytest.mark.parametrize(
    ("changes", "lacks", "message"),
    [
        (
            {"problem": {"prediction": "cosine"}},
            "second",
            "items have one sentence, and prediction cosine compares",
        ),
        (
            {"model": {"family": "roberta"}},
            "",
            "holds a model of the family bert, the method needs roberta",
        ),
        ({"problem": {"head": 2}}, "", "unknown key 'problem.head'"),
        ({}, "train", "same has no training set; score on it what was trained on another task"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path, capsys, changes, lacks, message):
    data, init = (
        write_pairs(tmp_path / "data", single=lacks == "second"),
        write_encoder(tmp_path / "init"),
    )
    if lacks == "train":
        (data / "train.parquet").unlink()
    assert train(tmp_path, "ft", sentence_spec(**changes), data, init) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
