"""Each run of the demo loads, and predicts from texts what its evaluation predicted."""

from collections import Counter
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from workflow_scripts.__main__ import main
from workflow_scripts.common.errors import UserError
from workflow_scripts.models.weights import list_weights
from workflow_scripts.results import Results, read_checkpoint
from workflow_scripts.tasks.base import Checkpoint
from workflow_scripts.tasks.checkpoints import read_run

# of the demo
KINDS = (
    "seq2seq",
    "prompt",
    "sentence_prediction",
    "language_modelling",
    "masked_lm",
)
ROWS = 8


@pytest.fixture(scope="module")
def results(finished_demo: Path) -> Results:
    return Results(finished_demo / "results/demo")


def read_inputs(data: Path, kind: str, split: str) -> list:
    """The texts of a split that the model reads, in the order of the predictions."""
    table = pq.read_table(data / f"{split}.parquet").to_pydict()
    if kind == "sentence_prediction" and None not in table["second"]:
        return list(zip(table["first"], table["second"], strict=True))
    return table[{"seq2seq": "source", "prompt": "content", "sentence_prediction": "first"}[kind]]


def read_predictions(results: Results, run: str, checkpoint: Checkpoint) -> list:
    """The predictions of the best checkpoint on the first split; classes by their names."""
    table = results.predictions(run)
    table = table[table["split"] == checkpoint.settings.splits[0]]
    if checkpoint.spec.kind == "seq2seq":
        table = table[table["readout"].isna()]
    if checkpoint.labels:
        return [checkpoint.labels[int(number)] for number in table["prediction"]]
    return table["prediction"].tolist()


def assert_equal_predictions(
    results: Results, run: str, checkpoint: Checkpoint, model: torch.nn.Module
) -> None:
    kind, task = checkpoint.spec.kind, checkpoint.spec.task
    inputs = read_inputs(results.folder / "data" / task, kind, checkpoint.settings.splits[0])
    wanted = read_predictions(results, run, checkpoint)
    assert len(inputs) == len(wanted) > 0
    found = checkpoint.predict(model, inputs[:ROWS])
    if checkpoint.labels is None and kind == "sentence_prediction":
        wanted = pytest.approx(wanted[:ROWS], abs=1e-5)  # another batch
        assert found == wanted
    else:
        assert found == wanted[:ROWS]


def test_every_run_loads_and_predicts_what_its_evaluation_did(results: Results):
    seen = Counter()
    for run in results.runs().index:
        if "@" in run:
            with pytest.raises(UserError, match="this run scores given weights and trains nothing"):
                results.load_model(run)
            continue
        checkpoint = results.checkpoint(run)
        model, weights = checkpoint.load_model(), load_file(checkpoint.folder / "model.safetensors")
        own = list_weights(model)
        assert own.keys() == weights.keys() and all(
            torch.equal(own[name], weights[name]) for name in own
        ), run
        seen[checkpoint.spec.kind] += 1
        if checkpoint.spec.kind in ("language_modelling", "masked_lm"):
            with pytest.raises(UserError, match="predicts no text; use its model"):
                checkpoint.predict(model, ["a text"])
        else:
            assert_equal_predictions(results, run, checkpoint, model)
    assert set(seen) == set(KINDS)


def test_every_exported_run_loads_on_its_own_and_has_the_bytes_of_the_run(
    results: Results, tmp_path: Path
):
    command = [
        "export",
        "--scale",
        "demo",
        "--results",
        str(results.folder.parent),
        "--checkpoints",
    ]
    assert main([*command, str(tmp_path / "models")]) == 0
    (tmp_path / "models").rename(tmp_path / "elsewhere")
    exported = sorted((tmp_path / "elsewhere").glob("*/*/*/*"))
    names = ["/".join(folder.parts[-4:]) for folder in exported]
    assert sorted(names) == [run for run in sorted(results.runs().index) if "@" not in run]
    seen = {}
    for name, folder in zip(names, exported, strict=True):
        files = {
            name.removeprefix("checkpoint/"): sha for name, sha in read_run(folder).files.items()
        }
        for file in folder.iterdir():
            if file.name in files:
                assert sha256(file.read_bytes()).hexdigest() == files[file.name]
        others = {file.name for file in folder.iterdir()} - files.keys()
        assert others == {"README.md", "run.json", "record.json", "evaluation.json", "dataset.json"}
        seen.setdefault(read_run(folder).spec.kind, (name, folder))
    assert set(seen) == set(KINDS)
    for kind, (name, folder) in seen.items():
        checkpoint = read_checkpoint(folder)
        model = checkpoint.load_model()
        if kind in ("prompt", "language_modelling"):
            found = AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True).state_dict()
            assert all(
                torch.equal(found[key], weight) for key, weight in model.state_dict().items()
            )
        if kind not in ("masked_lm", "language_modelling"):
            assert_equal_predictions(results, name, checkpoint, model)
    card = (tmp_path / "elsewhere/paws/cat/mix/seed-1/README.md").read_text()
    (score,) = results.scores(task="paws", variant="mix", metric="accuracy", subset="swap")["value"]
    assert (
        f"| test | swap | accuracy | mix | {score:.2f} percent | 89.32 (cat: Table 2, CAT_mix, PAWS (SO)"
        in card
    )
    assert "pairs-wordpiece: no source files; stand-in data" in card  # the pre-training, too
