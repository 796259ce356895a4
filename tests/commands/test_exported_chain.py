"""A real chain, pre-trained, fine-tuned, scored and perturbed at demo, exported: who made what, and
all draws.
"""

import csv
import json
import statistics
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.config.copies import copy_project
from tests.training.toy import run_main
from workflow_scripts.__main__ import main
from workflow_scripts.common.files import read_json
from workflow_scripts.provenance.exported import EXPECTED, NOT_RECORDED, OF_TRAININGS

FIRST, TUNED = "text-bpe-4k/gpt2-small/pretrain/seed-1", "idm/gpt2-small/ft/seed-1"
GIVEN = "idm/gpt2-small/ft@start/seed-1"
OUT = Path("reference/demo")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the catalogue: GPT-2 pre-trained, tuned on IDM and perturbed, and exported."""
    place = copy_project(tmp_path_factory.mktemp("chain"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for task in ("text-bpe-4k", "idm"):
            assert main(["prepare", "--task", task, "--scale", "demo", "--out", data(task)]) == 0
        candidates = [
            "--task",
            "idm",
            "--scale",
            "demo",
            "--data",
            data("idm"),
            "--out",
            "results/demo/candidates/idm",
        ]
        assert main(["candidates", *candidates]) == 0
        for run, init in ((FIRST, ()), (TUNED, ("--init", checkpoint(FIRST)))):
            places = {"data": data(run), "out": f"results/demo/runs/{run}"}
            assert run_main("train", *init, run=run, scale="demo", **places) == 0
        tuned = f"results/demo/runs/{TUNED}"
        for command, more in (
            ("evaluate", ()),
            ("intervene", ("--candidates", "results/demo/candidates/idm")),
        ):
            part = {"evaluate": "eval", "intervene": "interventions"}[command]
            places = {"run_dir": tuned, "data": data("idm"), "out": f"{tuned}/{part}"}
            assert run_main(command, *more, **places) == 0
        places = {
            "data": data("idm"),
            "out": f"results/demo/runs/{GIVEN}/eval",
            "weights": checkpoint(FIRST),
        }
        assert run_main("evaluate", run=GIVEN, scale="demo", **places) == 0
        assert export() == 0
    return place


def data(run: str) -> str:
    return f"results/demo/data/{run.split('/')[0]}"


def checkpoint(run: str) -> str:
    return f"results/demo/runs/{run}/checkpoint"


def export() -> int:
    return main(["export", "--scale", "demo", "--out", "reference"])


@pytest.fixture(autouse=True)
def in_place(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


def read_rows() -> dict[str, dict]:
    return {row["run"]: row for row in json.loads((OUT / "provenance.json").read_text())}


def test_every_ancestor_has_a_row_with_the_spec_of_the_weights():
    rows = read_rows()
    # The pre-training itself has no score: only what starts from it has.
    assert rows.keys() == {FIRST, TUNED, GIVEN}
    assert not Path(f"results/demo/runs/{FIRST}/eval").exists()
    trained = read_json(Path(f"results/demo/runs/{FIRST}/run.json"))
    for run in (TUNED, GIVEN):
        assert rows[run]["weights"]["run"] == FIRST
        assert rows[run]["weights"]["spec"] == trained["spec_digest"] == rows[FIRST]["spec_digest"]
        assert "provenance" not in rows[run]["weights"]
    for run, row in rows.items():
        assert (
            row.keys() >= {*EXPECTED, *(OF_TRAININGS if run != GIVEN else ())}
            and "not_recorded" not in row
        )
        assert datetime.fromisoformat(row["started"]) <= datetime.fromisoformat(row["finished"])
        assert row["device"] == "cpu" and row["device_name"] and row["versions"]["torch"]
        folder = Path(f"results/demo/runs/{run}")
        record = read_json(
            (folder if (folder / "run.json").exists() else folder / "eval") / "record.json"
        )
        assert {key: row[key] for key in ("commit", "dirty", "started")} == {
            key: record[key] for key in ("commit", "dirty", "started")
        }


def test_the_coefficient_of_variation_follows_from_the_exported_draws():
    draws = pq.read_table(OUT / "draws.parquet").to_pylist()
    with open(f"results/demo/runs/{TUNED}/interventions/scores.csv", newline="") as stream:
        scores = list(csv.DictReader(stream))
    single = [row for row in scores if row["intervention_seed"]]
    assert len(draws) == len(single) > 4
    kept = {
        (row["metric"], row["rate"], row["item_set"], row["intervention_seed"]): row["value"]
        for row in draws
    }
    for row in single:
        place = (row["metric"], float(row["rate"]), row["item_set"], int(row["intervention_seed"]))
        assert kept[place] == float(row["value"])
    by_rate: dict[float, list[float]] = {}
    for row in draws:
        if (row["metric"], row["item_set"]) == ("consistency", "own_correct"):
            by_rate.setdefault(row["rate"], []).append(row["value"])
    expected = {float(row["rate"]): float(row["value"]) for row in scores if row["metric"] == "cv"}
    rebuilt = {
        rate: statistics.stdev(values) / statistics.fmean(values)
        for rate, values in by_rate.items()
        if any(values)
    }
    assert {rate: rebuilt[rate] for rate in expected} == pytest.approx(expected)
    # In scores.csv there is the mean alone.
    with open(OUT / "scores.csv", newline="") as stream:
        assert not [row for row in csv.DictReader(stream) if row["intervention_seed"]]


def test_what_an_earlier_export_left_out_says_so():
    """A run of the earlier export stays, with draws, and its parent has the row of other weights or
    none.
    """
    rows = read_rows()
    old = "idm/gpt2-small/carma/seed-7"
    weights = {"run": FIRST, "spec": "0123456789abcdef"}
    unknown = {"run": "text-bpe-4k/gpt2-small/pretrain/seed-9", "spec": "fedcba9876543210"}
    earlier = [{"run": old, "scale": "demo", "commit": "abc", "weights": weights}]
    earlier.append({"run": "idm/gpt2-small/ft@start/seed-9", "scale": "demo", "weights": unknown})
    earlier.append(
        {"run": "idm/gpt2-small/ft/seed-9", "scale": "demo", "not_recorded": ["weights"]}
    )
    (OUT / "provenance.json").write_text(json.dumps([*rows.values(), *earlier]))
    for _ in range(2):  # the second call finds what the first has written
        assert export() == 0
        found = read_rows()
        assert {run: found[run] for run in rows} == rows
        assert found[old]["weights"] == weights | {"provenance": NOT_RECORDED}
        assert {"dirty", "started", "spec_digest"} <= set(found[old]["not_recorded"]) and found[
            old
        ]["commit"] == "abc"
        assert "weights" in found["idm/gpt2-small/ft/seed-9"]["not_recorded"]
        parent = found[unknown["run"]]
        assert parent["spec_digest"] == unknown["spec"] and {"steps", "device"} <= set(
            parent["not_recorded"]
        )
