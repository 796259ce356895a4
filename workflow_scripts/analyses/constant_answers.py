"""Scores of one answer to all inputs: a model has learnt something only if it is better."""

from collections import Counter
from collections.abc import Sequence

from workflow_scripts.analyses.options.constant_answers import Options
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, find_most_frequent
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import make_scores


def analyse(runs: Sequence[TrainedRun], options: Options) -> AnalysisResult:
    """Report `exact_match` (percent) of constant answers to prompts or to source sentences.

    Of prompts it is on those that the first run of each task answered. Prompts whose answer is not
    one token of its model are none of them. Readouts: `constant`, the most frequent answer in
    training, and `best_constant`, that of the split: no constant answer is right more often. Of
    equally frequent answers the first in the alphabet counts. Raises UserError for a run on prompts
    without predictions of a split.
    """
    result = AnalysisResult()
    for run in {run.task: run for run in reversed(runs)}.values():
        for split in options.splits:
            add_scores(result, run, split)
    return result


def add_scores(result: AnalysisResult, run: TrainedRun, split: str) -> None:
    """Add the scores of both constant answers on a split, and a note that names each answer."""
    right_answers = read_right_answers(run, split)
    answers = {
        "constant": find_most_frequent(Counter(read_training_answers(run))),
        "best_constant": find_most_frequent(Counter(right_answers)),
    }
    for readout, answer in answers.items():
        columns = {
            "task": run.task,
            "split": split,
            "subset": "all",
            "readout": readout,
            "protocol": run.protocol,
        }
        share = 100 * right_answers.count(answer) / len(right_answers)
        values = {"exact_match": (share, "percent", len(right_answers))}
        result.scores += make_scores(columns, values)
        result.notes.append(f"{run.task}, {split}, {readout}: {answer}")


def read_training_answers(run: TrainedRun) -> list[str]:
    """Read the answer to each training input."""
    table = read_table(run.data, "train")
    if "label" in table.column_names:
        return table["label"].to_pylist()
    return table["target"].to_pylist()


def read_right_answers(run: TrainedRun, split: str) -> list[str]:
    """Read the right answer to each source sentence, or to each prompt that the run answered.

    Raises UserError if a run on prompts has no predictions of the split.
    """
    table = read_table(run.data, split)
    if "label" not in table.column_names:
        return table["target"].to_pylist()
    predictions = run.read_predictions(columns=["item"], filters=[("split", "==", split)])
    answered = set(predictions["item"].to_pylist())
    rows = table.select(["item", "label"]).to_pylist()
    right_answers = [row["label"] for row in rows if row["item"] in answered]
    if not right_answers:
        raise UserError(
            f"displays.yaml: {run} has no predictions of the split '{split}'; add the split to the "
            "evaluation of its task, or take it out of the analysis"
        )
    return right_answers
