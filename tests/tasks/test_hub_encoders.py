"""Encoders of the hub of which the first layers are kept: BERT's kinds and RoBERTa's, with their own
tokenizers, from a local folder of models to predictions.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing, RobertaProcessing
from transformers import (
    BertModel,
    DistilBertConfig,
    DistilBertForMaskedLM,
    RobertaForMaskedLM,
)

from tests.data.preparing import prepare_data, write_data
from tests.models.small_roberta import SPECIAL, tokenizer, write_roberta
from tests.training.sentence_toy import PIECES, pairs, sentence_spec, write_pairs, write_tokenizer
from tests.training.toy import run_main, stopping_at
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file
from workflow_scripts.data.datasets import squad
from workflow_scripts.data.prepared import read_table
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.models.encoder.model import Settings, extract_vocabulary, load_model
from workflow_scripts.models.hugging_face import load_tokenizer
from workflow_scripts.tasks.encoders import load_initial_encoder
from workflow_scripts.tasks.question_answering.training_setup import NOT_HERE, read_windows
from workflow_scripts.tasks.run_spec import read_run_spec
from workflow_scripts.tasks.sentence_prediction.training_setup import read_sentences
from workflow_scripts.training import loop

HUB = {"roberta": "FacebookAI/roberta-base", "distilbert": "distilbert/distilbert-base-uncased"}
SIZES = {"heads": 2, "width": 16, "feed_forward": 24, "dropout": 0.1}


def write_hub_model(models: Path, family: str, texts: list[str]) -> Path:
    """Write a small model with random weights as transformers saves it; returns the folder."""
    folder = models / HUB[family]
    if family == "roberta":
        write_roberta(folder, texts, encoder_layers=6)
        tokenizer(texts, [*SPECIAL, "<mask>"]).save(str(folder / "tokenizer.json"))
        size = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab_size()
        model = RobertaForMaskedLM.from_pretrained(folder)
        model.resize_token_embeddings(size)
        model.save_pretrained(folder)
        (folder / "model.json").unlink()
        return folder
    folder.mkdir(parents=True)
    split = BertPreTokenizer()
    words = {word for text in texts for word, _ in split.pre_tokenize_str(text.lower())}
    pieces = [*PIECES, *sorted(words - set(PIECES))]
    config = DistilBertConfig(
        vocab_size=len(pieces), n_layers=6, n_heads=2, dim=16, hidden_dim=24,
        max_position_embeddings=40, initializer_range=0.3,
    )  # fmt: skip
    torch.manual_seed(0)
    DistilBertForMaskedLM(config).save_pretrained(folder)
    write_tokenizer(folder, pieces)
    return folder


def fetch(models: Path, family: str, out: Path) -> Path:
    """Take the model from a local folder, as `models.local` of config.yaml names one."""
    from workflow_scripts.__main__ import main

    assert main(["fetch-model", HUB[family], "--out", str(out), "--local", str(models)]) == 0
    return out


def make_spec(family: str, **training: object) -> dict:
    model = {"name": "encoder", "family": family, "layers": 6, "first_layers": 4, **SIZES}
    changes = {"max_steps": 2, "validation": "none", "warmup_steps": 0, **training}
    repository = load_repositories()[HUB[family]]
    return sentence_spec(training=changes) | {
        "model": model | {"positions": 38},
        "init": {"hub": HUB[family], "revision": repository.revision},
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("hub")
    write_pairs(place / "data")
    texts = [text for row in pairs(50, 0) for text in (row.first, row.second)]
    made = prepare_data(squad, {"from": "stand_in", "validation": 40}, {})
    spec = {"task": "squad", "prepare": "workflow_scripts.data.datasets.squad", "options": {}, "sources": [],
            "protocol": "stand_in"}  # fmt: skip
    write_data(made, spec, place / "squad")
    texts += [*made.tables["train"]["question"], *made.tables["train"]["context"]]
    for family in HUB:
        write_hub_model(place / "models", family, texts)
        fetch(place / "models", family, place / family)
    return place


def test_the_first_layers_of_a_real_encoder_are_those_of_transformers(minilm):
    """Oracle: BertModel's own hidden states after its fourth layer of six."""
    sizes = {"layers": 6, "heads": 12, "width": 384, "feed_forward": 1536}
    ours = load_model(minilm, Settings(**sizes, first_layers=4)).eval()
    theirs = BertModel.from_pretrained(minilm).eval()
    special = extract_vocabulary(load_tokenizer(minilm), minilm).special
    texts = ["adult male", "The bank of the river, in 1560.", "naïve"]
    for text in texts:
        words = load_tokenizer(minilm).encode(text, add_special_tokens=False).ids
        ids = torch.tensor([[special.cls, *words, special.sep]])
        with torch.no_grad():
            expected = theirs(ids, output_hidden_states=True).hidden_states
            states = ours(ids).last_hidden_state
        torch.testing.assert_close(states, expected[4], rtol=1e-5, atol=1e-5)
        assert (expected[6] - expected[4]).abs().max() > 0.1
    assert ours.config.num_hidden_layers == 4
    with pytest.raises(UserError, match=r"has 6 layers, and model.first_layers is 8; lower it"):
        load_model(minilm, Settings(**sizes | {"layers": 12}, first_layers=8))


@pytest.mark.parametrize("family", HUB)
def test_sentences_are_what_the_tokenizer_of_the_model_makes_of_them(place, family):
    """Oracle for RoBERTa: the form `<s> A </s></s> B </s>` of transformers' own tokenizer."""
    spec = read_run_spec(make_spec(family), "spec")
    found = read_sentences(spec, 38, place / family, place / "data", "test")
    oracle = Tokenizer.from_file(str(place / family / "tokenizer.json"))
    if family == "roberta":
        oracle.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
        pad = 1
    else:
        oracle.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        pad = 0
    table = read_table(place / "data", "test", ["first", "second"]).to_pydict()
    batch = found.make_batch(np.arange(60))
    expected = oracle.encode_batch(list(zip(table["first"], table["second"], strict=True)))
    for row, encoding in enumerate(expected):
        real = batch.real[row, 0]
        if len(encoding.ids) <= 32:
            assert batch.ids[row, 0][real].tolist() == encoding.ids
        assert (batch.ids[row, 0][~real] == pad).all()
        assert int(found.length[row]) == min(len(encoding.ids), 32) == int(real.sum())


@pytest.mark.parametrize("family", HUB)
def test_answers_are_found_in_windows_of_both_kinds(place, family):
    problem = {"longest": 36, "stride": 8, "longest_question": 16}
    spec = make_spec(family) | {"kind": "question_answering", "problem": problem}
    found = read_windows(read_run_spec(spec, "spec"), place / family, place / "squad", "train")
    right = 0
    for row, (begin, end) in enumerate(found.ends):
        item, offsets = found.item[row], found.offsets[row]
        assert len(found.ids[row]) <= 36
        if begin != NOT_HERE:
            text = found.contexts[item][offsets[begin, 0] : offsets[end, 1]]
            assert text == found.answers[item][0]
            right += 1
    assert right >= 0.9 * len(found.contexts)
    vocabulary = load_tokenizer(place / family)
    allowed = found.make_batch(np.array([0])).allowed[0]
    said = vocabulary.decode(np.array(found.ids[0])[allowed.numpy()][1:].tolist())
    context = found.contexts[0]
    assert said.replace(" ", "").lower() in context.replace(" ", "").lower()


@pytest.mark.parametrize("family", HUB)
def test_from_a_local_folder_to_predictions(place, tmp_path, monkeypatch, family):
    """Two steps, stopped after the first and resumed; with and without checkpointing, and bf16."""
    digests = {}
    settings = {"whole": {}, "stopped": {}, "checkpointed": {"gradient_checkpointing": True}}
    settings |= {"parts": {"accumulate": 2}, "bf16": {"precision": "bf16"}}
    for name, training in settings.items():
        paths = {"data": place / "data", "init": place / family, "out": tmp_path / name}
        paths["state"] = tmp_path / "state"
        spec = make_spec(family, **training)
        if name == "stopped":
            with monkeypatch.context() as patched, pytest.raises(SystemExit):
                patched.setattr(loop, "update_weights", stopping_at(1))
                run_main("train", spec=spec, **paths)
        assert run_main("train", spec=spec, **paths) == 0
        digests[name] = hash_file(tmp_path / name / "checkpoint/model.safetensors")
    assert digests["whole"] == digests["stopped"] == digests["checkpointed"]
    assert len(set(digests.values())) == 3
    config = json.loads((tmp_path / "whole/checkpoint/config.json").read_text())
    assert config.get("num_hidden_layers", config.get("n_layers")) == 4
    run, data = tmp_path / "whole", place / "data"
    out = tmp_path / "scores"
    splits = {"splits": ["test"], "batch_tokens": 256}
    assert run_main("evaluate", settings=splits, run_dir=run, data=data, out=out) == 0
    predictions = pd.read_parquet(out / "predictions.parquet")
    assert len(predictions) == 60 and set(predictions["prediction"]) <= {0.0, 1.0}


def test_a_tokenizer_of_another_model_is_refused(place, tmp_path):
    """RoBERTa's padding is 1: BERT's word pieces do not fit its weights."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_bytes((place / "roberta" / name).read_bytes())
    write_tokenizer(folder)
    with pytest.raises(UserError, match=r"tokenizer.json has 0 for padding, config.json 1; fetch"):
        load_initial_encoder(read_run_spec(make_spec("roberta"), "spec"), folder)
