"""Scores of one answer to all prompts: a model has learnt something only if it is better."""

from collections import Counter
from collections.abc import Sequence

import pyarrow.parquet as pq

from workflow_scripts.analyses.options.constant_answers import Options
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, find_most_frequent
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import make_scores


def analyse(runs: Sequence[TrainedRun], options: Options) -> AnalysisResult:
    """Report `exact_match` (percent) of constant answers.

    It is on the prompts that the first run of each task answered. Prompts whose answer is not one
    token of its model are none of them. Readouts: `constant`, the most frequent answer in training,
    and `best_constant`, that of the split: no constant answer is right more often. Of equally
    frequent answers the first in the alphabet counts. Raises UserError for a run without
    predictions.
    """
    split = options.split
    result = AnalysisResult()
    for run in {run.task: run for run in reversed(runs)}.values():
        path = run.files.evaluation.predictions
        if not path.is_file():
            raise UserError(f"{path} does not exist; evaluate {run} first")
        predictions = pq.read_table(path, columns=["item"], filters=[("split", "==", split)])
        answered = set(predictions["item"].to_pylist())
        table = read_table(run.data, split, ["item", "label"]).to_pylist()
        labels = [row["label"] for row in table if row["item"] in answered]
        train_labels = read_table(run.data, "train", ["label"])["label"].to_pylist()
        answers = {
            "constant": find_most_frequent(Counter(train_labels)),
            "best_constant": find_most_frequent(Counter(labels)),
        }
        for readout, answer in answers.items():
            columns = {
                "task": run.task,
                "split": split,
                "subset": "all",
                "readout": readout,
                "protocol": run.protocol,
            }
            share = 100 * labels.count(answer) / len(labels)
            result.scores += make_scores(columns, {"exact_match": (share, "percent", len(labels))})
            result.notes.append(f"{run.task}, {readout}: {answer}")
    return result
