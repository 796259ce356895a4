"""Which runs fit into a time, by step times, saved states and what other runs need."""

import json
from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.data.sources.declared import load_repositories, load_sources
from workflow_scripts.workflow import step_times, time_limit
from workflow_scripts.workflow.snakemake_job import SnakemakeJob, set_needed_jobs
from workflow_scripts.workflow.time_limit import (
    Machine,
    OpenRun,
    choose_runs,
    count_saved_steps,
    estimate_seconds,
    list_open_runs,
    make_estimate,
    parse_duration,
)

CONFIG = {"scale": "small", "papers": ["cat", "sq_transformer"], "extra": False}
SAL = {"scale": "small", "task": "scan-jump-x2", "method": "sq-transformer", "variant": "sal"}


def make_job(rule: str, name: str, seed: int = 1, needs: tuple[str, ...] = ()) -> SnakemakeJob:
    """A job of a dry run, of the run `<task>/<method>/<variant>`."""
    task, method, variant = name.split("/")
    wildcards = {
        "scale": "small",
        "task": task,
        "method": method,
        "variant": variant,
        "seed": f"seed-{seed}",
    }
    return SnakemakeJob(rule, wildcards, list(needs), [f"{rule}/{name}/{seed}"])


def open_run(seed: int, *jobs: SnakemakeJob) -> OpenRun:
    return OpenRun(
        Run("cogs", "transformer", "default", seed), [jobs[-1]], list(jobs), is_primary=False
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("25m", 1500), ("2h", 7200), ("1h30m", 5400), ("1m5s", 65), ("0s", 0)],
)
def test_times_are_read(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "25", "m", "1.5h", "-1m", "30m1h", "none", "1d"])
def test_what_is_no_time_is_refused_in_one_line(text):
    with pytest.raises(
        UserError, match=r"^--finish-within .* is no time; give one such as 90s, 25m or 1h30m$"
    ):
        parse_duration(text)


def test_runs_of_primary_claims_come_first_claim_by_claim_and_seed_by_seed():
    names = [
        "cogs/lrf/default",
        "scan-jump-x2/transformer/default",
        "bird/cat/comp@paws",
        "bird/bert/ft@paws",
    ]
    jobs = [make_job("evaluate", name, seed) for name in names for seed in (2, 1)]
    runs = list_open_runs(load_catalogue(), load_config(CONFIG), set_needed_jobs(jobs))
    assert [
        (run.run.task, run.run.seed, run.is_primary) for run in runs if run.run.method != "bert"
    ] == [
        *(("bird", seed, True) for seed in (1, 2)),
        *(("scan-jump-x2", seed, True) for seed in (1, 2)),
        *(("cogs", seed, False) for seed in (1, 2)),
    ]
    seeds = [run.run.seed for run in runs if run.run.task == "bird"]
    assert seeds == sorted(seeds), "both sides of a claim advance together"


def test_a_run_comes_with_the_jobs_that_it_needs_each_once():
    first = make_job("train", "paws/cat/mix")
    second = make_job("train", "bird/cat/mix", needs=tuple(first.outputs))
    score = make_job("evaluate", "bird/cat/mix", needs=(*first.outputs, *second.outputs))
    runs = list_open_runs(
        load_catalogue(), load_config(CONFIG), set_needed_jobs([score, second, first])
    )
    last = next(run for run in runs if run.run.task == "bird")
    jobs = [f"{job.rule} {job.wildcards['task']}" for job in last.all_jobs]
    assert jobs == ["train paws", "train bird", "evaluate bird"]
    assert [job.rule for job in last.own_jobs] == ["evaluate", "train"]


def test_only_what_ends_in_time_is_chosen():
    data, *trainings = (
        SnakemakeJob(rule, {}) for rule in ("prepare", "long", "short", "short", "unknown")
    )
    for training in trainings:
        training.needed = [data]
    seconds = {"prepare": 10.0, "long": 100.0, "short": 30.0, "unknown": None}

    def estimate(job: SnakemakeJob) -> float | None:
        return seconds[job.rule]

    runs = [open_run(seed, data, training) for seed, training in enumerate(trainings)]
    long, short, other, _ = runs
    assert choose_runs(runs, estimate, 1, 9.0) == ([], 0.0)
    assert choose_runs(runs, estimate, 1, 40.0) == ([short], 40.0)
    assert choose_runs(runs, estimate, 1, 70.0) == ([short, other], 70.0)
    assert choose_runs(runs, estimate, 2, 40.0) == ([short, other], 40.0)
    assert choose_runs(runs, estimate, 2, 110.0) == ([long, short, other], 110.0)
    assert choose_runs(runs, estimate, 1, 110.0) == ([long], 110.0)


def test_only_the_remaining_steps_of_a_saved_training_count(tmp_path, monkeypatch):
    monkeypatch.setattr(step_times, "STEP_TIMES", Path("catalogue/step_times.csv").resolve())
    state = tmp_path / "state"
    command = f"python -m workflow_scripts train --run x --state {state} > log 2>&1"
    job = SnakemakeJob("train", SAL | {"seed": "seed-1"}, command=command)
    catalogue, config = load_catalogue(), load_config(CONFIG)
    alone, shared = Machine("cpu", 1, 1.0), Machine("cpu", 2, 2.0)
    whole = estimate_seconds(catalogue, config, alone, job)
    assert whole and count_saved_steps(job) == 0
    for name in ("step-300", "step-1000", ".step-2000.part", "log.txt"):
        (state / name).mkdir(parents=True)
    assert count_saved_steps(job) == 1000
    rest = estimate_seconds(catalogue, config, alone, job)
    assert rest == pytest.approx(whole - 1000 * 1.2 * 0.2025)
    assert estimate_seconds(catalogue, config, shared, job) == pytest.approx(
        2 * rest - time_limit.START_SECONDS
    )


def test_times_that_nobody_measured_are_unknown():
    catalogue, config, machine = load_catalogue(), load_config(CONFIG), Machine("cuda", 1, 1.0)
    jobs = [
        SnakemakeJob("prepare_large", {"scale": "small", "task": "wmt17-en-de"}),
        SnakemakeJob("train", SAL | {"task": "cogs", "variant": "srl", "seed": "seed-1"}),
        SnakemakeJob("evaluate", SAL | {"task": "cogs", "variant": "srl", "seed": "seed-1"}),
        SnakemakeJob("prepare", {"scale": "small", "task": "cogs"}),
    ]
    estimates = [estimate_seconds(catalogue, config, machine, job) for job in jobs]
    assert estimates == [None, None, None, time_limit.OTHER_SECONDS]
    given = SnakemakeJob("evaluate", SAL | {"variant": "sal@scan-jump-x2", "seed": "seed-1"})
    assert estimate_seconds(catalogue, config, machine, given) == 68
    estimate = make_estimate(catalogue, config, machine, is_done=lambda job: job is jobs[0])
    assert estimate(jobs[0]) == 0.0 and estimate(jobs[1]) is None


def test_a_download_takes_as_long_as_it_is_large():
    catalogue, config, machine = load_catalogue(), load_config(CONFIG), Machine("cpu", 1, 1.0)
    source, model = (
        load_sources()["scan/tasks_train_addprim_jump.txt"],
        load_repositories()["openai-community/gpt2-large"],
    )
    jobs = [
        SnakemakeJob("fetch", {"source": "scan/tasks_train_addprim_jump.txt"}),
        SnakemakeJob("fetch_model", {"model": "openai-community/gpt2-large"}),
    ]
    estimates = [estimate_seconds(catalogue, config, machine, job) for job in jobs]
    assert estimates == [time_limit.START_SECONDS + entry.bytes / 10e6 for entry in (source, model)]
    assert estimates[1] > 60


def test_an_evaluation_takes_as_long_as_those_of_other_seeds_in_this_folder(tmp_path, monkeypatch):
    """On the same kind of device: a record of an early version does not say which it was."""
    catalogue, config = load_catalogue(), load_config(CONFIG)
    monkeypatch.chdir(tmp_path)
    cpu, cuda = {"device": "cpu"}, {"device": "cuda"}
    times = {2: (cpu, 30), 3: (cpu, 50), 4: (cpu, 40), 5: (cuda, 7), 6: (cuda, 9), 7: ({}, 900)}
    for seed, (device, seconds) in times.items():
        record = Path(
            f"results/small/runs/scan-jump-x2/sq-transformer/sal/seed-{seed}/eval/record.json"
        )
        record.parent.mkdir(parents=True)
        record.write_text(json.dumps(device | {"seconds": seconds}))
    job = SnakemakeJob("evaluate", SAL | {"seed": "seed-1"})
    assert estimate_seconds(catalogue, config, Machine("cpu", 1, 1.0), job) == 40
    assert estimate_seconds(catalogue, config, Machine("cuda", 1, 1.0), job) == 8
