"""Time that jobs ask a cluster for: from step times, else from the hours of the scale."""

import csv
import json
import math
from pathlib import Path

import pytest

from tests.workflow.test_jobs import Job, job, make_jobs
from workflow_scripts.common.result_folders import RESULTS
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.provenance.run_job_spec import JobResources
from workflow_scripts.workflow.job_times import find_job_minutes

RESOURCES = JobResources(memory=1, hours=24, save_seconds=780, large_gpu=False)


def read_seconds(**columns: str) -> float:
    """The step time of a row of catalogue/step_times.csv."""
    with open("catalogue/step_times.csv", encoding="utf-8") as file:
        (row,) = [row for row in csv.DictReader(file) if columns.items() <= row.items()]
    return float(row["seconds_per_step"])


@pytest.mark.parametrize(
    ("rule", "seconds", "minutes"),
    [
        ("train", None, 24 * 60),
        ("search", None, 24 * 60),
        ("evaluate", None, 6 * 60),
        ("intervene", None, 12 * 60),
        ("evaluate", 1.0, 10),
        ("evaluate", 3600.0, 180),
        ("train", 1.0, 10 + 13),  # the 13 minutes in which it saves its state come on top
        ("train", 3600.0, 180 + 13),
        ("train", 1e6, 24 * 60),
        ("evaluate", 1e6, 24 * 60),
    ],
)
def test_minutes_of_the_first_attempt(rule, seconds, minutes):
    assert find_job_minutes(rule, RESOURCES, seconds) == minutes


def test_jobs_whose_step_time_is_known_ask_for_three_times_what_they_need():
    run = "scan-jump-x2/sq-transformer/sal/seed-1"
    jobs = make_jobs(submits_jobs=True)
    names = {"scale": "full", "task": "scan-jump-x2", "variant": "sal", "device": "cuda"}
    updates = 100_000 * read_seconds(**names, precision="fp32")
    train = jobs.estimate_minutes("train")(job(run, "full"))
    assert train == math.ceil((3 * (8 + 1.2 * updates) + 780) / 60) < 140
    evaluate = jobs.estimate_minutes("evaluate")(job(run, "full"))
    assert evaluate == math.ceil(3 * (8 + 0.15 * updates) / 60) < train
    in_tf32 = make_jobs(submits_jobs=True, precision="tf32")
    assert in_tf32.estimate_minutes("train")(job(run, "full")) < train


def test_a_job_of_unknown_time_asks_for_the_hours_of_the_scale_or_a_part_of_them():
    hours = load_catalogue().scales["full"].jobs.hours
    run = job("wikipedia-bookcorpus/cat/pretrain/seed-1", "full")
    jobs = make_jobs(submits_jobs=True)
    assert jobs.estimate_minutes("train")(run) == 60 * hours
    assert jobs.estimate_minutes("evaluate")(run) == 60 * hours / 4
    given = job("idm/llama-large/ft@start/seed-1", "full")
    assert jobs.estimate_minutes("intervene")(given) == 60 * hours / 2
    here = make_jobs()
    assert here.estimate_minutes("evaluate")(run) == 60 * hours, "on this machine there is no limit"


def test_the_time_of_an_evaluation_is_that_of_earlier_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    root = Path.cwd()
    for name in ("catalogue", "papers", "config.yaml"):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)
    for seed, seconds in ((2, 500), (3, 700), (4, 4000)):
        run = f"wikipedia-bookcorpus/cat/pretrain/seed-{seed}"
        record = RESULTS.scale("full").run(run).evaluation.record
        record.parent.mkdir(parents=True)
        record.write_text(json.dumps({"device": "cuda", "seconds": seconds}))
    wildcards = job("wikipedia-bookcorpus/cat/pretrain/seed-1", "full")
    assert make_jobs(submits_jobs=True).estimate_minutes("evaluate")(wildcards) == 3 * 700 / 60


def test_after_a_time_limit_a_job_asks_for_twice_as_much():
    jobs = make_jobs(submits_jobs=True)
    run = job("cogs/transformer/default/seed-1")
    evaluate, analyse = jobs.estimate_minutes("evaluate"), jobs.estimate_minutes("analyse", 60)
    first = evaluate(run)
    assert evaluate(run) == first > 0
    jobs.record_time_limit("evaluate", run)
    assert evaluate(run) == 2 * first
    jobs.record_time_limit("evaluate", run)
    assert evaluate(run) == 4 * first
    assert evaluate(job("cogs/transformer/default/seed-2")) == first
    analysis = Job(scale="demo", paper="cat", analysis="codes")
    assert analyse(analysis) == 60
    jobs.record_time_limit("analyse", analysis)
    assert analyse(analysis) == 120
    assert jobs.estimate_memory("evaluate")(run) == make_jobs().estimate_memory("evaluate")(run)
