"""Scores of a run on sentences from predictions that were kept, without its model."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workflow_scripts.common.files import read_mapping
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.prepared import read_table
from workflow_scripts.tasks.sentence_prediction.scoring import PredictedItems, score_subsets
from workflow_scripts.tasks.settings import Evaluation

if TYPE_CHECKING:
    import pyarrow


def score_predictions(
    predictions: "pyarrow.Table",
    data: Path,
    split: str,
    settings: Evaluation,
    metrics: Collection[str],
) -> list[dict[str, Any]]:
    """Return the score rows of the predicted classes or numbers of a split.

    data: prepared data, with dataset.json. Raises ValueError for items that are not those of the
    data, and for repeated ones, whose labels are not told apart.
    """
    table = read_table(data, split, ["item", "label"])
    label_of = dict(zip(table["item"].to_pylist(), table["label"].to_pylist(), strict=True))
    items = predictions["item"].to_pylist()
    if len(label_of) != len(table) or set(items) != set(label_of):
        raise ValueError(f"the predictions are not those of the {len(table)} items of {split}")
    has_classes = bool(read_mapping(DataFolder(data).manifest).get("labels"))
    likelihood = None
    if not predictions["likelihood"].null_count:
        likelihood = predictions["likelihood"].to_numpy()
    predicted = PredictedItems(predictions["prediction"].to_numpy(), likelihood, has_classes)
    labels = np.array([label_of[item] for item in items])
    rows = score_subsets(predicted, labels, predictions["subset"].to_numpy())
    return [row for row in rows if "reason" not in row]
