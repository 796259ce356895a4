"""Which failure each job waits for, and what it is called."""

import json
from pathlib import Path

import pytest

from workflow_scripts.commands.show_finished import describe_failures, group_failures
from workflow_scripts.workflow.failures import (
    NOT_STARTED,
    FailedJob,
    find_failures,
    read_failed_jobs,
)
from workflow_scripts.workflow.snakemake_job import SnakemakeJob

RUN = {"scale": "full", "task": "idm", "method": "gemma-2b", "variant": "ft", "seed": "seed-1"}


def failed(
    rule: str,
    message: str = "",
    slurm_state: str = "",
    was_killed: bool = False,
    **wildcards: str,
) -> FailedJob:
    return FailedJob(
        rule=rule,
        wildcards=wildcards,
        message=message,
        log=["a.log"],
        slurm_state=slurm_state,
        was_killed=was_killed,
    )


def job(rule: str, *needed: SnakemakeJob, **wildcards: str) -> SnakemakeJob:
    return SnakemakeJob(rule, wildcards, needed=list(needed))


@pytest.mark.parametrize(
    ("failure", "word", "sentence"),
    [
        (
            failed(
                "fetch_model", "error: google/gemma-2b is gated: accept", model="google/gemma-2b"
            ),
            "gated",
            "google/gemma-2b is gated",
        ),
        (
            failed("fetch_model", "error: the hub cannot be reached", model="google/gemma-2b"),
            "download failed",
            "google/gemma-2b could not be downloaded",
        ),
        (
            failed("fetch", "error: HTTP status 404", source="cogs/train.tsv"),
            "download failed",
            "cogs/train.tsv could not be downloaded",
        ),
        (
            failed("train", "step 10/4,000", "OUT_OF_MEMORY", **RUN),
            "out of memory",
            "train idm/gemma-2b/ft/seed-1 ran out of memory",
        ),
        (
            failed("train", "step 10/4,000", "FAILED, out of memory", **RUN),
            "out of memory",
            "train idm/gemma-2b/ft/seed-1 ran out of memory",
        ),
        (
            failed("train", "step 10/4,000", was_killed=True, **RUN),
            "killed",
            "train idm/gemma-2b/ft/seed-1 was killed, probably because memory was full",
        ),
        (
            failed("train", "error: idm: the GPU's memory is full; lower it", **RUN),
            "out of memory",
            "train idm/gemma-2b/ft/seed-1 ran out of memory",
        ),
        (
            failed("evaluate", "error: out of memory; give the process more", **RUN),
            "out of memory",
            "evaluate idm/gemma-2b/ft/seed-1 ran out of memory",
        ),
        (
            failed("train", "step 10/4,000", "TIMEOUT", **RUN),
            "time limit",
            "train idm/gemma-2b/ft/seed-1 reached its time limit",
        ),
        (failed("claims", "KeyError: 'a'", scale="full"), "failed", "claims failed"),
    ],
)
def test_causes(failure: FailedJob, word: str, sentence: str):
    assert (failure.cause.word, failure.cause.sentence) == (word, sentence)


def test_a_job_waits_for_its_own_failure_or_for_the_nearest_before_it():
    fetch = job("fetch_model", model="google/gemma-2b")
    train = job("train", fetch, **RUN)
    evaluate = job("evaluate", train, **RUN)
    other = job("train", **RUN | {"seed": "seed-2"})
    table = job("table", other, evaluate, scale="full", paper="carma", display="table2")
    gated = failed("fetch_model", "it is gated", model="google/gemma-2b")
    crashed = failed("train", "RuntimeError", **RUN)

    waiting = find_failures([table, evaluate, train, fetch, other], [gated])
    assert [entry.failure for entry in waiting] == [gated, gated, gated, gated, None]
    assert [entry.has_failed for entry in waiting] == [False, False, False, True, False]
    assert waiting[-1].cause == NOT_STARTED

    (waiting_evaluation,) = find_failures([evaluate], [gated, crashed])
    assert waiting_evaluation.failure == crashed


def test_failed_jobs_of_the_logger(tmp_path: Path):
    file = tmp_path / "failed_jobs.json"
    assert read_failed_jobs(file) == []
    file.write_text(json.dumps([failed("claims", scale="full").model_dump()]))
    assert read_failed_jobs(file) == [failed("claims", scale="full")]


def test_jobs_that_failed_for_the_same_reason_share_a_line():
    """The name of a job in its message is no other reason."""
    failures = []
    for seed in range(1, 9):
        names = RUN | {"seed": f"seed-{seed}"}
        message = f"error: idm/gemma-2b/ft/seed-{seed}: data.parquet cannot be read"
        failures.append(failed("train", message, **names))
    failures.append(failed("train", "error: another", **RUN | {"seed": "seed-9"}))
    failures.append(failed("evaluate", failures[0].message, **RUN))
    groups = group_failures(failures)
    assert [len(group) for group in groups] == [8, 1, 1]
    assert describe_failures(groups[0], runs=8) == (
        "error: 8 trainings failed, 8 runs not finished: idm/gemma-2b/ft/seed-1: data.parquet "
        "cannot be read (idm/gemma-2b/ft/seed-1, idm/gemma-2b/ft/seed-2, idm/gemma-2b/ft/seed-3 "
        "and 5 more; the first log: a.log)"
    )
    assert describe_failures(groups[1], runs=1) == (
        "error: train idm/gemma-2b/ft/seed-9 failed, 1 run not finished: another (a.log)"
    )
    stopped = [failed("train", "step 1", "TIMEOUT", **RUN | {"seed": f"seed-{n}"}) for n in (1, 2)]
    (group,) = group_failures(stopped)
    assert describe_failures(group, runs=0).startswith(
        "error: 2 trainings reached their time limit: step 1 (idm/gemma-2b/ft/seed-1, "
    )
