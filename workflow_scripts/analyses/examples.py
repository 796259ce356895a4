"""Single pairs of sentences that a paper prints, found in the data, and what trained models say of them."""

import re
from collections.abc import Sequence
from typing import Any

import pyarrow.parquet as pq

from workflow_scripts.analyses.trained_runs import AnalysisResult, TrainedRun, make_score_row
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.options import merge_options
from workflow_scripts.data.prepared import read_table

NO_LETTER = re.compile(r"[\W_]+")


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Scores of the pairs `items`, each called by its name in the column subset.

    options:
        items: name -> [first, second]; case, spaces and marks do not count.
    Metric `label`, once for each task that has the pair: its class or the score that annotators gave. Metric
    `prediction`, by run and readout, where the pair is in a split that was evaluated. A pair that no task has is noted.
    """
    wanted = {normalise_pair(*pair): name for name, pair in merge_options(options, items={})["items"].items()}
    found = AnalysisResult([])
    for task in dict.fromkeys(run.task for run in runs):
        of_task = [run for run in runs if run.task == task]
        data, protocol = of_task[0].data, of_task[0].protocol
        described = read_json(data / "dataset.json")
        unit = "class" if described["labels"] else "score"
        names: dict[tuple[str, str], str] = {}
        for split in described["splits"]:
            table = read_table(data, split, ["item", "first", "second", "label"]).to_pylist()
            for row in table:
                name = wanted.get(normalise_pair(row["first"], row["second"] or ""))
                if name is None or name in names.values():
                    continue
                names[split, row["item"]] = name
                what = {"task": task, "subset": name, "metric": "label", "value": row["label"], "unit": unit, "n": 1}
                found.scores.append(what | {"protocol": protocol})
        found.notes += [f"{task} has no pair '{name}'" for name in wanted.values() if name not in names.values()]
        for run in of_task:
            found.scores += read_item_predictions(run, names, unit)
    return found


def read_item_predictions(run: TrainedRun, names: dict[tuple[str, str], str], unit: str) -> list[dict[str, Any]]:
    """The score rows of what `run` says of the items called `names`, by (split, item)."""
    path = run.folder / "eval/predictions.parquet"
    if not path.is_file():
        raise UserError(f"{path} does not exist; evaluate {run} first")
    items = [item for _, item in names]
    rows = pq.read_table(path, filters=[("item", "in", items)]).to_pylist() if items else []
    return [
        make_score_row(run, "prediction", row["prediction"], unit, 1, subset=names[key], readout=row["readout"])
        for row in rows
        if (key := (row["split"], row["item"])) in names
    ]


def normalise_pair(first: str, second: str) -> tuple[str, str]:
    """Two texts as their letters and digits alone, in lower case."""
    return NO_LETTER.sub("", first.lower()), NO_LETTER.sub("", second.lower())
