"""Sentence pairs that a paper prints: their labels in the data, and the models' predictions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.analyses.options.examples import Options
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.files import read_json
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import make_scores

NO_LETTER = re.compile(r"[\W_]+")


def analyse(runs: Sequence[TrainedRun], options: Options) -> AnalysisResult:
    """Report labels and predictions of single pairs; the column subset has their names.

    Metric `label`, for each task that has the pair: its class, or the annotators' score. Metric
    `prediction`, by run and readout, if the split of the pair was evaluated. A task without a pair
    gets a note.
    """
    printed: dict[tuple[str, str], str] = {}  # normalised pair -> its name
    for name, pair in options.items.items():
        printed[normalise_pair(*pair)] = name
    result = AnalysisResult()
    for task in dict.fromkeys(run.task for run in runs):
        task_runs = [run for run in runs if run.task == task]
        data = task_runs[0].data
        unit = "class" if read_json(DataFolder(data).manifest).get("labels") else "score"
        pairs = find_pairs(data, printed)
        for pair in pairs:
            columns = {"task": task, "subset": pair.name, "protocol": task_runs[0].protocol}
            result.scores += make_scores(columns, {"label": (pair.label, unit, 1)})
        names = {pair.name for pair in pairs}
        for name in printed.values():
            if name not in names:
                result.notes.append(f"{task} has no pair '{name}'")
        if not pairs:
            continue
        name_of = {(pair.split, pair.item): pair.name for pair in pairs}
        of_pairs = [("item", "in", [pair.item for pair in pairs])]
        for run in task_runs:
            for row in run.read_predictions(filters=of_pairs).to_pylist():
                name = name_of.get((row["split"], row["item"]))
                if name:
                    values = {"prediction": (row["prediction"], unit, 1)}
                    result.scores += run.make_scores(values, subset=name, readout=row["readout"])
    return result


@dataclass(frozen=True)
class PrintedPair:
    """A pair that a paper prints, in the data: its name, its place there, and its label."""

    name: str
    split: str
    item: str
    label: float


def find_pairs(data: Path, printed: dict[tuple[str, str], str]) -> list[PrintedPair]:
    """Find the first place of each printed pair in prepared data."""
    pairs: dict[str, PrintedPair] = {}
    for split in read_json(DataFolder(data).manifest)["splits"]:
        for row in read_table(data, split, ["item", "first", "second", "label"]).to_pylist():
            name = printed.get(normalise_pair(row["first"], row["second"] or ""))
            if name is not None and name not in pairs:
                pairs[name] = PrintedPair(name, split, row["item"], row["label"])
    return list(pairs.values())


def normalise_pair(first: str, second: str) -> tuple[str, str]:
    """Reduce two texts to their letters and digits, in lower case."""
    return NO_LETTER.sub("", first.lower()), NO_LETTER.sub("", second.lower())
