import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from workflow_scripts.__main__ import main
from workflow_scripts.catalogue.loading import _catalogue, load_catalogue, load_config
from workflow_scripts.catalogue.requested import requested_runs
from workflow_scripts.catalogue.run_specs import _resolved, resolve_run
from workflow_scripts.catalogue.runs import Run
from workflow_scripts.data.sources import load_repositories
from workflow_scripts.planning import resources
from workflow_scripts.planning.hours import hours
from workflow_scripts.planning.plan import STEP_TIME_COLUMNS, timed_spec
from workflow_scripts.planning.step_times import checkpoint_bytes, seconds_per_step
from workflow_scripts.schema import Training

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what plan reads, without recorded step times, as the working directory."""
    for folder in ("catalogue", "papers"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "catalogue/step_times.csv").unlink(missing_ok=True)
    shutil.copy(ROOT / "config.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    _catalogue.cache_clear()
    return tmp_path


def write_run(project: Path, name: str, device: str, seconds: float) -> None:
    """A finished training of `name` at the demo scale, as far as `plan --record` reads it."""
    folder = project / "results/demo/runs" / name
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "checkpoint/model.safetensors").write_bytes(b"x" * 2_000_000)
    task, method, variant, _ = name.split("/")
    run = {"scale": "demo", "device": device, "cpu": "x86", "seconds_per_step": seconds}
    spec = resolve_run(load_catalogue(), name, "demo")
    run["spec"] = {"task": task, "method": method, "variant": variant} | {
        key: spec[key] for key in ("model", "training")
    }
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
    # Nothing is recorded: an upper estimate of every run, on either kind of device.
    assert len(re.findall(rf"at most [\d,]+ \({count} runs\)", done.stdout)) == 2
    assert "unknown size" not in done.stdout.partition("of checkpoints")[0].rpartition("\n")[2]
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
    assert hours(load_catalogue(), [run, run], "demo", "fp32", "cpu") == (pytest.approx(2 * steps * 0.6 / 3600), 0, 0)
    # Nothing like it was measured there: two layers, 4 ms each, take longest of what is counted.
    by_sizes = pytest.approx(2 * 0.004 * steps / 3600)
    assert hours(load_catalogue(), [run], "demo", "fp32", "cuda") == (0, by_sizes, 1)
    capsys.readouterr()
    assert main(["plan"]) == 0
    assert "of CPU threads" in capsys.readouterr().out


def recorded(name: str, seconds: float, scale: str = "paper", checkpoint: int = 0) -> dict[str, str]:
    """A row of step_times.csv, measured on a CPU."""
    names = dict(zip(("task", "method", "variant"), name.split("/"), strict=True))
    return {
        "scale": scale,
        **names,
        "device": "cpu",
        "seconds_per_step": str(seconds),
        "checkpoint_bytes": str(checkpoint),
    }


def test_a_run_without_a_record_takes_the_time_of_its_method_on_like_data_at_the_scale():
    times = [
        recorded("scan-jump-x2/sq-transformer/sal", 4, checkpoint=40),
        recorded("scan-around-right/sq-transformer/sal", 6, checkpoint=41),
        recorded("scan-jump-x2/sq-transformer/srl", 9, checkpoint=39),
        recorded("cognition/sq-transformer/srl", 50, checkpoint=200),
        recorded("scan-jump-x2/sq-transformer/sal", 0.5, scale="small"),
        recorded("scan-jump-x2/a-method-of-old/sal", 70),
        recorded("scan-jump-x2/sq-transformer/a-variant-of-old", 70),
        recorded("a-task-of-old/sq-transformer/sal", 70),
    ]

    def seconds(name: str, scale: str = "paper", device: str = "cpu") -> float | None:
        return seconds_per_step(times, Run(*name.split("/"), seed=1), scale, device)

    assert seconds("scan-jump-x2/sq-transformer/sal") == 4
    assert seconds("scan-jump-x2/sq-transformer/sal", "small") == 0.5
    assert seconds("scan-jump-x2-clean/sq-transformer/sal") == 5
    assert seconds("scan-jump-x2/sq-transformer/codes-12") == 6  # the median of the three, whose models are as large
    assert seconds("cogs/sq-transformer/srl") is None  # a model as large as SCAN's, on other data
    assert seconds("wmt17-en-de/sq-transformer/srl") is None  # as large as CoGnition's, with many more words
    assert seconds("scan-jump-x2/transformer/default") is None
    assert seconds("scan-jump-x2/sq-transformer/sal", device="cuda") is None
    size = {
        name: checkpoint_bytes(times, Run(name, "sq-transformer", "sal", 1), "paper") for name in ("scan-jump", "cogs")
    }
    assert size == {"scan-jump": 41, "cogs": None}


def test_a_model_of_another_size_is_no_record_of_the_scale(project: Path, capsys: pytest.CaptureFixture[str]):
    write_run(project, "scan-jump-x2/transformer/default/seed-1", "cpu", 0.5)
    file = project / "results/demo/runs/scan-jump-x2/transformer/default/seed-1/run.json"
    run = json.loads(file.read_text())
    file.write_text(json.dumps(run | {"scale": "paper"}))
    assert main(["plan", "--record"]) == 1
    assert "run.json: its model or batches are not of the size of the scale paper; delete it" in capsys.readouterr().err
    assert not Path("catalogue/step_times.csv").exists()


def test_a_few_steps_of_a_large_run_give_its_hours(project: Path, capsys: pytest.CaptureFixture[str]):
    """`plan --timing`, `train --spec`, `plan --record`: the small model stands for one that would take days."""
    name = "scan-jump-x2/transformer/default/seed-1"
    assert main(["prepare", "--task", "scan-jump-x2", "--scale", "demo", "--out", "data"]) == 0
    capsys.readouterr()
    assert main(["plan", "--scale", "demo", "--timing", name]) == 0
    Path("spec.json").write_text(capsys.readouterr().out)
    given = ["--spec", "spec.json", "--scale", "demo", "--data", "data", "--device", "cpu", "--progress", "none"]
    places = ["--state", "state", "--out", f"timings/demo/runs/{name}"]
    command = [sys.executable, "-m", "workflow_scripts", "train", *given, *places]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
    assert len(Path(f"timings/demo/runs/{name}/training.csv").read_text().splitlines()) > 1
    assert main(["plan", "--record", "--results", "timings"]) == 0
    with open("catalogue/step_times.csv", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["scale"], row["device"]) == ("demo", "cpu")
    found = hours(load_catalogue(), [Run("scan-jump-x2", "transformer", "default", 9)], "demo", "fp32", "cpu")
    total, at_most, reckoned = found
    assert at_most == reckoned == 0 < total
    assert total == pytest.approx(100 * float(row["seconds_per_step"]) / 3600)


def test_hours_are_those_of_threads_on_a_cpu(project: Path):
    """At `paper` a training has two threads."""
    row = {**recorded("scan-jump-x2/transformer/default", 0.5), "cpu": "x86"}
    with open("catalogue/step_times.csv", "w", newline="") as stream:
        writer = csv.DictWriter(stream, STEP_TIME_COLUMNS)
        writer.writeheader()
        writer.writerows([row, row | {"device": "cuda", "seconds_per_step": "0.25"}])
    run, steps = Run("scan-jump-x2", "transformer", "default", 1), 100_000
    assert hours(load_catalogue(), [run], "paper", "fp32", "cpu") == (pytest.approx(2 * 0.5 * steps / 3600), 0, 0)
    assert hours(load_catalogue(), [run], "paper", "fp32", "cuda") == (pytest.approx(0.25 * steps / 3600), 0, 0)


def test_downloads_count_the_models_of_the_hub(project: Path, capsys: pytest.CaptureFixture[str]):
    """By what repositories store: 4 bytes a parameter, or 2. One that is there is not counted."""
    folder = project / "results/downloads/models/google/gemma-2b"
    folder.mkdir(parents=True)
    (folder / "model.json").write_text("{}")
    assert main(["plan", "--scale", "paper", "--papers", "carma"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"  download   .* in 4 files, 19\.9 GB in 6 models\n", said)
    assert "   3.2 GB: openai-community/gpt2-large of the Hugging Face hub\n" in said
    assert "   6.4 GB: meta-llama/Llama-3.2-3B of the Hugging Face hub, gated\n" in said
    assert "gemma" not in said.split("training")[0]


def test_sizes_of_repositories_agree_with_their_parameters():
    """4 or 2 bytes a number, and a tenth more for GPT-2's masks."""
    models = {name: model for name, model in load_repositories().items() if model.parameters}
    assert len(models) == 7
    for name, model in models.items():
        stored = 4 if "gpt2" in name else 2
        assert 0.99 * stored <= model.bytes / model.parameters <= 1.11 * stored, name
    assert all(model.bytes for model in load_repositories().values() if model.kind == "model")


def test_show_says_where_each_value_comes_from(project: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--scale", "small", "--show", "scan-jump-x2/sq-transformer/codes-12/seed-1"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["model.source_codes"].endswith("catalogue/methods.yaml sq-transformer.variants.codes-12")
    assert lines["model.source_codes"].split()[1] == "12"
    assert lines["model.width"].endswith("catalogue/scales.yaml small")
    assert lines["data.options.atomic_copies"].split()[1:] == ["1000", "catalogue/tasks.yaml", "scan-jump-x2"]


def test_nothing_to_record_and_unknown_names_are_one_line(project: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--record"]) == 1
    assert capsys.readouterr().err == "error: no finished run under results; train some first with ./reproduce\n"
    assert main(["plan", "--scale", "smal"]) == 1
    assert "did you mean 'small'?" in capsys.readouterr().err
    assert main(["plan", "--show", "scan-jump-x2/transformer/sinus/seed-1"]) == 1
    assert "did you mean 'sinusoidal'?" in capsys.readouterr().err
    assert main(["plan", "--cluster", "profiles/mine"]) == 1
    assert "profiles/mine: no profile.yaml there; take profiles/slurm-gpus" in capsys.readouterr().err


def test_cluster_plan_asks_for_what_the_runs_need(project: Path, capsys: pytest.CaptureFixture[str]):
    """Measured runs by their time and size, others by a guess that is said; GPUs in the form of the profile."""
    shutil.copytree(ROOT / "profiles", project / "profiles")
    for seed in (1, 2):
        write_run(project, f"scan-jump-x2/transformer/default/seed-{seed}", "cuda", 120)
    assert main(["plan", "--record"]) == 0
    resources.reckoned.cache_clear()
    capsys.readouterr()
    assert main(["plan", "--scale", "demo", "--cluster", "profiles/slurm-gres"]) == 0
    said = capsys.readouterr().out
    rows = {tuple(line.split()) for line in said.splitlines()}
    # 100 steps of 120 s, three times over, and half an hour; a checkpoint of 2 MB.
    assert any(row[0] == "train" and row[2:] == ("1", "1", "5", "GB", "10:30") for row in rows)
    assert any(row[0] == "train" and row[2:] == ("1", "1", "5", "GB", "1:00", "by", "estimate") for row in rows)
    assert any(row[0] == "search" and row[2] == "1" for row in rows)
    assert "-t 630 --mem 5000 " in said and "--gres=gpu:1" in said and "--gpus" not in said
    resources.reckoned.cache_clear()
    # By its name alone too, as ./reproduce takes it.
    assert main(["plan", "--scale", "demo", "--cluster", "slurm-gres"]) == 0
    assert capsys.readouterr().out == said.replace("profiles/slurm-gres", "slurm-gres")
    assert main(["plan", "--cluster", "profiles/default"]) == 1
    assert "key 'executor' is not slurm" in capsys.readouterr().err


def test_cluster_plan_names_the_searches_and_what_they_alone_start_from(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    """As many as `plan` counts; none longer than a day, since it goes on where it was stopped."""
    shutil.copytree(ROOT / "profiles", project / "profiles")
    where = ["plan", "--scale", "paper", "--papers", "cat"]
    assert main(where) == 0
    counted = re.findall(r"(\d+) (search|train)\b", capsys.readouterr().out)
    assert {rule for _, rule in counted} == {"search", "train"}
    assert main([*where, "--cluster", "profiles/slurm-gres"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    for number, rule in counted:
        assert sum(int(row[1]) for row in rows if row[:1] == [rule]) == int(number) > 100
    hours = [int(row[6].split(":")[0]) for row in rows if row[:1] == ["search"]]
    assert 0 < max(hours) <= 24
    assert not [row for row in rows if row[:1] == ["sbatch"] and "--gpus" in " ".join(row)]


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
    _catalogue.cache_clear()


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
    _catalogue.cache_clear()
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


@pytest.mark.parametrize("name", ["scan-jump-x2/sq-transformer/sal", "cogs/transformer/default", "sst/gpt2-small/ft"])
def test_a_run_that_is_timed_has_settings_that_go_together(name):
    """Also where the learning rate of the whole run falls for longer than the timing lasts."""
    training = timed_spec(load_catalogue(ROOT), f"{name}/seed-1", "small", "auto")["training"]
    settings = Training.model_validate(training | {"betas": tuple(training["betas"])})
    assert settings.max_steps < 100 and not settings.also_keep
