"""Scores of a prompt run from answers that were kept, without its model."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import Score, score_shares
from workflow_scripts.tasks.prompt.settings import PromptEvaluation

if TYPE_CHECKING:
    import pyarrow


def score_predictions(
    predictions: "pyarrow.Table",
    data: Path,
    split: str,
    settings: PromptEvaluation,
    metrics: Collection[str],
) -> list[Score]:
    """Return the scores of the answers to the prompts of a split.

    data: a folder with the columns item and label of the split. Answers are compared as texts:
    tokens that differ in a space alone have the same text. Raises ValueError for an item that the
    data lack.
    """
    table = read_table(data, split, ["item", "label"])
    label_of = dict(zip(table["item"].to_pylist(), table["label"].to_pylist(), strict=True))
    items = predictions["item"].to_pylist()
    unknown = [item for item in items if item not in label_of]
    if unknown:
        raise ValueError(f"{split} has no item {unknown[0]}")
    correct = []
    for item, answer in zip(items, predictions["prediction"].to_pylist(), strict=True):
        label = label_of[item]
        if settings.match == "text":
            answer, label = answer.lower(), label.lower()
        correct.append(answer == label)
    subsets = predictions["subset"].to_numpy()
    scores = score_shares("exact_match", np.array(correct), subsets, {})
    return [score._replace(readout="vocabulary") for score in scores]
