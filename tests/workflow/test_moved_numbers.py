"""Which numbers and verdicts a call has changed."""

import os
from pathlib import Path

import pytest

from workflow_scripts.workflow.moved_numbers import describe_moves, store_numbers
from workflow_scripts.workflow.snakemake_job import SnakemakeJob

TABLE = "results/small/tables/lrf/table1.csv"
CLAIMS = "results/small/claims.csv"
HEADER = "row,column,metric,reproduced\n"
FIRST_TABLE = HEADER + "LRF,COGS,exact_match,81.25\nLRF,SCAN,exact_match,50\nCTR,COGS,bleu,\n"
CLAIM_HEADER = "paper,claim,verdict,effect\n"
FIRST_CLAIMS = CLAIM_HEADER + "lrf,a,reproduced,1\nlrf,b,not run,\n"


def make_job(rule: str, *outputs: str) -> SnakemakeJob:
    return SnakemakeJob(rule=rule, wildcards={}, outputs=list(outputs))


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table and claims, which a call is about to make again."""
    monkeypatch.chdir(tmp_path)
    write(TABLE, FIRST_TABLE, time=1)
    write(CLAIMS, FIRST_CLAIMS, time=1)
    store_numbers(
        [make_job("table", TABLE, TABLE.replace("csv", "md")), make_job("claims", CLAIMS)]
    )
    return tmp_path


def write(file: str, content: str, time: int = 2) -> None:
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(content)
    os.utime(file, (time, time))


def test_what_is_made_as_before_has_not_moved(results):
    assert describe_moves() == []  # not yet
    write(TABLE, FIRST_TABLE)
    write(CLAIMS, FIRST_CLAIMS)
    assert describe_moves() == ["No number moved in 1 table", "No verdict changed in 1 file"]


def test_each_change_has_its_values_before_and_now(results):
    write(TABLE, HEADER + "LRF,COGS,exact_match,81.251\nLRF,SCAN,exact_match,49\nCTR,COGS,bleu,7\n")
    rows = "lrf,a,inconclusive,0\nlrf,b,not run,\nlrf,new,reproduced,1\n"
    write(CLAIMS, CLAIM_HEADER + rows)
    numbers, verdicts = describe_moves()
    assert numbers == (
        "2 numbers moved in 1 of 1 table: lrf/table1 LRF COGS exact_match 81.25 → 81.251; "
        f"lrf/table1 LRF SCAN exact_match 50 → 49 ({TABLE})"
    )
    assert verdicts == (
        f"1 verdict changed in 1 of 1 file: lrf/a reproduced → inconclusive ({CLAIMS})"
    )


def test_what_was_before_the_call_counts_if_snakemake_runs_twice(results):
    write(TABLE, HEADER + "LRF,COGS,exact_match,1\nLRF,SCAN,exact_match,2\n")
    store_numbers([make_job("table", TABLE), make_job("table", "results/small/tables/lrf/new.csv")])
    write(TABLE, HEADER + "LRF,COGS,exact_match,81.25\nLRF,SCAN,exact_match,50\n")
    write("results/small/tables/lrf/new.csv", HEADER + "LRF,COGS,exact_match,3\n")
    assert describe_moves()[0] == "No number moved in 1 table"


def test_a_call_that_makes_no_table_says_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store_numbers([make_job("train", "results/small/runs/a/b/c/seed-1/run.json")])
    assert describe_moves() == []


def test_what_is_missing_after_a_failure_has_not_moved(results):
    write(TABLE, HEADER + "LRF,COGS,exact_match,\nLRF,SCAN,exact_match,\nCTR,COGS,bleu,\n")
    # Planned seeds are missing: no effect is shown.
    write(CLAIMS, CLAIM_HEADER + "lrf,a,no verdict,\nlrf,b,not run,\n")
    assert describe_moves() == []
    write(TABLE, HEADER + "LRF,COGS,exact_match,\nLRF,SCAN,exact_match,50\nCTR,COGS,bleu,\n")
    assert describe_moves() == ["No number moved in 1 table"]


def test_a_verdict_that_a_failed_control_takes_away_has_changed(results):
    write(CLAIMS, CLAIM_HEADER + "lrf,a,no verdict,1\nlrf,b,not run,\n")
    assert describe_moves() == [
        f"1 verdict changed in 1 of 1 file: lrf/a reproduced → no verdict ({CLAIMS})"
    ]


def test_a_first_run_says_nothing_also_if_snakemake_runs_twice(tmp_path, monkeypatch):
    """After a failure tables and claims of what is finished are made in a second run."""
    monkeypatch.chdir(tmp_path)
    jobs = [make_job("table", TABLE), make_job("claims", CLAIMS)]
    store_numbers(jobs)
    for time in (1, 2):
        write(TABLE, FIRST_TABLE, time)
        write(CLAIMS, FIRST_CLAIMS, time)
        store_numbers(jobs)
    assert describe_moves() == []


def test_where_no_claim_is_judged_nothing_is_said_of_verdicts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(CLAIMS, CLAIM_HEADER + "lrf,a,no verdict,1\n", time=1)
    store_numbers([make_job("claims", CLAIMS)])
    write(CLAIMS, CLAIM_HEADER + "lrf,a,no verdict,2\n")
    assert describe_moves() == []
