"""Sentence pairs that a paper prints: their labels in the data, and the predictions of trained models."""

import re
from collections.abc import Sequence
from typing import Any

import pyarrow.parquet as pq

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import make_scores

NO_LETTER = re.compile(r"[\W_]+")


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Report labels and predictions of single pairs; the column subset has their names.

    options: items: name -> [first, second]; case, spaces and punctuation are ignored.
    Metric `label`, for each task that has the pair: its class, or the annotators' score. Metric `prediction`, by run
    and readout, if the split of the pair was evaluated. A task without a pair gets a note.
    """
    wanted = {
        normalise_pair(*pair): name
        for name, pair in merge_options(options, items={})["items"].items()
    }
    found = AnalysisResult()
    for task in dict.fromkeys(run.task for run in runs):
        task_runs = [run for run in runs if run.task == task]
        data, protocol = task_runs[0].data, task_runs[0].protocol
        dataset = read_json(data / "dataset.json")
        unit = "class" if dataset["labels"] else "score"
        names: dict[tuple[str, str], str] = {}
        for split in dataset["splits"]:
            for row in read_table(data, split, ["item", "first", "second", "label"]).to_pylist():
                name = wanted.get(normalise_pair(row["first"], row["second"] or ""))
                if name is None or name in names.values():
                    continue
                names[split, row["item"]] = name
                where = {"task": task, "subset": name, "protocol": protocol}
                found.scores += make_scores(where, {"label": (row["label"], unit, 1)})
        found.notes += [
            f"{task} has no pair '{name}'" for name in wanted.values() if name not in names.values()
        ]
        items = [item for _, item in names]
        for run in task_runs:
            path = run.folder / "eval/predictions.parquet"
            if not path.is_file():
                raise UserError(f"{path} does not exist; evaluate {run} first")
            for row in (
                pq.read_table(path, filters=[("item", "in", items)]).to_pylist() if items else []
            ):
                if name := names.get((row["split"], row["item"])):
                    values = {"prediction": (row["prediction"], unit, 1)}
                    found.scores += run.make_scores(values, subset=name, readout=row["readout"])
    return found


def normalise_pair(first: str, second: str) -> tuple[str, str]:
    """Reduce two texts to their letters and digits, in lower case."""
    return NO_LETTER.sub("", first.lower()), NO_LETTER.sub("", second.lower())
