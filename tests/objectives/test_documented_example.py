"""The objective of docs/adding.md trains, and does what its comments say."""

import csv
import importlib
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

import workflow_scripts.objectives
from tests.objectives.documented_example import NAME, read_documented_objective
from tests.training.toy import ROOT, command, environment, toy_spec, write_data
from workflow_scripts.common.files import write_json
from workflow_scripts.models.transformer.model import Seq2Seq
from workflow_scripts.models.transformer.settings import Settings
from workflow_scripts.tasks.batching import Batch
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss


def add_example(package: Path) -> None:
    """Write the files of the example into a package."""
    for name, code in read_documented_objective().items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)


def make_batch(padding: int) -> Batch:
    """Two sentences, of two words and of one, with more padding at the end of the sources."""
    source = torch.tensor([[4, 5, 2], [6, 2, 0]])
    target_out = torch.tensor([[5, 4, 2], [6, 2, 0]])
    target_in = torch.tensor([[2, 5, 4], [2, 6, 0]])
    return Batch(torch.nn.functional.pad(source, (0, padding)), target_in, target_out)


def test_the_example_penalises_training_alone_and_ignores_padding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    add_example(tmp_path)
    folders = [*workflow_scripts.objectives.__path__, str(tmp_path / "objectives")]
    monkeypatch.setattr(workflow_scripts.objectives, "__path__", folders)
    module = importlib.import_module(f"workflow_scripts.objectives.{NAME}.objective")
    objective = module.build(module.Settings(weight=0.5), WordLoss(0.0))
    torch.manual_seed(0)
    settings = Settings(layers=2, heads=2, width=8, feed_forward=8, dropout=0.0)
    model = Seq2Seq(settings, 12, 12)
    plain, parts = WordLoss(0.0)(model, make_batch(padding=0))

    loss, more = objective(model.train(), make_batch(padding=0))
    assert set(more) == {*parts, "distance"}
    assert more["distance"] > 0
    torch.testing.assert_close(loss, plain + 0.5 * more["distance"])

    _, padded = objective(model, make_batch(padding=3))
    torch.testing.assert_close(padded["distance"], more["distance"])

    loss, fewer = objective(model.eval(), make_batch(padding=0))
    assert set(fewer) == set(parts)
    torch.testing.assert_close(loss, plain)


def test_the_example_trains(tmp_path: Path):
    package = tmp_path / "workflow_scripts"
    shutil.copytree(ROOT / "workflow_scripts", package)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    add_example(package)
    data = write_data(tmp_path / "data")
    spec = toy_spec(max_steps=30, log_every=10)
    spec["model"]["layers"] = 2
    spec["objective"] = {"name": NAME, "weight": 0.5}
    write_json(tmp_path / "spec.json", spec)
    words = ["--spec", "spec.json", "--data", data, "--out", "out", "--state", "state"]
    done = subprocess.run(
        command("train", *words),
        cwd=tmp_path,
        env=environment() | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "out/training.csv") as stream:
        rows = [row for row in csv.DictReader(stream) if row["name"] == "distance"]
    distances = [float(row["value"]) for row in rows]
    assert distances[-1] < distances[0]
