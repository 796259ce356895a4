"""Runs that are killed or stopped, as processes, and started again end with the bytes of one that
ran through.
"""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import pytest

from tests.training.toy import (
    ROOT,
    assert_one_error,
    assert_one_line_error,
    command,
    environment,
    here,
    toy_spec,
    write_data,
)
from workflow_scripts.training.state import StateFolder

STEPS = 120
# Imports everything, then allows hardly more memory than the process has.
LIMITED = """
import resource, sys
import workflow_scripts.training.run, workflow_scripts.tasks.seq2seq.training_setup
import workflow_scripts.models.sq_transformer.model
from workflow_scripts.__main__ import main
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**29, used + 2**29))
sys.exit(main())
"""
# Ends by SIGKILL when the first file is hashed, where all others are written.
KILLED_AS_IT_WRITES = """
import os, signal, sys
from workflow_scripts.__main__ import main
from workflow_scripts.commands import evaluate, train
def kill(_):
    os.kill(os.getpid(), signal.SIGKILL)
evaluate.hash_files = train.hash_files = kill
sys.exit(main())
"""
LINE_START = "toy/transformer/default/seed-3: "
EVALUATION = {"splits": ["test"], "beam": 1, "max_length": 10, "batch_tokens": 500}


class Runs:
    """One toy run in a folder of its own for each test; `whole` is where it ran through
    undisturbed.
    """

    checkpoints = ("model", "test", "last")

    def __init__(self, folder: Path):
        self.folder = folder
        write_data(folder / "data")
        spec = toy_spec(max_steps=STEPS, validate_every=50, log_every=7, also_keep=["test", "last"])
        # SQ-Transformer has all the state there is: its codes move outside the optimiser, and it
        # draws masks.
        spec["model"] |= {"name": "sq_transformer", "codebook_gradient": False}
        spec["objective"] = {"name": "structural_quantisation"}
        (folder / "spec.json").write_text(json.dumps(spec))
        (folder / "evaluation.json").write_text(json.dumps(EVALUATION))
        self.whole = folder / "whole"
        began = time.monotonic()
        process = self.start(self.whole)
        assert process.wait() == 0, process.stderr.read()
        self.seconds = time.monotonic() - began
        self.evaluate(self.whole)

    def arguments(self, place: Path) -> list[str]:
        options = {
            "spec": self.folder / "spec.json",
            "data": self.folder / "data",
            "out": place / "out",
        }
        options |= {"state": place / "state", "save-every": 0.2}
        return [text for name, value in options.items() for text in (f"--{name}", str(value))]

    def start(self, place: Path) -> subprocess.Popen[str]:
        line = command("train", *self.arguments(place))
        return subprocess.Popen(
            line, cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True
        )

    def finish(self, place: Path) -> str:
        """Continue the run to its end in this process, which has loaded torch already; returns what
        it said.
        """
        with redirect_stderr(StringIO()) as said:
            code = here("train", *self.arguments(place))
        assert code == 0, said.getvalue()
        return said.getvalue()

    def evaluation(self, place: Path) -> list[str]:
        options = (
            "--run-dir",
            place / "out",
            "--data",
            self.folder / "data",
            "--out",
            place / "out/eval",
        )
        return [*map(str, options), "--settings", str(self.folder / "evaluation.json")]

    def evaluate(self, place: Path) -> None:
        assert here("evaluate", *self.evaluation(place)) == 0

    def assert_same_files(self, place: Path) -> None:
        """Every result of training, and of evaluation if there is one, is equal to the last bit."""
        results = [
            path.relative_to(place / "out") for path in (place / "out").rglob("*") if path.is_file()
        ]
        weights = {f"{name}.safetensors" for name in self.checkpoints}
        assert {*weights, "training.csv"} < {path.name for path in results}
        for path in results:
            if path.name != "record.json":  # which holds times
                assert (place / "out" / path).read_bytes() == (
                    self.whole / "out" / path
                ).read_bytes(), path

    def assert_same_as_whole(self, place: Path) -> dict:
        """The same, and no state is left; returns record.json."""
        self.assert_same_files(place)
        assert not (place / "state").exists()
        return json.loads((place / "out/record.json").read_text())


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    return Runs(tmp_path_factory.mktemp("runs"))


def steps(place: Path) -> set[str]:
    return {path.name for path in (place / "state").glob("step-*")}


def wait_for_new_state(process: subprocess.Popen, place: Path) -> None:
    """Until the process has saved a state; it must not end before."""
    before = steps(place)
    while not steps(place) - before:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)


@pytest.mark.faults
def test_killed_at_random_moments_a_run_ends_with_the_same_bytes(runs, tmp_path):
    seed = random.randrange(2**32)
    print(f"moments drawn with seed {seed}")  # pytest shows it when the test fails
    draw = random.Random(seed)
    for _ in range(3):
        process = runs.start(tmp_path)
        wait_for_new_state(process, tmp_path)
        time.sleep(draw.uniform(0, 0.15))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    runs.finish(tmp_path)
    runs.evaluate(tmp_path)
    assert (tmp_path / "out/eval/scores.csv").exists()
    assert runs.assert_same_as_whole(tmp_path)["resumed"] == 3


@pytest.mark.quick_faults
def test_killed_anywhere_between_start_and_end_a_run_ends_with_the_same_bytes(runs, tmp_path):
    """At a random moment from its imports to the renaming of its results, and at one while these
    are being written.
    """
    seed = random.randrange(2**32)
    print(f"moments drawn with seed {seed}")
    draw = random.Random(seed)
    killed = 0
    for trial in range(2):
        process = runs.start(tmp_path)
        if trial % 2:
            while f"step-{STEPS}" not in steps(tmp_path) and process.poll() is None:
                time.sleep(0.005)
            time.sleep(draw.uniform(0, 0.3))
        else:
            time.sleep(draw.uniform(0, runs.seconds))
        process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        if (tmp_path / "out/run.json").exists():
            runs.assert_same_files(tmp_path)
    assert killed
    runs.finish(tmp_path)
    runs.evaluate(tmp_path)
    runs.assert_same_as_whole(tmp_path)


@pytest.mark.faults
def test_a_killed_evaluation_leaves_nothing_or_all(runs, tmp_path):
    shutil.copytree(runs.whole / "out", tmp_path / "out", ignore=shutil.ignore_patterns("eval"))
    seed = random.randrange(2**32)
    print(f"moments drawn with seed {seed}")
    draw, began = random.Random(seed), time.monotonic()
    runs.evaluate(tmp_path)
    seconds = time.monotonic() - began
    for _ in range(6):
        shutil.rmtree(tmp_path / "out/eval", ignore_errors=True)
        line = command("evaluate", *runs.evaluation(tmp_path))
        process = subprocess.Popen(line, cwd=ROOT, env=environment(), stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(0.5, 1.1) * seconds)
        process.kill()
        process.wait()
        if (tmp_path / "out/eval").exists():
            runs.assert_same_files(tmp_path)
    runs.evaluate(tmp_path)
    runs.assert_same_files(tmp_path)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        path.name for path in (runs.whole / "out").iterdir()
    }


@pytest.mark.quick_faults
def test_an_evaluation_killed_while_it_writes_does_not_block_the_training(runs, tmp_path):
    """What it has left in the folder of the run is deleted, and the run is trained again."""
    shutil.copytree(runs.whole / "out", tmp_path / "out", ignore=shutil.ignore_patterns("eval"))
    line = [sys.executable, "-c", KILLED_AS_IT_WRITES, "evaluate", *runs.evaluation(tmp_path)]
    process = subprocess.run(line, cwd=ROOT, env=environment(), stderr=subprocess.DEVNULL)
    assert process.returncode == -signal.SIGKILL
    assert [path.name[:6] for path in (tmp_path / "out").glob(".*")] == [".eval."]
    runs.finish(tmp_path)
    runs.evaluate(tmp_path)
    runs.assert_same_as_whole(tmp_path)
    assert not list((tmp_path / "out").glob(".*"))


@pytest.mark.quick_faults
def test_what_killed_trainings_of_a_run_have_left_is_deleted_when_it_is_trained(runs, tmp_path):
    """Half-written results, and states of other settings, but for one that a process holds."""
    line = [sys.executable, "-c", KILLED_AS_IT_WRITES, "train", *runs.arguments(tmp_path)]
    process = subprocess.run(line, cwd=ROOT, env=environment(), stderr=subprocess.DEVNULL)
    assert process.returncode == -signal.SIGKILL
    assert [path.name[:5] for path in tmp_path.glob(".*")] == [".out."]
    states = tmp_path / f"state/{LINE_START.removesuffix(': ')}"
    old, held, own = (states / (digit * 16) for digit in "abc")
    interventions = states / "interventions"
    for folder in (old, held):
        shutil.copytree(tmp_path / "state", folder, ignore=shutil.ignore_patterns("toy"))
    interventions.mkdir()
    arguments = runs.arguments(tmp_path)
    arguments[arguments.index(str(tmp_path / "state"))] = str(own)
    with StateFolder(held, {}).lock():
        assert here("train", *arguments) == 0
        assert set(states.iterdir()) == {held, interventions}
    runs.assert_same_files(tmp_path)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.faults
def test_out_of_memory_is_one_line(runs, tmp_path):
    """The process may allocate 512 MB more than it needs to start, as under the limit of a job or a
    container.
    """
    spec = json.loads((runs.folder / "spec.json").read_text())
    spec["model"] |= {"width": 4096, "feed_forward": 32768}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    arguments = [
        text.replace(str(runs.folder / "spec.json"), str(tmp_path / "spec.json"))
        for text in runs.arguments(tmp_path)
    ]
    line = [sys.executable, "-c", LIMITED, "train", *arguments]
    done = subprocess.run(line, cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert_one_line_error(done, "memory")
    assert not (tmp_path / "out").exists()


@pytest.mark.quick_faults
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)],
)
def test_asked_to_stop_it_saves_and_says_that_the_same_command_goes_on(
    runs, tmp_path, number, code
):
    process = runs.start(tmp_path)
    wait_for_new_state(process, tmp_path)
    process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == code
    last = said.splitlines()[-1]
    assert last.startswith(f"{LINE_START}stopped at step ") and last.endswith(
        "run the same command again to continue"
    )
    stopped_at = last.split("step ")[1].split(",")[0]
    assert f"step-{stopped_at}" in steps(tmp_path)
    assert (
        f"stopped by signal {number} at step {stopped_at}"
        in (tmp_path / "state/log.txt").read_text()
    )
    assert not (tmp_path / "out").exists()

    said = runs.finish(tmp_path)
    assert said.startswith(f"{LINE_START}resumes after {stopped_at} of {STEPS} steps")
    assert all(line.startswith(LINE_START) for line in said.splitlines())
    assert runs.assert_same_as_whole(tmp_path)["resumed"] == 1


@pytest.mark.faults
def test_asked_to_stop_in_its_last_step_or_after_it_the_next_call_writes_the_results(
    runs, tmp_path
):
    """The signal comes when the last state is being saved, or the results are being written."""
    for _ in range(5):  # it may have ended before the signal arrives
        process = runs.start(tmp_path)
        while process.poll() is None and not list(tmp_path.glob(f"state/*step-{STEPS}*")):
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        process.communicate()
        if process.returncode:
            break
        runs.assert_same_as_whole(tmp_path)
        shutil.rmtree(tmp_path / "out")
    assert process.returncode == 143
    assert f"step-{STEPS}" in steps(tmp_path) and [path.name for path in tmp_path.iterdir()] == [
        "state"
    ]

    assert f"resumes after {STEPS} of {STEPS} steps" in runs.finish(tmp_path)
    assert runs.assert_same_as_whole(tmp_path)["resumed"] == 1


@pytest.mark.quick_faults
def test_a_second_process_on_the_same_state_is_refused_and_the_first_goes_on(
    runs, tmp_path, capsys
):
    first = runs.start(tmp_path)
    wait_for_new_state(first, tmp_path)
    first.send_signal(signal.SIGSTOP)
    assert here("train", *runs.arguments(tmp_path)) == 1
    assert_one_error(
        capsys.readouterr().err, str(tmp_path / "state"), f"in use by process {first.pid}"
    )
    first.send_signal(signal.SIGCONT)
    assert first.wait() == 0
    runs.assert_same_as_whole(tmp_path)
