"""Made-up results in the formats of training and evaluation, so that reporting can be tried without either."""

import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.catalogue.runs import Run
from workflow_scripts.evaluation.scores import write_scores
from workflow_scripts.files import write_json


def write_run(
    results: Path,
    run: Run,
    accuracy: float,
    subsets: Iterable[str] = ("",),
    examples: int = 200,
    protocol: str = "reduced",
) -> None:
    """run.json, scores.csv and predictions.parquet of one run: about `accuracy` percent right in every subset."""
    generator = np.random.default_rng(zlib.crc32(str(run).encode()))
    folder = results / "runs" / str(run)
    names = {"task": run.task, "method": run.method, "variant": run.variant, "seed": run.seed, "protocol": protocol}
    kinds = np.repeat(list(subsets), examples)
    correct = generator.random(len(kinds)) < np.clip(accuracy, 0, 100) / 100
    scores = []
    for split in ("test", "in_distribution"):
        scores.append({**names, **_score(split, "all", correct)})
        scores += [{**names, **_score(split, kind, correct[kinds == kind])} for kind in subsets if kind]
    (folder / "eval").mkdir(parents=True)
    write_scores(folder / "eval/scores.csv", scores)
    splits = np.repeat(["test", "in_distribution"], len(kinds))
    table = {"split": splits, "row": np.tile(np.arange(len(kinds)), 2), "subset": np.tile(kinds, 2)}
    table |= {"prediction": [""] * len(splits), "correct": np.tile(correct, 2)}
    pq.write_table(pa.table(table), folder / "eval/predictions.parquet")
    write_json(
        folder / "run.json",
        {
            "protocol": protocol,
            "steps": 4000,
            "parameters": 1_210_000,
            "seconds": 812.5,
            "device_name": "a made-up CPU",
            "precision": "fp32",
        },
    )


def _score(split: str, subset: str, correct: np.ndarray) -> dict:
    value = 100 * float(correct.mean())
    return {
        "split": split,
        "subset": subset,
        "metric": "exact_match",
        "value": value,
        "unit": "percent",
        "n": len(correct),
    }
