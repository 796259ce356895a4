import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from workflow_scripts.__main__ import main
from workflow_scripts.catalogue import Run, _resolved, load_catalogue, load_config, requested_runs
from workflow_scripts.planning import resources
from workflow_scripts.planning.plan import STEP_TIME_COLUMNS, hours, seconds_per_step
from workflow_scripts.planning.step_times import checkpoint_bytes

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what plan reads, without recorded step times, as the working directory."""
    for folder in ("catalogue", "papers"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "catalogue/step_times.csv").unlink(missing_ok=True)
    shutil.copy(ROOT / "config.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    load_catalogue.cache_clear()
    return tmp_path


def write_run(project: Path, name: str, device: str, seconds: float) -> None:
    """A finished training of `name` at the demo scale, as far as `plan --record` reads it."""
    folder = project / "results/demo/runs" / name
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "checkpoint/model.safetensors").write_bytes(b"x" * 2_000_000)
    task, method, variant, _ = name.split("/")
    run = {"scale": "demo", "device": device, "cpu": "x86", "seconds_per_step": seconds}
    run["spec"] = {"task": task, "method": method, "variant": variant}
    (folder / "run.json").write_text(json.dumps(run))


def test_the_plan_counts_the_requested_runs_and_imports_no_torch(project: Path):
    code = (
        "import sys; from workflow_scripts.__main__ import main; status = main(['plan', '--scale', 'paper']); "
        "assert not {'torch', 'pandas', 'numpy', 'transformers'} & set(sys.modules); sys.exit(status)"
    )
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    count = len(requested_runs(load_catalogue(), load_config({"scale": "paper"})))
    assert f"runs       {count}\n" in done.stdout
    assert f"{count} train, {count} evaluate" in done.stdout
    assert f"+ {count} unknown hours of CPU" in done.stdout
    assert "about 90 GB to make large data sets" in done.stdout


def test_step_times_are_recorded_and_used(project: Path, capsys: pytest.CaptureFixture[str]):
    for seed, seconds in ((1, 0.5), (2, 0.7), (3, 0.6)):
        write_run(project, f"scan-jump-x2/transformer/default/seed-{seed}", "cpu", seconds)
    assert main(["plan", "--record"]) == 0
    with open("catalogue/step_times.csv", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert tuple(row) == STEP_TIME_COLUMNS
    assert (row["seconds_per_step"], row["checkpoint_bytes"]) == ("0.6", "2000000")

    steps = 100  # of the demo
    run = Run("scan-jump-x2", "transformer", "default", 9)
    assert hours(load_catalogue(), [run, run], "demo", "fp32", "cpu") == (pytest.approx(2 * steps * 0.6 / 3600), 0)
    assert hours(load_catalogue(), [run], "demo", "fp32", "cuda") == (0, 1)
    capsys.readouterr()
    assert main(["plan"]) == 0
    assert "of CPU threads" in capsys.readouterr().out


def test_a_task_without_a_record_takes_the_methods_time_at_the_scale():
    times = [
        {"scale": "small", "task": "cogs", "method": "m", "variant": "a", "device": "cpu", "seconds_per_step": "2"},
        {"scale": "small", "task": "scan", "method": "m", "variant": "a", "device": "cpu", "seconds_per_step": "4"},
        {"scale": "small", "task": "scan", "method": "m", "variant": "b", "device": "cpu", "seconds_per_step": "9"},
        {"scale": "paper", "task": "scan", "method": "m", "variant": "a", "device": "cpu", "seconds_per_step": "50"},
    ]
    assert seconds_per_step(times, Run("scan", "m", "a", 1), "small", "cpu") == 4
    assert seconds_per_step(times, Run("other", "m", "a", 1), "small", "cpu") == 3
    assert seconds_per_step(times, Run("other", "m", "c", 1), "small", "cpu") == 4
    assert seconds_per_step(times, Run("other", "n", "a", 1), "small", "cpu") is None
    assert seconds_per_step(times, Run("scan", "m", "a", 1), "small", "cuda") is None


def test_show_says_where_each_value_comes_from(project: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--scale", "small", "--show", "scan-jump-x2/sq-transformer/codes-12/seed-1"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["model.source_codes"].endswith("catalogue/methods.yaml sq-transformer.variants.codes-12")
    assert lines["model.source_codes"].split()[1] == "12"
    assert lines["model.width"].endswith("catalogue/scales.yaml small")


def test_nothing_to_record_and_unknown_names_are_one_line(project: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--record"]) == 1
    assert capsys.readouterr().err == "error: no finished run under results; train some first with ./reproduce\n"
    assert main(["plan", "--scale", "smal"]) == 1
    assert "did you mean 'small'?" in capsys.readouterr().err
    assert main(["plan", "--show", "scan-jump-x2/transformer/sinus/seed-1"]) == 1
    assert "did you mean 'sinusoidal'?" in capsys.readouterr().err


def test_cluster_plan_asks_for_what_the_runs_need(project: Path, capsys: pytest.CaptureFixture[str]):
    """Measured runs by their time and size, others by a guess that is said; GPUs in the form of the profile."""
    shutil.copytree(ROOT / "profiles", project / "profiles")
    for seed in (1, 2):
        write_run(project, f"scan-jump-x2/transformer/default/seed-{seed}", "cpu", 120)
    assert main(["plan", "--record"]) == 0
    resources.reckoned.cache_clear()
    capsys.readouterr()
    assert main(["plan", "--scale", "demo", "--cluster", "profiles/slurm-gres"]) == 0
    said = capsys.readouterr().out
    rows = {tuple(line.split()) for line in said.splitlines()}
    # 100 steps of 120 s, three times over, and half an hour; a checkpoint of 2 MB.
    assert any(row[0] == "train" and row[2:] == ("1", "1", "5", "GB", "10:30") for row in rows)
    assert any(row[0] == "train" and row[2:] == ("1", "1", "5", "GB", "1:00", "by", "estimate") for row in rows)
    assert "-t 630 --mem 5000 " in said and "--gres=gpu:1" in said and "--gpus" not in said
    resources.reckoned.cache_clear()
    assert main(["plan", "--cluster", "profiles/default"]) == 1
    assert "key 'executor' is not slurm" in capsys.readouterr().err


def test_models_of_the_hub_are_known_by_their_parameters():
    """3.2 billion float32 parameters, and copies of them in host memory."""
    llama = Run("idm", "llama-large", "carma", seed=42)
    size = checkpoint_bytes([], llama, "paper")
    assert size == 4 * 3_212_749_824
    assert checkpoint_bytes([], Run("idm", "llama-large", "carma", seed=21), "small") is None
    asked = resources.training(llama, "paper", "cuda")
    assert asked.mem_mb == 107_000 and asked.estimated
    # 38 GB of state: twice what it takes to write it at 100 MB a second.
    assert asked.save_seconds == 780 < asked.runtime * 60 / 2
    assert resources.scoring(llama, "paper", "cuda", attempt=2).mem_mb == 2 * 30_000


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Specs are kept by the names of runs: what a test makes of them is not for the others."""
    _resolved.cache_clear()
    resources.reckoned.cache_clear()
    yield
    _resolved.cache_clear()
    resources.reckoned.cache_clear()
    load_catalogue.cache_clear()


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize(("profile", "flag"), [("slurm-gpus", "--gpus={}"), ("slurm-gres", "--gres=gpu:{}")])
def test_cluster_plan_of_a_training_on_two_gpus(project: Path, capsys: pytest.CaptureFixture[str], profile, flag):
    """Two processes, with the cores and the memory of two; evaluation stays on one."""
    shutil.copytree(ROOT / "profiles", project / "profiles")
    scales = yaml.safe_load(Path("catalogue/scales.yaml").read_text())
    one = resources.training(Run("idm", "gpt2-small", "carma", 42), "paper", "cuda")
    resources.reckoned.cache_clear()
    _resolved.cache_clear()
    scales["paper"]["by_method"]["gpt2-small"]["training"] = {"gpus": 2}
    Path("catalogue/scales.yaml").write_text(yaml.safe_dump(scales))
    load_catalogue.cache_clear()
    assert main(["plan", "--scale", "paper", "--papers", "carma", "--cluster", f"profiles/{profile}"]) == 0
    said = capsys.readouterr().out
    lines = [line for line in said.splitlines() if flag.format(2) in line]
    assert lines and all("--nodes=1" in line and f"--cpus-per-task={2 * 2}" in line for line in lines)
    rows = [tuple(line.split()) for line in said.splitlines()]
    assert {row[2] for row in rows if row[:1] == ("train",)} == {"1", "2"}
    assert {row[2] for row in rows if row[:1] == ("evaluate",)} == {"1"}
    wildcards = SimpleNamespace(task="idm", method="gpt2-small", variant="carma", scale="paper")
    assert resources.gres(wildcards) == "gpu:2"
    two = resources.training(Run("idm", "gpt2-small", "carma", 42), "paper", "cuda")
    assert (two.gpu, two.threads) == (2, 2 * one.threads)
    # A process more, and weights, gradients and moments once more.
    assert two.mem_mb == pytest.approx(one.mem_mb + 4_000 + 4 * 4 * 124.4, abs=1_000)
