"""A run that starts from a pre-trained encoder: trained, read again and scored, with sources in its
pieces.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from tests.models.small_roberta import SIZES, tokenizer, write_roberta
from tests.training.toy import assert_one_error, run_main, toy_spec, write_data
from workflow_scripts.common.errors import UserError
from workflow_scripts.models.roberta_decoder.model import read_pieces
from workflow_scripts.tasks.batching import to_sequences
from workflow_scripts.tasks.seq2seq.checkpoint import load_run

TEXTS = ["a b c d", "e f g h", "a a", "h g f e d c b a"]


def roberta_spec() -> dict:
    model = {"layers": 1, "heads": 2, "width": 16, "feed_forward": 16, "dropout": 0.1, **SIZES}
    spec = toy_spec(max_steps=20, validate_every=10)
    spec["model"] = {"name": "roberta_decoder", **model}
    return spec | {
        "method": "roberta",
        "init": {"hub": "FacebookAI/roberta-base", "revision": "0" * 40},
    }


def train_here(folder: Path, spec: dict, *more: object) -> int:
    """Train on a folder's data; returns the exit code."""
    places = {name: folder / name for name in ("data", "out", "state")}
    return run_main("train", *more, spec=spec, device="cpu", **places)


def test_pieces_are_the_tokenizers_with_our_special_ids(tmp_path: Path) -> None:
    made = tokenizer(TEXTS)
    made.save(str(tmp_path / "tokenizer.json"))
    pieces = read_pieces(tmp_path)
    words = pieces.list_pieces()
    assert words[:4] == ["<pad>", "<s>", "</s>", "<unk>"] and len(words) == made.get_vocab_size()
    table = pa.table({"source": TEXTS, "source_ids": [[9]] * 4, "target_ids": [[5]] * 4})
    cut = pieces.tokenise(table)
    assert cut.column_names == table.column_names
    found = to_sequences(cut["source_ids"])
    for row, text in enumerate(TEXTS):
        ids = found.pad(np.array([row]))[0][:-1]
        assert [words[i] for i in ids] == made.encode(text).tokens
    assert "".join(words[i] for i in found.ids).replace("Ġ", " ") == "".join(TEXTS)


def test_a_tokenizer_of_another_family_is_refused(tmp_path: Path) -> None:
    tokenizer(TEXTS, ["[PAD]", "[UNK]"]).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(UserError, match="give a RoBERTa model"):
        read_pieces(tmp_path)


def test_a_run_is_trained_from_a_folder_and_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    original = write_roberta(tmp_path / "model", TEXTS)
    data = write_data(tmp_path / "data")
    assert train_here(tmp_path, roberta_spec()) == 1
    assert_one_error(capsys.readouterr().err, "with --init")
    assert train_here(tmp_path, roberta_spec(), "--init", tmp_path / "model") == 0
    model, vocabulary, _ = load_run(tmp_path / "out", data)
    run_json = json.loads((tmp_path / "out/run.json").read_text())
    assert (
        len(vocabulary["source"]) == original.config.vocab_size and len(vocabulary["target"]) == 12
    )
    assert run_json["init_digest"]
    # It has moved away from where it started, but not far.
    weight = model.roberta.embeddings.LayerNorm.weight
    start = original.roberta.embeddings.LayerNorm.weight
    assert 0 < (weight - start).abs().max() < 0.2
    assert torch.isfinite(weight).all()
    settings = {"splits": ["test"], "beam": 2, "max_length": 12, "batch_tokens": 60}
    places = {"run_dir": tmp_path / "out", "data": data, "out": tmp_path / "eval"}
    assert run_main("evaluate", settings=settings, device="cpu", **places) == 0
    assert "exact_match" in (tmp_path / "eval/scores.csv").read_text()


def test_the_same_architecture_from_scratch_reads_words(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data")
    assert train_here(tmp_path, roberta_spec() | {"init": None}) == 0
    assert len(load_run(tmp_path / "out", data)[1]["source"]) == 12


def test_a_model_that_starts_from_random_weights_takes_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    write_roberta(tmp_path / "model", TEXTS)
    write_data(tmp_path / "data")
    spec = toy_spec() | {"init": roberta_spec()["init"]}
    assert train_here(tmp_path, spec, "--init", tmp_path / "model") == 1
    assert_one_error(
        capsys.readouterr().err, "toy/transformer starts from random weights; leave --init out"
    )
