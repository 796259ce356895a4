"""The hours of the jobs of a call: of GPUs or of cores, and of what a stopped training lacks."""

import json
from pathlib import Path

import pytest

from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.workflow.cost_tables import format_costs
from workflow_scripts.workflow.gpu_hours import GpuHours, HoursRange
from workflow_scripts.workflow.job_hours import JobHours
from workflow_scripts.workflow.job_specs import CatalogueSpecs
from workflow_scripts.workflow.jobs import JobInputs
from workflow_scripts.workflow.snakemake_job import SnakemakeJob
from workflow_scripts.workflow.targets import list_wildcards
from workflow_scripts.workflow.wildcards import WildcardValues

STOPPED = Run("scan-jump-x2", "transformer", "default", 1)

pytestmark = pytest.mark.usefixtures("catalogue_without_results")


def make_hours(device: str, scale: str = "full") -> JobHours:
    catalogue = load_catalogue()
    return JobHours(catalogue, load_config({"scale": scale, "papers": ["cat", "lrf"]}), device)


def make_job(rule: str, scale: str = "full", **wildcards: str) -> SnakemakeJob:
    """A job of a call, which has outputs."""
    return SnakemakeJob(rule, {"scale": scale} | wildcards, outputs=["results/none"])


def make_training(run: Run = STOPPED, scale: str = "full") -> SnakemakeJob:
    return make_job("train", scale, **list_wildcards(run))


LARGE = ("prepare_large", {"task": "wikipedia-bookcorpus"})
SMALL = ("prepare", {"task": "cogs"})
ANALYSIS = ("analyse", {"paper": "cat", "analysis": "cap"})


@pytest.mark.parametrize(("rule", "names"), [LARGE, SMALL, ANALYSIS])
def test_what_uses_no_gpu_has_no_gpu_hours_whatever_its_record_says(
    rule: str, names: dict[str, str]
):
    job = make_job(rule, **names)
    assert make_hours("cuda").estimate(job) == HoursRange()
    folder = Path("results/full/data", names.get("task", ""))
    if rule == "analyse":
        folder = Path("results/full/analyses/cat/cap")
    folder.mkdir(parents=True)
    record = {"device": "cpu", "seconds": 36_000, "cpu_seconds": 144_000}
    (folder / "record.json").write_text(json.dumps(record))
    assert make_hours("cuda").estimate(job) == HoursRange()
    assert make_hours("cpu").estimate(job) == HoursRange(40, 40)
    # What takes long is long work of a call also where other jobs use a GPU.
    work = make_hours("cuda").sum_jobs([job])
    assert work.hours == HoursRange() and work.format_time("cuda") == "40 core-hours"
    assert work.has_more_than(39) and not work.has_more_than(40)


def test_large_data_take_an_unknown_time_on_cores_and_none_on_gpus():
    rule, names = LARGE
    job, training = make_job(rule, **names), make_training()
    hours = make_hours("cuda")
    alone, both = hours.sum_jobs([job]), hours.sum_jobs([job, training])
    assert make_hours("cpu").estimate(job) is None
    assert (alone.hours, alone.unknown, both.unknown) == (HoursRange(), 0, 0)
    assert alone.format_time("cuda") == "1 job of unknown time" and alone.has_more_than(1000)
    assert both.hours == hours.estimate(training)
    assert "unknown" not in both.format_time("cuda")


@pytest.mark.parametrize(
    ("device", "scale", "steps"), [("cuda", "full", 100_000), ("cpu", "small", 15_000)]
)
def test_of_a_stopped_training_only_what_its_state_lacks_counts(
    device: str, scale: str, steps: int
):
    """Of this seed, with these settings, and not in `plan`, which supposes that nothing is there."""
    hours = make_hours(device, scale)
    job, other = make_training(scale=scale), make_training(STOPPED._replace(seed=2), scale)
    planned = SnakemakeJob("train", job.wildcards)
    whole = hours.estimate(job)
    assert whole and whole.upper and hours.estimate(other) == hours.estimate(planned) == whole
    inputs = JobInputs(hours.config, CatalogueSpecs(hours.catalogue, hours.config))
    states = Path(inputs.locate_training_state(WildcardValues(job.wildcards)))
    of_other_settings = states.with_name("0" * 16) / f"step-{steps}"
    of_other_settings.mkdir(parents=True)
    assert hours.estimate(job) == whole
    for step in (steps // 2, 9 * steps // 10):
        (states / f"step-{step}").mkdir(parents=True)
    left = hours.estimate(job)
    assert left and left.upper == pytest.approx(whole.upper / 10)
    assert left.lower == pytest.approx(whole.lower / 10)
    assert hours.estimate(other) == hours.estimate(planned) == whole


def test_a_training_takes_its_last_time_only_on_the_same_kind_of_device():
    """At `small` no step time of a GPU is known."""
    job = make_training(scale="small")
    folder = Path("results/small/runs", str(STOPPED))
    folder.mkdir(parents=True)
    hours = {}
    for device in ("cpu", "cuda"):
        record = {"device": device, "seconds": 7200, "cpu_seconds": 7200}
        (folder / "record.json").write_text(json.dumps(record))
        hours[device] = make_hours("mps", "small").estimate(job)
    assert hours == {"cpu": None, "cuda": HoursRange(2, 2)}


def test_a_table_of_costs_says_of_how_many_jobs_the_time_is_unknown():
    hours = make_hours("cuda")
    known, unknown = make_training(), make_training(Run("paws", "bert", "ft", 1))
    assert isinstance(hours.gpu_hours, GpuHours)
    hours.gpu_hours.counts = {}  # of models that `plan --count` has not counted
    measured = hours.estimate(known)
    assert measured
    runs = [job.run for job in (known, unknown) if job.run]
    cells = format_costs(hours, runs, [known, unknown, unknown])
    assert cells == ["2", "1", f"{measured.format()} + 2 jobs unknown"]
    assert format_costs(hours, runs[1:], [unknown]) == ["1", "0", "1 job unknown"]
