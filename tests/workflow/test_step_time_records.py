"""plan --record: which runs count, and the time of those that shared a device with others."""

import json
import shutil
from pathlib import Path

import pytest

from tests.config.as_json import resolve_run
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_csv
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.workflow import step_time_records
from workflow_scripts.workflow.step_time_records import record_step_times
from workflow_scripts.workflow.step_times import STEP_TIME_COLUMNS, STEP_TIMES

VARIANT = "scan-jump-x2/transformer/default"


@pytest.fixture(autouse=True)
def times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty table of step times in the place of that of the catalogue."""
    file = tmp_path / "times.csv"
    file.write_text(",".join(STEP_TIME_COLUMNS) + "\n")
    monkeypatch.setattr(step_time_records, "STEP_TIMES", file)
    return file


def write_run(results: Path, seed: int, seconds: float = 0.01, processes: int | None = 1) -> Path:
    """A finished training on a GPU, as far as its time is read. Returns its folder."""
    name = f"{VARIANT}/seed-{seed}"
    folder = results / "demo/runs" / name
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "checkpoint/model.safetensors").write_bytes(b"x" * 1000)
    record = {"device": "cuda", "precision": "fp32", "cpu": "x86", "seconds_per_step": seconds}
    record |= {"peak_gpu_memory_bytes": 10 * seed, "gpu_processes": processes}
    (folder / "record.json").write_text(json.dumps(record))
    spec = resolve_run(load_catalogue(), name, "demo")
    (folder / "run.json").write_text(json.dumps({"scale": "demo", "spec": spec, "steps": 9}))
    return folder


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        # three alone, and one that shared the GPU with 14 others
        ([(0.01, 1), (0.012, 1), (0.011, 1), (0.06, 15)], ("1", "0.011")),
        ([(0.01, 1), (0.06, 15), (0.07, 15)], ("15", "0.065")),
        ([(0.06, 15), (0.01, 1)], ("1", "0.01")),
        # unknown: nvidia-smi did not answer
        ([(0.05, None), (0.06, None), (0.01, 3)], ("3", "0.01")),
        ([(0.05, None), (0.07, None)], ("", "0.06")),
    ],
)
def test_the_time_is_of_runs_that_shared_the_gpu_with_as_many_others(
    runs: list, expected: tuple[str, str], tmp_path: Path, times: Path
):
    for seed, (seconds, processes) in enumerate(runs, start=1):
        write_run(tmp_path / "results", seed, seconds, processes)
    record_step_times(load_catalogue(), tmp_path / "results", gpu_speed=1.0)
    (row,) = read_csv(times)
    assert (row["processes"], row["seconds_per_step"]) == expected
    assert row["gpu_bytes"] == str(10 * len(runs)), "the most memory of all of them"


@pytest.mark.parametrize("part", ["task", "method", "variant"])
def test_runs_of_former_names_and_without_weights_are_skipped(
    part: str, tmp_path: Path, times: Path, capsys: pytest.CaptureFixture[str]
):
    results = tmp_path / "results"
    write_run(results, 1)
    names = dict(zip(("task", "method", "variant"), VARIANT.split("/"), strict=True))
    former = results / "demo/runs" / "/".join((names | {part: "former"}).values()) / "seed-2"
    shutil.move(write_run(results, 2), former)
    content = json.loads((former / "run.json").read_text())
    content["spec"][part] = "former"
    (former / "run.json").write_text(json.dumps(content))
    shutil.rmtree(write_run(results, 3, seconds=5) / "checkpoint")
    record_step_times(load_catalogue(), results, gpu_speed=1.0)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "2 runs skipped: not in the catalogue, or without weights"
    (row,) = read_csv(times)
    assert (row["task"], row["seconds_per_step"]) == ("scan-jump-x2", "0.01")


def test_without_a_run_that_counts_the_table_stays(
    tmp_path: Path, times: Path, capsys: pytest.CaptureFixture[str]
):
    before = times.read_bytes()
    shutil.rmtree(write_run(tmp_path / "results", 1) / "checkpoint")
    with pytest.raises(UserError, match=r"^no finished run under .*/results; train some first"):
        record_step_times(load_catalogue(), tmp_path / "results", gpu_speed=1.0)
    assert capsys.readouterr().out.startswith("1 run skipped: ")
    assert times.read_bytes() == before
    assert times != STEP_TIMES
