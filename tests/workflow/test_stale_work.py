"""What a call does again, why, and how long it takes, in a line."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from workflow_scripts.common.files import digest
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.workflow import stale_work
from workflow_scripts.workflow.gpu_hours import HoursRange
from workflow_scripts.workflow.job_hours import WorkHours
from workflow_scripts.workflow.job_specs import fingerprint_workflow_job
from workflow_scripts.workflow.rerun_reasons import find_rerun_reasons, locate_setting
from workflow_scripts.workflow.snakemake_job import SnakemakeJob
from workflow_scripts.workflow.stale_work import CallWork, Work
from workflow_scripts.workflow.wildcards import read_run_name
from workflow_scripts.workflow.work_question import print_work

DATA = "results/small/data/scan-jump-x2/dataset.json"
CHANGED = f"Updated input files: {DATA}"

pytestmark = pytest.mark.usefixtures("catalogue_without_results")


def make_job(rule: str, seed: int, reason: str = CHANGED, is_there: bool = True) -> SnakemakeJob:
    """A job on a run of SCAN, and its result with its record if it is there."""
    run = Path(f"results/small/runs/scan-jump-x2/transformer/default/seed-{seed}")
    output = run / {"train": "run.json", "evaluate": "eval/scores.csv"}[rule]
    task, method, variant, last = run.parts[-4:]
    wildcards = {"scale": "small", "task": task, "method": method, "variant": variant, "seed": last}
    if is_there:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.touch()
        now = fingerprint_workflow_job(load_catalogue(), Config(scale="small"), rule, wildcards)
        assert now
        record = {"fingerprint": str(now), "spec": now.spec, "device": "cpu", "seconds": 2.5}
        output.with_name("record.json").write_text(json.dumps(record))
    inputs = [DATA] if rule == "train" else [str(run / "run.json")]
    return SnakemakeJob(rule, wildcards, inputs, [str(output)], reason)


def make_work(*jobs: SnakemakeJob, device: str = "cpu") -> CallWork:
    return CallWork(load_catalogue(), Config(scale="small"), device, list(jobs))


def compute_training_hours() -> float:
    """Of one run of SCAN on one core, from the table of step times."""
    job = make_job("train", 1, is_there=False)
    spec = resolve_training(load_catalogue(), read_run_name(job.wildcards), "small")
    with open("catalogue/step_times.csv") as stream:
        rows = [
            row
            for row in csv.DictReader(stream)
            if (row["scale"], row["task"], row["method"], row["variant"], row["device"])
            == ("small", "scan-jump-x2", "transformer", "default", "cpu")
        ]
    (row,) = rows
    assert spec.torch_threads == 1 and spec.training.max_steps
    return (8 + 1.2 * spec.training.max_steps * float(row["seconds_per_step"])) / 3600


def test_trainings_that_are_there_are_counted_with_reason_and_hours():
    hours = compute_training_hours()
    jobs = [make_job("train", seed) for seed in range(20)]
    work = make_work(*jobs, *(make_job("train", seed, is_there=False) for seed in range(20, 30)))
    stale, first = work.select_work(is_stale=True), work.select_work(is_stale=False)
    assert (len(stale.jobs), len(first.jobs)) == (20, 10)
    assert stale.hours.hours.lower == stale.hours.hours.upper == pytest.approx(20 * hours)
    line = work.describe_stale()
    reason = f"{DATA} changed after it was read"
    assert line and line.startswith(f"20 trainings again because {reason}: about ")
    assert line.endswith("core-hours; `why` lists them; --touch keeps them")
    assert float(line.split("about ")[1].split()[0]) == pytest.approx(20 * hours, rel=0.05)
    line = work.describe_first()
    assert line and line.startswith("10 trainings for the first time: about ")


def test_what_follows_has_the_reason_of_what_it_reads():
    trained = [make_job("train", seed) for seed in range(30)]
    follows = make_job("evaluate", 1, "Input files updated by another job: run.json")
    work = make_work(follows, *trained)
    line = work.describe_stale()
    assert line and line.startswith("30 trainings and 1 other job again because ")
    assert (
        work.describe_reasons(Work([follows], WorkHours())) == f"{DATA} changed after it was read"
    )


def test_of_several_reasons_those_of_most_jobs_are_shown():
    reasons = ["Updated input files: a"] * 3 + ["Updated input files: b"] * 2
    reasons += ["Updated input files: c", "Updated input files: d"]
    jobs = [make_job("train", seed, reason) for seed, reason in enumerate(reasons)]
    assert make_work(*jobs).describe_reasons(Work(jobs, WorkHours())) == (
        "a changed after it was read (3) and b changed after it was read (2) and 2 other reasons"
    )


def test_names_of_runs_make_no_other_reasons():
    jobs = []
    for seed in range(3):
        job = make_job("evaluate", seed, "")
        jobs.append(replace(job, reason=f"Updated input files: {job.inputs[0]}"))
    assert make_work(*jobs).describe_reasons(Work(jobs, WorkHours())) == (
        "results/small/runs/…/run.json changed after it was read"
    )


def test_weights_that_are_trained_again_have_the_reason():
    """Not the digest of their spec, which differs from one training to the next."""
    jobs = []
    for method in ("bert", "cat"):
        first = make_changed_training("pairs-wordpiece", method, "pretrain", "training")
        second = make_changed_training(
            "paws", method, {"bert": "ft", "cat": "comp"}[method], "init"
        )
        second.inputs.append(first.outputs[0])
        jobs += [first, second]
    place = locate_setting(load_catalogue(), jobs[0], "training.warmup_steps")
    assert "pairs-wordpiece" in place
    assert make_work(*jobs).describe_reasons(Work(jobs, WorkHours())) == (
        f"training.warmup_steps was -1 and is 300{place}"
    )
    (reason,) = find_rerun_reasons(load_catalogue(), Config(scale="small"), jobs[1], set())
    assert reason == "starts from weights that were trained with other settings"


def make_changed_training(task: str, method: str, variant: str, section: str) -> SnakemakeJob:
    """A training whose record has another value in a section of its spec."""
    names = {"task": task, "method": method, "variant": variant, "seed": "seed-1"}
    wildcards = {"scale": "small"} | names
    now = fingerprint_workflow_job(load_catalogue(), Config(scale="small"), "train", wildcards)
    assert now
    key, value = {"training": ("warmup_steps", -1), "init": ("spec", "0" * 16)}[section]
    spec = now.spec | {section: now.spec[section] | {key: value}}
    folder = Path("results/small/runs", *names.values())
    folder.mkdir(parents=True)
    (folder / "run.json").touch()
    record = {"fingerprint": f"spec {digest(spec)}, code {now.code}", "spec": spec}
    (folder / "record.json").write_text(json.dumps(record))
    return SnakemakeJob("train", wildcards, [DATA], [str(folder / "run.json")])


def test_a_little_work_is_done_without_a_word():
    job = make_job("evaluate", 1)
    assert make_work(job).describe_stale() is None
    assert make_work(job).describe_first() is None
    record = Path(job.outputs[0]).with_name("record.json")
    record.write_text(record.read_text().replace(": 2.5", ": 601"))  # seconds of the last time
    assert ": about 10 core-minutes; " in (make_work(job).describe_stale() or "")


def test_a_training_is_said_and_asked_for_only_if_it_is_long(monkeypatch):
    work = make_work(make_job("train", 1))
    assert work.has_long_stale_work() and work.describe_stale()
    monkeypatch.setattr(stale_work, "STALE_HOURS", 2 * compute_training_hours())
    assert (work.describe_stale() or "").startswith("1 training again because ")
    assert not work.has_long_stale_work()


def test_unknown_times_are_said():
    jobs = [make_job("train", 1), make_job("evaluate", 2)]
    record = Path(jobs[1].outputs[0]).with_name("record.json")
    record.write_text(record.read_text().replace('"cpu"', '"mps"'))
    line = make_work(*jobs, device="mps").describe_stale()
    assert line and ": about 1 GPU-minute and 1 job of unknown time; " in line


def test_where_step_times_tell_nothing_it_is_the_time_of_the_last_training():
    job = make_job("train", 1)
    record = Path(job.outputs[0]).with_name("record.json")
    record.write_text(record.read_text().replace('"cpu"', '"cuda"').replace(": 2.5", ": 7200"))
    line = make_work(job, device="cuda").describe_stale()
    assert line and ": about 2 GPU-hours; " in line


def test_the_line_is_printed_once_by_the_process_that_may(capsys, monkeypatch):
    work = make_work(*(make_job("train", seed) for seed in range(30)))
    print_work(work)  # a call of Snakemake itself
    monkeypatch.setenv("RECOMPOSE_NOTICE", "nothing")
    print_work(work)
    assert capsys.readouterr().err == f"{work.describe_stale()}\n"


def make_full_job(rule: str, **wildcards: str) -> SnakemakeJob:
    return SnakemakeJob(rule, wildcards | {"scale": "full"}, [], ["results/full/none"], "")


def make_full_work(*jobs: SnakemakeJob) -> CallWork:
    config = Config(scale="full", papers=["carma"])
    return CallWork(load_catalogue(), config, "cuda", list(jobs))


def test_hours_of_unmeasured_trainings_on_a_gpu_are_a_range_by_flops():
    names = {"task": "idm", "method": "llama-large", "variant": "ft"}
    jobs = [make_full_job("train", **names, seed=f"seed-{seed}") for seed in range(200)]
    line = make_full_work(*jobs).describe_first()
    work = make_full_work(*jobs).select_work(is_stale=False)
    assert line == (
        f"200 trainings for the first time: about {work.hours.hours.format()} GPU-hours of an NVIDIA "
        "H100; `plan` says more"
    )
    assert 0 < 5 * work.hours.hours.lower < work.hours.hours.upper
    one = make_full_work(jobs[0]).select_work(is_stale=False)
    assert work.hours.hours.upper == pytest.approx(200 * one.hours.hours.upper)


@pytest.mark.parametrize(
    ("on_gpus", "on_cores", "said"),
    [
        (WorkHours(HoursRange(0.1, 0.1)), WorkHours(HoursRange(40.0, 40.0)), "40 core-hours"),
        (WorkHours(HoursRange(0.1, 0.1)), WorkHours(unknown=1), "1 job of unknown time"),
        (WorkHours(unknown=1), WorkHours(HoursRange(40.0, 40.0)), "40 core-hours"),
        (WorkHours(HoursRange(0.1, 0.1)), WorkHours(HoursRange(0.1, 0.1)), ""),
        (WorkHours(), WorkHours(HoursRange(40.0, 40.0)), ""),  # the time of all
    ],
)
def test_much_work_on_cores_is_said_next_to_gpu_hours(
    on_gpus: WorkHours, on_cores: WorkHours, said: str
):
    """The question is about both."""
    jobs = [make_full_job("prepare_large", task="wmt17-en-de")]
    work = Work(jobs, replace(on_gpus, on_cores=on_cores))
    assert work.describe_time_on_cores() == (f" and on cores {said}" if said else "")


def test_gated_models_that_are_to_be_downloaded_are_named(monkeypatch: pytest.MonkeyPatch):
    models = ("google/gemma-2b", "openai-community/gpt2")
    gated, free = (make_full_job("fetch_model", model=model) for model in models)
    monkeypatch.setenv("HF_TOKEN_PATH", "/nowhere")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    (line,) = make_full_work(gated, free).describe()
    assert line.startswith("gated models: google/gemma-2b; accept their licences, and set HF_TOKEN")
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    (line,) = make_full_work(gated, free).describe()
    assert line.endswith("google/gemma-2b; the token's owner must have accepted their licences")
    assert make_full_work(free).describe() == []
