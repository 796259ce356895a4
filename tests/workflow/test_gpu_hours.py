"""GPU-hours of runs: from step times and from FLOPs, against sums by hand."""

import csv
import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from workflow_scripts.common.files import write_csv
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.training.update_count import BatchSizes, UpdateCount
from workflow_scripts.training.update_flops import count_update
from workflow_scripts.workflow import gpu_hours
from workflow_scripts.workflow.gpu_hours import (
    GpuHours,
    HoursRange,
    find_batch_sizes,
    make_count_key,
    read_counts,
    write_counts,
)
from workflow_scripts.workflow.job_hours import JobHours
from workflow_scripts.workflow.planned_jobs import list_run_jobs

PEAKS = {"fp32": 67e12, "tf32": 494.7e12, "bf16": 989.4e12}  # of NVIDIA's data sheet, dense


def read_rows(file: str) -> list[dict[str, str]]:
    with open(file, encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def refuse_count(spec, sizes):
    raise AssertionError(f"{spec.run} is not in catalogue/update_counts.csv; plan --count")


def make_estimates(**settings) -> GpuHours:
    catalogue = load_catalogue()
    config = load_config({"scale": "full", "papers": list(catalogue.papers)} | settings)
    return GpuHours(catalogue, config, refuse_count)


def sum_hours(estimates: GpuHours, runs: list[Run], *, intervened: bool = False) -> HoursRange:
    """Of all jobs on runs, as `plan` sums them: searches, trainings, evaluations, interventions."""
    catalogue, config = estimates.catalogue, estimates.config
    jobs = list_run_jobs(catalogue, config, runs, runs, runs if intervened else [])
    tasks = {run.task for run in runs}  # a search may start from one more training of another task
    jobs = [job for job in jobs if job.wildcards["task"] in tasks]
    return JobHours(catalogue, config, "cuda", estimates).sum_jobs(jobs).hours


def list_measured() -> list[tuple[dict[str, str], dict[str, str]]]:
    """The rows of step_times.csv of a GPU at `full`, each with its row of update_counts.csv."""
    counts = {
        (row["task"], row["method"], row["variant"]): row
        for row in read_rows("catalogue/update_counts.csv")
    }
    measured = []
    for row in read_rows("catalogue/step_times.csv"):
        if (row["scale"], row["device"]) == ("full", "cuda"):
            measured.append((row, counts[row["task"], row["method"], row["variant"]]))
    return measured


def compute_lowest_decile(values: list[float]) -> float:
    return statistics.quantiles(values, n=10, method="inclusive")[0]


def test_the_low_utilisation_is_the_lowest_decile_of_what_was_measured():
    used: dict[str, list[float]] = {}
    for row, count in list_measured():
        share = int(count["flops"]) / float(row["seconds_per_step"]) / PEAKS[row["precision"]]
        used.setdefault(row["precision"], []).append(share)
    assert {name: len(values) for name, values in used.items()} == {"fp32": 5, "tf32": 4}
    expected = {name: compute_lowest_decile(values) for name, values in used.items()}
    expected["bf16"] = compute_lowest_decile(used["fp32"] + used["tf32"])
    assert pytest.approx(expected, abs=5e-4) == gpu_hours.LOW_UTILISATION
    assert gpu_hours.PEAK_FLOPS == PEAKS


def test_an_operation_without_a_graph_takes_what_was_measured():
    (seconds,) = [
        float(row["seconds_per_step"]) / int(count["operations"])
        for row, count in list_measured()
        if (row["task"], row["method"]) == ("cogs", "transformer")
    ]
    assert pytest.approx(seconds, rel=0.01) == gpu_hours.OPERATION_SECONDS


def test_every_training_of_the_papers_is_counted():
    estimates = make_estimates()
    for run in list_requested_runs(estimates.catalogue, estimates.config):
        assert estimates.count(run.training).flops > 0
    assert {count.how for count in estimates.counts.values()} == {"counted"}
    keys = [row["key"] for row in read_rows("catalogue/update_counts.csv")]
    assert len(set(keys)) == len(keys) == len(read_counts())


@pytest.mark.parametrize(
    "name",
    [
        "scan-jump-x2/sq-transformer/sal",
        "cfq-mcd1/roberta/plain",
        "idm/gpt2-small/carma",
        "wikipedia-bookcorpus/cat/pretrain",
        "paws/cat/mix",
        "glue-rte/bert/frozen",
        "squad/bert/ft",
    ],
)
def test_a_committed_count_is_that_of_the_code(name: str):
    """After a change of a model: plan --count --scale full."""
    estimates = make_estimates()
    run = Run.parse(f"{name}/seed-1")
    spec = estimates.resolve(run)
    count = count_update(spec, find_batch_sizes(estimates.catalogue, spec))
    assert estimates.count(run).memory == pytest.approx(count.memory, rel=1e-3)
    assert replace(estimates.count(run), memory=0) == replace(count, memory=0)


def test_hours_of_a_measured_run_by_hand():
    """100,000 updates, with validation and scoring, and the starts of two jobs."""
    estimates = make_estimates(precision="tf32")
    (row,) = [
        row
        for row, _ in list_measured()
        if (row["method"], row["variant"], row["task"], row["precision"])
        == ("transformer", "default", "scan-jump-x2", "tf32")
    ]
    updates = 100_000 * float(row["seconds_per_step"]) / 3600
    run = Run("scan-jump-x2", "transformer", "default", 1)
    hours = sum_hours(estimates, [run])
    assert hours.lower == pytest.approx(1.35 * updates + 2 * 8 / 3600)
    assert hours.upper == pytest.approx(1.35 * updates + 2 * 60 / 3600)
    assert estimates.is_measured(run)
    two_seeds = sum_hours(estimates, [run, run._replace(seed=2)])
    assert two_seeds.upper == pytest.approx(2 * hours.upper)


def test_hours_of_an_unmeasured_run_with_a_search_by_hand():
    """PAWS: 4 epochs of 49,401 pairs in batches of 32, and 20 such trainings in the search."""
    run = Run("paws", "bert", "ft", 1)
    estimates = make_estimates()
    estimates.counts = {}
    estimates.count_update = lambda spec, sizes: UpdateCount(
        flops=int(1e12), operations=10, parameters=7, memory=8, how="counted"
    )
    updates = 6176
    lower = updates * 1e12 / (0.5 * 67e12) / 3600
    upper = updates * 1e12 / (0.099 * 67e12) / 3600
    search = 20 * 1.2 * lower + 8 / 3600
    assert sum_hours(estimates, [run]).lower == pytest.approx(1.35 * lower + 2 * 8 / 3600 + search)
    seeds = [run, run._replace(seed=2), run._replace(seed=3)]
    search = 20 * 1.2 * upper + 60 / 3600
    of_runs = 3 * (1.35 * upper + 2 * 60 / 3600)
    assert sum_hours(estimates, seeds).upper == pytest.approx(of_runs + search)


def test_a_small_update_is_no_faster_than_its_operations():
    estimates = make_estimates()
    estimates.counts = {}
    estimates.count_update = lambda spec, sizes: UpdateCount(
        flops=1, operations=1000, parameters=7, memory=8, how="counted"
    )
    seconds = estimates.estimate_update(Run("glue-rte", "bert", "frozen", 0))
    assert seconds.upper == pytest.approx(0.036)
    assert seconds.lower < 1e-9


def test_given_weights_are_scored_and_not_trained():
    estimates = make_estimates()
    trained = Run("idm", "gpt2-small", "ft", 1)
    given = Run("idm", "gpt2-small", "ft@start", 1)
    updates = estimates.estimate_updates(trained).upper
    of_trained = sum_hours(estimates, [trained], intervened=True)
    assert of_trained.upper == pytest.approx(1.85 * updates + 3 / 60)
    of_given = sum_hours(estimates, [given], intervened=True)
    assert of_given.upper == pytest.approx(0.65 * updates + 2 / 60)


def test_sizes_of_batches_are_those_of_the_settings():
    estimates = make_estimates()

    def find_sizes(name: str) -> BatchSizes:
        return find_batch_sizes(estimates.catalogue, estimates.resolve(Run.parse(f"{name}/seed-1")))

    # As benchmarks/gpu_step.py has them, from the data.
    assert find_sizes("scan-jump-x2/transformer/default") == BatchSizes(215, (10, 19), (25, 18))
    assert find_sizes("cogs/sq-transformer/srl") == BatchSizes(77, (11, 53), (750, 690))
    assert find_sizes("cognition/lrf/default") == BatchSizes(546, (14, 15), (2300, 6200))
    assert find_sizes("idm/llama-large/carma") == BatchSizes(32, (20,), (128_256,))
    assert find_sizes("wikipedia-bookcorpus/cat/pretrain") == BatchSizes(480, (128,), (30_522,))
    assert find_sizes("squad/bert/ft") == BatchSizes(32, (128,), (30_522,))
    assert find_sizes("cfq-mcd1/roberta/plain").vocabulary == (50_265, 160)


def test_the_key_of_a_count_holds_what_changes_it():
    estimates = make_estimates()

    def make_key(name: str) -> str:
        spec = estimates.resolve(Run.parse(f"{name}/seed-1"))
        return make_count_key(spec, find_batch_sizes(estimates.catalogue, spec))

    base = make_key("idm/gpt2-small/carma")
    assert base == make_key("idm/gpt2-small/carma")
    assert len({base, *map(make_key, ("sst/gpt2-small/carma", "idm/gpt2-large/carma"))}) == 3
    assert base != make_key("idm/gpt2-small/ft"), "without the objective"


def test_ranges_are_written_with_two_digits():
    assert HoursRange(0.123, 0.124).format() == "0.12"
    assert HoursRange(248.0, 1252.0).format() == "250-1,300"
    assert HoursRange(14.2, 14.2).format_time("core") == "14 core-hours"
    assert HoursRange(1, 1).format_time("core") == "1 core-hour"
    assert HoursRange(0.5, 2).format_time("GPU") == "0.5-2 GPU-hours"
    assert HoursRange(0.5, 0.5).format_time("core") == "30 core-minutes"
    assert HoursRange(0.2, 0.5).format_time("GPU") == "12-30 GPU-minutes"
    assert HoursRange(0.017, 0.017).format_time("core") == "1 core-minute"
    assert HoursRange(0.0001, 0.0001).format_time("core") == "1 core-minute"
    assert json.loads(json.dumps(HoursRange(1, 2).lower + 1)) == 2
    assert (HoursRange(1, 2) + HoursRange(3, 5)) * 2 == HoursRange(8, 14)
    assert Path("catalogue/update_counts.csv").exists()


@pytest.mark.parametrize(
    "run",
    [
        Run("scan-jump-x2", "transformer", "default", 1),  # of measured step time
        Run("sst", "llama-large", "carma", 1),  # by counted FLOPs
    ],
)
def test_a_slower_gpu_takes_as_many_times_longer(run: Run):
    on_h100, slower = make_estimates(), make_estimates(gpu_speed=0.25)
    expected = on_h100.estimate_updates(run)
    found = slower.estimate_updates(run)
    assert (found.lower, found.upper) == pytest.approx((4 * expected.lower, 4 * expected.upper))
    assert (on_h100.gpu, slower.gpu) == (
        "an NVIDIA H100",
        "a GPU with 0.25 of the speed of an NVIDIA H100",
    )


def test_a_count_of_some_models_keeps_the_rows_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    committed = read_rows("catalogue/update_counts.csv")
    estimates = make_estimates(papers=["lrf"])
    runs = list(list_requested_runs(estimates.catalogue, estimates.config))
    keys = {estimates.make_key(run.training) for run in runs}
    assert 1 < len(keys) < len(committed)
    # The first of them was not counted before.
    file = tmp_path / "update_counts.csv"
    new = next(iter(sorted(keys)))
    write_csv(file, tuple(committed[0]), [row for row in committed if row["key"] != new])
    monkeypatch.setattr(gpu_hours, "UPDATE_COUNTS", file)
    estimates.count_update = lambda spec, sizes: UpdateCount(
        flops=5, operations=6, parameters=7, memory=8, how="counted"
    )
    write_counts(estimates, runs)
    numbers = {"flops": "5", "operations": "6", "parameters": "7", "memory": "8"}
    expected = {row["key"]: row | (numbers if row["key"] in keys else {}) for row in committed}
    found = {row["key"]: row for row in read_rows(str(file))}
    for row in (found[new], expected[new]):  # a new row has the names of the run that is first
        row["variant"] = row["task"] = ""
    assert found == expected
