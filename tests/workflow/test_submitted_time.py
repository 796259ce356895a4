"""The time of submitted jobs, which follows from step times or from counted FLOPs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from workflow_scripts.common.files import read_csv, write_csv
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.training.update_count import UpdateCount
from workflow_scripts.workflow import step_times
from workflow_scripts.workflow.gpu_hours import GpuHours
from workflow_scripts.workflow.submitted_time import estimate_submitted_seconds

ROOT = Path(__file__).parents[2]
PAWS = {"scale": "full", "task": "paws", "method": "bert", "variant": "ft", "seed": "seed-1"}
GIVEN = {"scale": "full", "task": "idm", "method": "gpt2-small", "variant": "ft@start"}
GIVEN |= {"seed": "seed-1"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the catalogue and without results."""
    for name in ("catalogue", "papers"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)


def make_estimates(flops: int, scale: str = "full") -> GpuHours:
    """Estimates in which each update has this number of FLOPs."""
    catalogue = load_catalogue()
    config = load_config({"scale": scale, "papers": list(catalogue.papers)})
    estimates = GpuHours(catalogue, config)
    count = UpdateCount(flops=flops, operations=10, parameters=7, memory=8, how="counted")
    estimates.counts = dict.fromkeys(estimates.counts, count)
    return estimates


@pytest.mark.parametrize(
    ("rule", "share"), [("train", 1.2), ("evaluate", 0.15), ("search", 20 * 1.2)]
)
def test_an_unmeasured_job_takes_the_upper_end_by_flops(rule: str, share: float):
    """4 epochs of 49,401 pairs in batches of 32, in fp32 at 9.9% of the peak, and a minute."""
    seconds = estimate_submitted_seconds(make_estimates(int(1e12)), rule, PAWS, "cuda")
    assert seconds == pytest.approx(share * 6176 * 1e12 / (0.099 * 67e12) + 60)


def test_what_cannot_be_estimated_is_unknown():
    estimates = make_estimates(int(1e12))
    assert estimate_submitted_seconds(estimates, "train", PAWS, "cpu") is None
    estimates.counts = {}  # a model that `plan --count` has not counted
    assert estimate_submitted_seconds(estimates, "train", PAWS, "cuda") is None
    small = make_estimates(int(1e12), scale="small")  # FLOPs are those of the papers' own models
    assert estimate_submitted_seconds(small, "train", PAWS | {"scale": "small"}, "cuda") is None


def test_a_task_without_sizes_is_unknown(monkeypatch: pytest.MonkeyPatch):
    estimates = make_estimates(int(1e12))
    task = estimates.catalogue.tasks["idm"]
    training = GIVEN | {"variant": "ft"}
    assert estimate_submitted_seconds(estimates, "train", training, "cuda")
    monkeypatch.setitem(estimates.catalogue.tasks, "idm", replace(task, sizes=None))
    estimates.hours.clear()
    assert estimate_submitted_seconds(estimates, "train", training, "cuda") is None


def test_given_weights_take_what_other_seeds_took_else_a_share_of_a_training():
    estimates = make_estimates(int(1e15))
    first = estimate_submitted_seconds(estimates, "evaluate", GIVEN, "cuda")
    train = estimate_submitted_seconds(estimates, "train", GIVEN | {"variant": "ft"}, "cuda")
    assert first and train
    assert first - 60 == pytest.approx((train - 60) * 0.15 / 1.2)
    folder = Path("results/full/runs/idm/gpt2-small/ft@start/seed-2/eval")
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(json.dumps({"device": "cuda", "seconds": 77}))
    assert estimate_submitted_seconds(estimates, "evaluate", GIVEN, "cuda") == 77
    (folder / "record.json").write_text(json.dumps({"device": "cpu", "seconds": 77}))
    assert estimate_submitted_seconds(estimates, "evaluate", GIVEN, "cuda") == first


@pytest.mark.parametrize(
    ("rule", "share"), [("train", 1.2), ("evaluate", 0.15), ("search", 20 * 1.2)]
)
def test_with_a_recorded_step_time_a_search_counts_its_own_epochs(
    rule: str, share: float, monkeypatch: pytest.MonkeyPatch
):
    """4 epochs of MNLI's 392,702 pairs in batches of 32, for SLURM and in `plan`."""
    rows = read_csv(step_times.STEP_TIMES)
    names = {"scale": "full", "task": "glue-mnli", "method": "bert", "variant": "ft"}
    measured = {"device": "cuda", "precision": "fp32", "processes": "1", "seconds_per_step": "0.05"}
    row = dict.fromkeys(step_times.STEP_TIME_COLUMNS, "") | names | measured
    write_csv("times.csv", step_times.STEP_TIME_COLUMNS, [*rows, row | {"checkpoint_bytes": "1"}])
    monkeypatch.setattr(step_times, "STEP_TIMES", Path("times.csv"))
    estimates = make_estimates(int(1e12))
    expected = share * 49_088 * 0.05
    seconds = estimate_submitted_seconds(estimates, rule, names | {"seed": "seed-1"}, "cuda")
    assert seconds == pytest.approx(expected + 8)
    hours = estimates.estimate_job(rule, Run("glue-mnli", "bert", "ft", 0))
    assert hours
    assert 3600 * hours.lower == pytest.approx(expected + 8)
    assert 3600 * hours.upper == pytest.approx(expected + 60)


def test_a_search_on_smaller_data_counts_the_prepared_examples():
    """At `demo`: 4 epochs in batches of 32, and the steps of the settings before data are there."""
    catalogue, run = load_catalogue(), Run("stsb-msrvid", "cat", "mix", 1)
    training = resolve_training(catalogue, run, "demo").training
    times = step_times.read_step_times(catalogue)
    assert times.estimate_steps(training, run, "demo") == training.max_steps == 100
    data = Path("results/demo/data/stsb-msrvid")
    data.mkdir(parents=True)
    (data / "dataset.json").write_text(json.dumps({"splits": {"train": {"rows": 330}}}))
    assert times.estimate_steps(training, run, "demo") == 42
