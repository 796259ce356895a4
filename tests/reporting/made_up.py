"""Invented results in the formats of training and evaluation, so that reporting can be tried
without either.
"""

import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.common.files import write_json
from workflow_scripts.common.run_names import Run
from workflow_scripts.evaluation.scores import Score, write_scores


def write_run(
    results: Path,
    run: Run,
    accuracy: float,
    subsets: Iterable[str] = ("",),
    examples: int = 200,
    protocol: str = "reduced",
    readouts: dict[str, float] | None = None,
) -> None:
    """Write the files of a run: `accuracy` percent right in each subset, or as `readouts` says by
    checkpoint.
    """
    generator = np.random.default_rng(zlib.crc32(str(run).encode()))
    folder = results / "runs" / str(run)
    names = {
        "task": run.task,
        "method": run.method,
        "variant": run.variant,
        "seed": run.seed,
        "protocol": protocol,
    }
    kinds = np.repeat(list(subsets), examples)
    scores, tables = [], []
    for readout, percent in {None: accuracy, **(readouts or {})}.items():
        correct = generator.random(len(kinds)) < np.clip(percent, 0, 100) / 100
        for split in ("test", "in_distribution"):
            whole = _score(split, "all", correct)
            scores += [
                {**names, "readout": readout, **whole, "metric": m}
                for m in ("exact_match", "structure_match")
            ]
            scores += [
                {**names, "readout": readout, **_score(split, kind, correct[kinds == kind])}
                for kind in subsets
                if kind
            ]
        splits = np.repeat(["test", "in_distribution"], len(kinds))
        which = {"split": splits, "readout": pa.array([readout] * len(splits), pa.string())}
        table = {"row": np.tile(np.arange(len(kinds)), 2), "subset": np.tile(kinds, 2)}
        table |= {"prediction": [""] * len(splits), "correct": np.tile(correct, 2)}
        tables.append(pa.table(which | table))
    (folder / "eval").mkdir(parents=True)
    write_scores(folder / "eval/scores.csv", [Score(**score) for score in scores])
    pq.write_table(pa.concat_tables(tables), folder / "eval/predictions.parquet")
    spec = {"training": {"precision": "fp32"}}
    write_json(
        folder / "run.json",
        {"protocol": protocol, "spec": spec, "steps": 4000, "parameters": 1_210_000},
    )
    write_json(folder / "record.json", {"seconds": 812.5, "device_name": "an invented CPU"})


def _score(split: str, subset: str, correct: np.ndarray) -> dict:
    value = 100 * float(correct.mean())
    names = {"split": split, "subset": subset, "metric": "exact_match"}
    return names | {"value": value, "unit": "percent", "n": len(correct)}
