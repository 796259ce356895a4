"""The train command as a user meets it: what it writes, what it refuses and how it says so."""

import csv
import json
import math
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.config.as_json import resolve_data
from tests.provenance.fields import FIELDS
from tests.training.toy import (
    ROOT,
    assert_one_error,
    call,
    command,
    environment,
    run_main,
    stopping_at,
    toy_spec,
    write_data,
)
from workflow_scripts.__main__ import main
from workflow_scripts.commands.evaluate import hash_weights
from workflow_scripts.common.files import write_json
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.tasks.run_spec import read_run_spec
from workflow_scripts.training import loop


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Path:
    """A folder with data/, spec.json and the finished run out/."""
    folder = tmp_path_factory.mktemp("toy")
    write_data(folder / "data")
    (folder / "spec.json").write_text(json.dumps(toy_spec()))
    places = ("--data", folder / "data", "--out", folder / "out", "--state", folder / "state")
    result = call("train", "--spec", folder / "spec.json", *places)
    assert result.returncode == 0, result.stderr
    return folder


def train_here(toy: Path, tmp_path: Path, spec: Path) -> int:
    """Train on the toy's data in this process, which has loaded torch already; returns the exit
    code.
    """
    places = {"data": toy / "data", "out": tmp_path / "out", "state": tmp_path / "state"}
    return run_main("train", "--progress", "lines", spec=spec, **places)


def changed_spec(tmp_path: Path, **training: object) -> Path:
    """A spec file with other training settings."""
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(toy_spec(**training)))
    return path


def test_it_writes_weights_history_and_facts_and_removes_its_state(toy):
    written = (
        "checkpoint config.json model.safetensors record.json run.json training.csv vocabulary.json"
    )
    assert sorted(path.name for path in (toy / "out").rglob("*")) == written.split()
    assert not (toy / "state").exists()
    umask = os.umask(0o022)
    os.umask(umask)
    assert (toy / "out/checkpoint/model.safetensors").stat().st_mode & 0o777 == 0o666 & ~umask
    run, record = (
        json.loads((toy / "out" / name).read_text()) for name in ("run.json", "record.json")
    )
    assert run["run"] == "toy/transformer/default/seed-3"
    assert run["spec"] == read_run_spec(toy_spec(), "spec").to_json()
    assert run["steps"] == 60 and run["best_step"] in (25, 50, 60) and record["resumed"] == 0
    assert record["seconds_per_step"] * record["steps_per_second"] == pytest.approx(1)
    assert record["peak_memory_bytes"] > 1e8 and record["device"] == "cpu"
    assert set(FIELDS) <= record.keys()
    (attempt,) = record["attempts"]
    assert (attempt["first_step"], attempt["last_step"], attempt["started"]) == (
        1,
        60,
        record["started"],
    )
    assert all(attempt[name] == record[name] for name in ("peak_memory_bytes", "cpu_seconds"))
    assert attempt["gpu_processes"] is None and record["gpu_processes"] is None
    weights = load_file(toy / "out/checkpoint/model.safetensors")
    assert run["parameters"] == sum(tensor.numel() for tensor in weights.values())


def test_without_an_option_the_state_is_next_to_the_results(capsys, toy, tmp_path):
    arguments = ["train", "--spec", str(toy / "spec.json"), "--out", f"{tmp_path}/out"]
    assert main([*arguments, "--data", str(tmp_path / "none")]) == 1
    assert "none/dataset.json does not exist" in capsys.readouterr().err
    assert (tmp_path / "out.state").is_dir()
    assert main([*arguments, "--data", str(toy / "data"), "--device", "cpu"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_history_has_a_row_per_value_and_interval(toy):
    with open(toy / "out/training.csv") as stream:
        rows = list(csv.DictReader(stream))
    steps = {
        name: [int(row["step"]) for row in rows if row["name"] == name]
        for name in {row["name"] for row in rows}
    }
    every_ten, validations = [10, 20, 30, 40, 50, 60], [25, 50, 60]
    assert steps == {
        **dict.fromkeys(("loss", "word", "learning_rate", "gradient_norm"), every_ten),
        **dict.fromkeys(
            ("valid_exact_match", "valid_cross_entropy", "valid_log_likelihood"), validations
        ),
    }
    losses = [float(row["value"]) for row in rows if row["name"] == "loss"]
    assert losses[-1] < losses[0] / 1.5
    rates = [float(row["value"]) for row in rows if row["name"] == "learning_rate"]
    assert rates[:2] == [0.0025, 0.005] and rates[5] == pytest.approx(0.005 * math.sqrt(20 / 60))
    best = json.loads((toy / "out/run.json").read_text())["best_validation"]["exact_match"]
    assert best == max(float(row["value"]) for row in rows if row["name"] == "valid_exact_match")


def test_further_checkpoints_are_kept_where_the_settings_ask_for_them(toy, tmp_path):
    spec = changed_spec(tmp_path, also_keep=["test", "last"])
    assert train_here(toy, tmp_path, spec) == 0
    files = {
        name: tmp_path / f"out/checkpoint/{name}.safetensors" for name in ("model", "test", "last")
    }
    kept = {path.name for path in (tmp_path / "out/checkpoint").iterdir()}
    assert kept == {"config.json", "vocabulary.json", *(path.name for path in files.values())}
    # They change nothing about the training: the same weights are chosen at the same validations.
    assert files["model"].read_bytes() == (toy / "out/checkpoint/model.safetensors").read_bytes()
    with open(tmp_path / "out/training.csv") as stream:
        rows = list(csv.DictReader(stream))
    with open(toy / "out/training.csv") as stream:
        assert [row for row in rows if not row["name"].startswith("valid_test_")] == list(
            csv.DictReader(stream)
        )
    by_step = {
        int(row["step"]): float(row["value"])
        for row in rows
        if row["name"] == "valid_test_exact_match"
    }
    run = json.loads((tmp_path / "out/run.json").read_text())
    best = max(by_step, key=lambda step: (by_step[step], step))
    assert run["kept"] == {"test": {"step": best, "value": by_step[best]}}
    assert set(run["files"]) == {"training.csv", *(f"checkpoint/{name}" for name in kept)}
    # What starts from the run starts from the checkpoint that validation chose.
    assert hash_weights(tmp_path / "out/checkpoint") == hash_weights(toy / "out/checkpoint")
    last = load_file(files["last"])
    assert any(
        not tensor.equal(last[name]) for name, tensor in load_file(files["model"]).items()
    ) == (run["best_step"] != run["steps"])


def test_without_validation_the_training_is_the_same(toy, tmp_path):
    assert (
        train_here(toy, tmp_path, changed_spec(tmp_path, validation="none", also_keep=["last"]))
        == 0
    )
    model, last = (
        (tmp_path / f"out/checkpoint/{name}.safetensors").read_bytes() for name in ("model", "last")
    )
    assert model == last
    assert train_here(toy, tmp_path, changed_spec(tmp_path, also_keep=["last"])) == 0
    assert (tmp_path / "out/checkpoint/last.safetensors").read_bytes() == last


def test_further_checkpoints_are_of_sequence_to_sequence_tasks_and_of_splits_that_exist(
    capsys, toy, tmp_path
):
    assert train_here(toy, tmp_path, changed_spec(tmp_path, also_keep=["tset"])) == 1
    assert_one_error(capsys.readouterr().err, "tset.parquet does not exist")
    spec = toy_spec(also_keep=["last"], validation={"split": "valid", "metric": "log_likelihood"})
    spec |= {"kind": "language_modelling", "model": {"name": "causal_lm"}}
    (tmp_path / "changed.json").write_text(json.dumps(spec))
    assert train_here(toy, tmp_path, tmp_path / "changed.json") == 1
    assert_one_error(capsys.readouterr().err, "unknown key 'training.also_keep'")


def test_the_same_command_gives_the_same_bytes(toy, tmp_path):
    """Another process wrote the files that these are compared with."""
    assert train_here(toy, tmp_path, toy / "spec.json") == 0
    for name in ("training.csv", "checkpoint/model.safetensors"):
        assert (tmp_path / "out" / name).read_bytes() == (toy / "out" / name).read_bytes()


def test_weights_that_were_deleted_are_made_again_beside_their_scores(toy, tmp_path):
    """Other weights replace the scores, too."""
    run = tmp_path / "out"
    shutil.copytree(toy / "out", run)
    shutil.rmtree(run / "checkpoint")
    for name in ("eval/scores.csv", "interventions/scores.csv"):
        (run / name).parent.mkdir()
        (run / name).write_text("scores\n")
    assert train_here(toy, tmp_path, toy / "spec.json") == 0
    assert (run / "checkpoint/model.safetensors").is_file()
    assert (run / "eval/scores.csv").read_text() == "scores\n"
    assert (run / "interventions/scores.csv").stat().st_mtime >= (run / "run.json").stat().st_mtime
    manifest = json.loads((run / "run.json").read_text())
    manifest["files"]["checkpoint/model.safetensors"] = "of other weights"
    (run / "run.json").write_text(json.dumps(manifest))
    assert train_here(toy, tmp_path, toy / "spec.json") == 0
    assert not (run / "eval").exists() and not (run / "interventions").exists()


def test_a_training_loads_neither_pandas_nor_transformers(toy, tmp_path):
    """They would take longer than its other imports."""
    options = ("--spec", toy / "spec.json", "--data", toy / "data", "--out", tmp_path / "out")
    assert not {"pandas", "transformers", "scipy"} & modules_of(
        "train", *options, "--state", tmp_path / "state"
    )


def test_an_evaluation_loads_neither_torchs_compiler_nor_transformers(toy, tmp_path):
    settings = {"splits": ["test"], "beam": 1, "max_length": 10, "batch_tokens": 500}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    options = ("--run-dir", toy / "out", "--data", toy / "data", "--out", tmp_path / "eval")
    loaded = modules_of("evaluate", *options, "--settings", tmp_path / "settings.json")
    assert not {"torch._dynamo", "sympy", "transformers", "scipy", "matplotlib"} & loaded


def modules_of(*arguments: object) -> set[str]:
    """What a command has imported when it is done."""
    code = "import sys; from workflow_scripts.__main__ import main; assert main(sys.argv[1:]) == 0; print(*sys.modules)"
    line = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(line, cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_bf16_trains_too_and_differs(toy, tmp_path):
    assert train_here(toy, tmp_path, changed_spec(tmp_path, precision="bf16")) == 0
    assert (tmp_path / "out/training.csv").read_bytes() != (toy / "out/training.csv").read_bytes()
    weights = load_file(tmp_path / "out/checkpoint/model.safetensors")
    assert {str(tensor.dtype) for tensor in weights.values()} == {"torch.float32"}


@pytest.mark.parametrize(
    ("warmup", "warned"), [({"warmup_steps": 4}, True), ({"warmup_fraction": 0.5}, False)]
)
def test_a_warm_up_that_outlasts_the_run_is_a_warning(capsys, toy, tmp_path, warmup, warned):
    assert (
        train_here(toy, tmp_path, changed_spec(tmp_path, max_steps=4, validate_every=4, **warmup))
        == 0
    )
    said = capsys.readouterr().err
    assert said.count("warning: the warm-up of 4 steps is no shorter") == warned


@pytest.mark.slow
def test_on_a_terminal_there_is_a_bar_with_loss_speed_and_steps(toy, tmp_path):
    ours, theirs = pty.openpty()
    arguments = (
        "--spec",
        changed_spec(tmp_path, max_steps=400),
        "--data",
        toy / "data",
        "--out",
        tmp_path / "out",
    )
    line = command("train", *arguments, "--state", tmp_path / "state")
    terminal = {**environment(), "TERM": "xterm", "COLUMNS": "160"}
    process = subprocess.Popen(line, cwd=ROOT, env=terminal, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # Linux says so when the other side has closed
            break
    os.close(ours)
    assert process.wait() == 0
    text = shown.decode()
    assert "steps/s" in text and "loss" in text and "/400" in text and "exact_match" in text


def refused(capsys, toy: Path, tmp_path: Path, *parts: str, **places: Path | dict) -> None:
    """Train in this process is refused with one line that holds `parts`; `places` are options."""
    options = {
        "spec": toy / "spec.json",
        "data": toy / "data",
        "out": tmp_path / "out",
        "state": tmp_path / "state",
    }
    assert run_main("train", **{**options, **places}) == 1
    assert_one_error(capsys.readouterr().err, *parts)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"max_steps": -1}, ["training.max_steps", "greater than 0"]),
        ({"batch_token": 3}, ["unknown key 'training.batch_token'", "did you mean 'batch_tokens'"]),
        ({"precision": "fp8"}, ["training.precision", "'fp32', 'tf32' or 'bf16'"]),
        (
            {"validation": {"split": "valid", "metric": "accuracy"}},
            ["training.validation", "exact_match"],
        ),
        ({"validation": {"split": "dev", "metric": "exact_match"}}, ["dev.parquet does not exist"]),
        (
            {"validation": "none", "also_keep": ["test"]},
            ["also_keep names a split, and validation none"],
        ),
        (
            {"also_keep": ["model"]},
            ["also_keep: 'model' is the name of the weights", "rename the split"],
        ),
        ({"batch_tokens": 5}, ["train.parquet", "training.batch_tokens"]),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(capsys, toy, tmp_path, changes, parts):
    refused(capsys, toy, tmp_path, *parts, spec=changed_spec(tmp_path, **changes))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *(
            (name, "missing")
            for name in ("train.parquet", "valid.parquet", "vocabulary.json", "dataset.json")
        ),
        *((name, "cut") for name in ("train.parquet", "valid.parquet", "vocabulary.json")),
    ],
)
def test_a_missing_or_broken_data_file_is_one_line_that_names_it(
    capsys, toy, tmp_path, name, damage
):
    path = shutil.copytree(toy / "data", tmp_path / "data") / name
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-50])
    refused(capsys, toy, tmp_path, str(path), data=tmp_path / "data")


@pytest.mark.parametrize(
    ("section", "content", "parts"),
    [
        ("model", {"name": "absent"}, ["model.name", "absent"]),
        ("objective", {"name": "no_such"}, ["objective.name", "no_such"]),
        ("model", {"layers": 1}, ["'model.name' is missing"]),
        ("objective", None, ["spec.json", "'objective'"]),
    ],
)
def test_a_spec_with_a_wrong_or_absent_part_is_one_line_that_names_it(
    capsys, toy, tmp_path, section, content, parts
):
    spec = toy_spec() | {section: content}
    if content is None:
        del spec[section]
    refused(capsys, toy, tmp_path, *parts, spec=spec)


def test_data_of_another_task_are_refused(capsys, toy, tmp_path):
    data = shutil.copytree(toy / "data", tmp_path / "data")
    (data / "dataset.json").write_text('{"task": "cogs"}')
    refused(capsys, toy, tmp_path, "contains the task cogs, but the run needs toy", data=data)


@pytest.mark.parametrize(
    ("command", "run", "scale", "of"),
    [
        ("train", "cogs/transformer/default/seed-1", "small", "demo"),
        ("search", "stsb-msrvid/bert/ft", "demo", "full"),
    ],
)
def test_data_of_another_scale_are_refused(capsys, monkeypatch, tmp_path, command, run, scale, of):
    """Else a run on stand-ins would be taken for one on the scale's own data."""
    monkeypatch.chdir(ROOT)
    task = run.split("/")[0]
    write_json(
        tmp_path / "dataset.json", {"task": task, "spec": resolve_data(load_catalogue(), task, of)}
    )
    line = [
        command,
        "--run",
        run,
        "--scale",
        scale,
        "--data",
        str(tmp_path),
        "--out",
        str(tmp_path / "out"),
    ]
    assert main([*line, *(("--init", str(tmp_path)) if command == "search" else ())]) == 1
    assert_one_error(
        capsys.readouterr().err, f"{tmp_path} is not the data of {task} at scale {scale}"
    )


def test_a_time_between_states_is_not_negative(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--spec", "x", "--data", "x", "--out", "x", "--save-every", "-5"])
    assert "argument --save-every: '-5' is not a number of seconds" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("run", "parts"),
    [
        (
            "scan-jump-x2/transformr/default/seed-1",
            ["no method 'transformr'", "did you mean 'transformer'"],
        ),
        ("scan-jump-x2/transformer/seed-1", ["<task>/<method>/<variant>/seed-<n>"]),
        ("scan-jump-x2/transformer/default/seed-x", ["<task>/<method>/<variant>/seed-<n>"]),
    ],
)
def test_an_unknown_run_is_one_line_with_the_nearest_known(
    capsys, monkeypatch, tmp_path, run, parts
):
    monkeypatch.chdir(ROOT)
    places = [
        "--data",
        str(tmp_path),
        "--out",
        str(tmp_path / "out"),
        "--state",
        str(tmp_path / "state"),
    ]
    assert main(["train", "--run", run, "--scale", "demo", *places]) == 1
    assert_one_error(capsys.readouterr().err, *parts)


def test_a_folder_with_other_files_is_not_replaced(capsys, toy, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/thesis.tex").write_text("x")
    refused(
        capsys, toy, tmp_path, "home contains thesis.tex", "another --out", out=tmp_path / "home"
    )
    refused(capsys, toy, tmp_path, "thesis.tex is a file", out=tmp_path / "home/thesis.tex")
    assert (tmp_path / "home/thesis.tex").read_text() == "x"


@pytest.mark.parametrize("place", ["out", "state"])
def test_a_folder_that_cannot_be_made_is_one_line(capsys, toy, tmp_path, place):
    (tmp_path / "file").write_text("")
    refused(capsys, toy, tmp_path, str(tmp_path / "file"), **{place: tmp_path / "file/inside/it"})


def test_an_infinite_loss_names_the_step_and_keeps_the_state_and_results_of_before(
    capsys, toy, tmp_path
):
    out = shutil.copytree(toy / "out", tmp_path / "out")
    before = (out / "run.json").read_bytes()
    spec = changed_spec(
        tmp_path, learning_rate=1e36, warmup_steps=10, validate_every=2, clip_norm=0.0
    )
    assert train_here(toy, tmp_path, spec) == 1
    error = capsys.readouterr().err
    assert_one_error(error, "the loss is ", " at step ", "before it", "training.learning_rate")
    assert (out / "run.json").read_bytes() == before
    step = int(error.split(" at step ")[1].split()[0])
    kept = [int(path.name.removeprefix("step-")) for path in (tmp_path / "state").glob("step-*")]
    assert all(saved < step for saved in kept)


def test_a_state_of_other_data_is_refused_in_one_line(capsys, monkeypatch, toy, tmp_path):
    spec = changed_spec(tmp_path, max_steps=10**6, validate_every=10)
    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(loop, "update_weights", stopping_at(12))
        train_here(toy, tmp_path, spec)
    kept = f"delete {tmp_path / 'state'}"
    refused(
        capsys,
        toy,
        tmp_path,
        "another data",
        kept,
        spec=spec,
        data=write_data(tmp_path / "other", seed=1),
    )
    refused(capsys, toy, tmp_path, "another spec", kept)


@pytest.mark.parametrize("place", ["state", "out"])
@pytest.mark.quick_faults
def test_a_full_disk_is_one_line_and_leaves_earlier_results(
    capsys, toy, tmp_path, small_disk, place
):
    places = {"state": tmp_path / "state", "out": tmp_path / "out", place: small_disk / place}
    options = {"spec": toy / "spec.json", "data": toy / "data", **places}
    out = shutil.copytree(toy / "out", places["out"])
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    disk = os.statvfs(small_disk)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(disk.f_bavail * disk.f_frsize - 80_000))  # the weights take more

    assert run_main("train", **options) == 1
    assert_one_error(capsys.readouterr().err, str(small_disk), "No space left on device")
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before

    filler.unlink()
    assert run_main("train", **options) == 0
    assert (out / "training.csv").read_bytes() == before[out / "training.csv"]
