"""Training, stopping, going on and evaluating on a GPU."""

import json
import os
import signal
import subprocess
import time

import pytest
import torch

from tests.provenance.fields import FIELDS
from tests.training.toy import ROOT, call, command, environment, toy_spec, write_data
from workflow_scripts.evaluation.scores import read_scores

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU here")


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_run_that_is_stopped_goes_on_and_learns(tmp_path, precision):
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
    write_data(tmp_path / "data")
    (tmp_path / "spec.json").write_text(json.dumps(toy_spec(max_steps=1500, precision=precision)))
    settings = {"splits": ["test"], "beam": 1, "max_length": 10, "batch_tokens": 500}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    options = {
        name: tmp_path / file
        for name, file in (("spec", "spec.json"), ("data", "data"), ("out", "out"))
    }
    options |= {"state": tmp_path / "state", "device": "cuda", "save-every": 0.1}
    line = command(
        "train", *(text for name, value in options.items() for text in (f"--{name}", value))
    )
    process = subprocess.Popen(
        line, cwd=ROOT, env={**environment(), "CUDA_VISIBLE_DEVICES": visible}
    )
    while not list((tmp_path / "state").glob("step-*")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 143
    subprocess.run(
        line, cwd=ROOT, env={**environment(), "CUDA_VISIBLE_DEVICES": visible}, check=True
    )

    run = json.loads((tmp_path / "out/record.json").read_text())
    assert run["device"] == "cuda" and run["resumed"] == 1 and "not promised" in run["bit_equality"]
    assert set(FIELDS) <= run.keys() and run["precision"] == precision
    assert (
        run["driver"]
        and run["cuda"] == torch.version.cuda
        and run["device_name"] == torch.cuda.get_device_name()
    )
    assert run["gpu_seconds"] == run["seconds"] > 0
    peaks = [call["peak_gpu_memory_bytes"] for call in run["attempts"]]
    assert len(peaks) == 2 and run["peak_gpu_memory_bytes"] == max(peaks) > 1e5
    where = ("--run-dir", tmp_path / "out", "--data", tmp_path / "data", "--out", tmp_path / "eval")
    # A run from the GPU is scored on the CPU as well as there: the weights are plain safetensors.
    assert (
        call(
            "evaluate", *where, "--settings", tmp_path / "settings.json", "--device", "cpu"
        ).returncode
        == 0
    )
    scored = json.loads((tmp_path / "eval/record.json").read_text())
    assert set(FIELDS) <= scored.keys() and (scored["device"], scored["gpu_seconds"]) == ("cpu", 0)
    found = next(
        row.value for row in read_scores(tmp_path / "eval/scores.csv") if row.subset == "all"
    )
    assert found > 50
