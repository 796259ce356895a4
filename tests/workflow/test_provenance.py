"""Every result of a whole run has a record of how it was made."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from tests.provenance.fields import FIELDS

RECORDS = (
    "data/*/record.json",
    "candidates/*/record.json",
    "runs/*/*/*/*/record.json",
    "runs/*/*/*/*/eval/record.json",
    "runs/*/*/*/*/interventions/record.json",
    "analyses/*/*/record.json",
    "tables/*/*.json",
    "figures/*/*.json",
    "claims.json",
)
# What only a GPU has, an outside of git has not, or no module of ours computes with.
MAY_BE_EMPTY = {"driver", "cuda", "peak_gpu_memory_bytes", "commit", "dirty"}

VERSIONS = {"python", "torch", "snakemake", "pandas", "tokenizers", "sacrebleu", "nltk"}


@pytest.mark.parametrize("pattern", RECORDS)
def test_every_result_says_how_it_was_made(finished_demo: Path, pattern: str):
    files = list((finished_demo / "results/demo").glob(pattern))
    assert files
    for file in files:
        record = json.loads(file.read_text())
        assert set(FIELDS) <= record.keys(), file
        empty = {name for name in FIELDS if record[name] is None}
        trained = pattern.startswith("runs/")
        expected = MAY_BE_EMPTY if trained else MAY_BE_EMPTY | {"seed", "precision", "threads"}
        assert empty - {"deterministic_algorithms"} <= expected, file
        assert record["spec"] and record["fingerprint"].endswith(record["code_digest"])
        assert datetime.fromisoformat(record["started"]) <= datetime.fromisoformat(
            record["finished"]
        )
        assert (
            record["cpu_seconds"] > 0
            and record["peak_memory_bytes"] > 1e7
            and record["resumed"] >= 0
        )
        assert record["versions"].keys() >= VERSIONS
        if trained:
            assert record["deterministic_algorithms"] and record["precision"] == "fp32"


def test_a_training_lists_its_attempts(finished_demo: Path):
    for folder in (finished_demo / "results/demo").glob("runs/*/*/*/*"):
        if "@" in str(folder):  # given weights: nothing is trained
            continue
        run, record = (
            json.loads((folder / name).read_text()) for name in ("run.json", "record.json")
        )
        attempts = record["attempts"]
        assert len(attempts) == record["resumed"] + 1 and attempts[-1]["last_step"] == run["steps"]
        assert all(attempt["host"] and attempt["device_name"] for attempt in attempts)
