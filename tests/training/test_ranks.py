"""One run in several processes, as the command starts them: what they end with, alone, together and disturbed."""

import csv
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from tests.training import causal_toy
from tests.training.toy import ROOT, assert_one_error, command, environment, toy_spec, write_data
from workflow_scripts.__main__ import main
from workflow_scripts.catalogue.loading import load_catalogue
from workflow_scripts.catalogue.run_specs import resolve_run
from workflow_scripts.training.batches import Batch
from workflow_scripts.training.ranks import Ranks, Shares

STEPS = 120
# Adam divides by the size of a gradient: one that is nothing but rounding would count as much as any other.
CALM = {"max_steps": 20, "adam_epsilon": 1e-3, "validate_every": 10, "log_every": 5}
RUN = "toy/transformer/default/seed-3"


class Runs:
    """Runs of two processes in a folder; `data` and `init` belong to all."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        write_data(folder / "data")
        self.whole = folder / "whole"
        self.write("spec", toy_spec(max_steps=STEPS, validate_every=50, log_every=7, gpus=2))
        self.finish(self.whole)

    def write(self, name: str, spec: dict) -> Path:
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(spec))
        return path

    def start(self, place: Path, spec: str = "spec", data: str = "data", *more: object) -> subprocess.Popen[str]:
        options = {"spec": self.folder / f"{spec}.json", "data": self.folder / data, "out": place / "out"}
        options |= {"state": place / "state", "save-every": 0.1}
        arguments = [str(text) for name, value in options.items() for text in (f"--{name}", value)]
        line = command("train", *arguments, *more)
        return subprocess.Popen(line, cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True)

    def finish(self, place: Path, *options: object) -> str:
        process = self.start(place, *options)
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
        return said

    def alone_and_together(self) -> tuple[tuple[str, dict, Callable], ...]:
        """Name, settings and how it is finished, of a run in one process and in two."""
        return ("one", {}, self.finish_here), ("several", {"gpus": 2}, self.finish)

    def finish_here(self, place: Path, spec: str, data: str = "data", *more: object) -> None:
        """A run of one process, in this one."""
        options = {"spec": self.folder / f"{spec}.json", "data": self.folder / data, "out": place / "out"}
        arguments = [str(text) for name, value in options.items() for text in (f"--{name}", value)]
        assert main(["train", *arguments, "--progress", "none", "--device", "cpu", *map(str, more)]) == 0

    def assert_same_as_whole(self, place: Path) -> dict:
        """Weights and history are equal to the last bit; returns run.json."""
        for name in ("checkpoint/model.safetensors", "training.csv"):
            assert (place / "out" / name).read_bytes() == (self.whole / "out" / name).read_bytes(), name
        assert not (place / "state").exists()
        return json.loads((place / "out/run.json").read_text())


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    return Runs(tmp_path_factory.mktemp("runs"))


def wait_for(process: subprocess.Popen, ready: Callable[[], object]) -> None:
    while not ready():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)


def wait_for_new_state(process: subprocess.Popen, place: Path) -> None:
    before = set((place / "state").glob("step-*"))
    wait_for(process, lambda: set((place / "state").glob("step-*")) - before)


def children(process: subprocess.Popen) -> list[int]:
    """The processes that work for a command, in the order of their start."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in found if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def assert_gone(processes: list[int]) -> None:
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{process}").exists() for process in processes):
        assert time.monotonic() < deadline, "processes are left over"
        time.sleep(0.05)


def history(place: Path) -> dict[str, list[float]]:
    with open(place / "out/training.csv") as stream:
        rows = list(csv.DictReader(stream))
    return {name: [float(row["value"]) for row in rows if row["name"] == name] for name in {r["name"] for r in rows}}


def assert_alike(one: Path, several: Path) -> None:
    """Weights and all that was logged are the same up to rounding."""
    weights, others = (load_file(place / "out/checkpoint/model.safetensors") for place in (one, several))
    assert weights.keys() == others.keys()
    for name, tensor in weights.items():
        torch.testing.assert_close(others[name], tensor, rtol=1e-4, atol=1e-5, msg=name)
    logged, others = history(one), history(several)
    assert logged.keys() == others.keys()
    for name, values in logged.items():
        assert others[name] == pytest.approx(values, rel=1e-4, abs=1e-5), name


def test_sequence_pairs_end_as_in_one_process(runs, tmp_path):
    for name, gpus, finish in runs.alone_and_together():
        spec = toy_spec(**CALM, **gpus)
        spec["model"]["dropout"] = 0.0
        runs.write(name, spec)
        finish(tmp_path / name, name)
    assert_alike(tmp_path / "one", tmp_path / "several")
    assert json.loads((tmp_path / "several/out/run.json").read_text())["processes"] == 2


def test_fine_tuning_with_carma_ends_as_in_one_process(runs, tmp_path):
    """All possible negatives are used: what is drawn differs from process to process."""
    causal_toy.write_text(runs.folder / "text")
    causal_toy.write_prompts(runs.folder / "prompts")
    runs.write("pretrain", causal_toy.causal_spec("text", max_steps=2))
    runs.finish_here(tmp_path / "pretrain", "pretrain", "text")
    init = ("--init", tmp_path / "pretrain/out/checkpoint")
    for name, gpus, finish in runs.alone_and_together():
        spec = causal_toy.causal_spec("prompt", "gpt2", {"weight": 0.2, "negatives": 0}, **CALM, **gpus)
        runs.write(f"ft-{name}", spec | {"model": spec["model"] | {"dropout": 0.0}})
        config = tmp_path / "pretrain/out/checkpoint/config.json"
        config.write_text(config.read_text().replace("0.1", "0.0"))  # the dropout of a model that is read is its own
        finish(tmp_path / name, f"ft-{name}", "prompts", *init)
    assert {"mi", "stability", "pairs"} < history(tmp_path / "one").keys()
    assert_alike(tmp_path / "one", tmp_path / "several")


def test_pre_training_on_mapped_pairs_ends_as_in_one_process(runs, tmp_path):
    """All processes draw the same masks and false pairs. A few steps: where a code is not quite 0 in one of them only,
    rounding grows."""
    task = ("--task", "wikipedia-bookcorpus", "--scale", "demo")
    assert main(["prepare", *task, "--out", str(runs.folder / "corpora")]) == 0
    spec = resolve_run(load_catalogue(), "wikipedia-bookcorpus/cat/pretrain/seed-3", "demo")
    for name, gpus, finish in runs.alone_and_together():
        short = CALM | {"max_steps": 4, "validate_every": 2, "log_every": 1}
        runs.write(f"masked-{name}", spec | {"training": spec["training"] | short | gpus})
        finish(tmp_path / name, f"masked-{name}", "corpora")
    assert {"mlm_mixed", "decomposition", "nuance"} < history(tmp_path / "one").keys()
    assert_alike(tmp_path / "one", tmp_path / "several")


@pytest.mark.faults
def test_killed_at_random_moments_a_run_ends_with_the_same_bytes_and_leaves_no_process(runs, tmp_path):
    seed = random.randrange(2**32)
    print(f"moments drawn with seed {seed}")  # pytest shows it when the test fails
    draw = random.Random(seed)
    for _ in range(2):
        process = runs.start(tmp_path)
        wait_for_new_state(process, tmp_path)
        workers = children(process)
        assert len(workers) == 2
        time.sleep(draw.uniform(0, 0.2))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert_gone(workers)
    runs.finish(tmp_path)
    run = runs.assert_same_as_whole(tmp_path)
    assert run["resumed"] == 2 and len(run["attempts"]) == 3
    first, second, third = run["attempts"]
    assert [call["first_step"] for call in (second, third)] == [call["last_step"] + 1 for call in (first, second)]
    assert third["last_step"] == run["steps"] and run["started"] == first["started"]
    processes = [call["processes"] for call in run["attempts"]]
    assert all(len(both) == 2 and all(one["peak_memory_bytes"] > 1e8 for one in both) for both in processes)
    assert run["cpu_seconds"] == pytest.approx(sum(one["cpu_seconds"] for both in processes for one in both))
    assert run["peak_memory_bytes"] == max(sum(one["peak_memory_bytes"] for one in both) for both in processes)


def test_asked_to_stop_it_saves_once_and_goes_on_later(runs, tmp_path):
    """Also when the signal goes to all processes, as from a terminal or from SLURM."""
    for number, code, group in ((signal.SIGTERM, 143, False), (signal.SIGINT, 130, True)):
        process = runs.start(tmp_path)
        wait_for_new_state(process, tmp_path)
        workers = children(process)
        for one in [process.pid, *workers] if group else [process.pid]:
            os.kill(one, number)
        _, said = process.communicate(timeout=300)
        assert process.returncode == code, said
        last = said.splitlines()[-1]
        assert last.startswith(f"{RUN}: stopped at step ") and "Traceback" not in said
        step = last.split("step ")[1].split(",")[0]
        log = (tmp_path / "state/log.txt").read_text()
        assert log.count(f"saved step-{step}\n") == log.count(f"stopped by signal {number:d} ") == 1
        assert_gone(workers)
    runs.finish(tmp_path)
    assert runs.assert_same_as_whole(tmp_path)["resumed"] == 2


@pytest.mark.parametrize("rank", [0, 1])
def test_when_one_process_is_killed_all_end_with_one_line(runs, tmp_path, rank):
    process = runs.start(tmp_path)
    wait_for_new_state(process, tmp_path)
    workers = children(process)
    os.kill(workers[rank], signal.SIGKILL)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 1
    assert_one_error(said, f"process {rank + 1} of 2 was ended by SIGKILL", "the same command goes on")
    assert_gone(workers)


def test_an_error_that_all_processes_have_is_said_once(runs, tmp_path):
    runs.write("wild", toy_spec(learning_rate=1e36, warmup_steps=10, validate_every=2, clip_norm=0.0, gpus=2))
    process = runs.start(tmp_path, "wild")
    _, said = process.communicate(timeout=300)
    assert process.returncode == 1
    assert_one_error(said, "the loss is ", "training.learning_rate")


def refused(capsys, tmp_path: Path, spec: dict, *more: str) -> str:
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    places = {"spec": tmp_path / "spec.json", "data": tmp_path / "data", "out": tmp_path / "out"}
    arguments = [text for name, path in places.items() for text in (f"--{name}", str(path))]
    assert main(["train", *arguments, "--state", str(tmp_path / "state"), *more]) == 1
    said = capsys.readouterr().err
    assert_one_error(said)
    return said


def test_an_objective_over_the_whole_batch_is_refused(capsys, tmp_path):
    spec = toy_spec(gpus=2)
    spec["objective"] = {"module": "workflow_scripts.objectives.structural_quantisation"}
    assert "its clusters is one of the whole batch; set gpus to 1" in refused(capsys, tmp_path, spec)


def test_codes_that_follow_the_batch_are_refused(capsys, tmp_path):
    spec = toy_spec(gpus=2)
    spec["model"] = {"module": "workflow_scripts.models.sq_transformer"}
    assert "its codes follow the words of the whole batch; set gpus to 1" in refused(capsys, tmp_path, spec)


def test_spans_of_the_whole_batch_are_refused(capsys, tmp_path):
    spec = causal_toy.causal_spec("prompt", objective={"weight": 0.2, "spans": "batch"}, gpus=2)
    assert "spans is batch" in refused(capsys, tmp_path, spec)


def test_no_gpus_at_all_are_refused(capsys, tmp_path):
    assert "'training.gpus' is 0" in refused(capsys, tmp_path, toy_spec(gpus=0))


def test_fewer_gpus_than_asked_for_are_said_in_one_line(capsys, tmp_path):
    if torch.cuda.device_count() > 8:
        pytest.skip("this machine has nine GPUs")
    write_data(tmp_path / "data")
    said = refused(capsys, tmp_path, toy_spec(gpus=9), "--device", "cuda")
    assert "torch finds no GPU" in said or "training.gpus is 9, but there" in said


@given(st.integers(1, 20), st.integers(1, 8))
def test_shares_are_a_partition_into_nearly_equal_parts(sentences, size):
    """Unless there are too few sentences: then each process has all."""
    rows = torch.arange(sentences)[:, None]
    shares = [Shares([Batch(rows, rows, rows)], Ranks(rank, size))[0] for rank in range(size)]
    found = [share.target_out[:, 0].tolist() for share in shares]
    if sentences < size:
        assert found == [list(range(sentences))] * size
    else:
        assert [row for share in found for row in share] == list(range(sentences))
        assert np.ptp([len(share) for share in found]) <= 1
