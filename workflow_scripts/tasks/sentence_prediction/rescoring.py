"""Scores of a run on sentences from predictions that were kept, without its model."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from workflow_scripts.common.files import read_mapping
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.scores import Score
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
) -> list[Score]:
    """Return the scores of the predicted classes or numbers of a split.

    data: prepared data, with dataset.json. Raises ValueError unless there is one prediction of each
    item of the data.
    """
    import pyarrow.compute as pc

    table = read_table(data, split, ["item", "label", "subset"])
    row_of_item = pc.call_function(
        "index_in",
        [predictions["item"]],
        pc.SetLookupOptions(table["item"]),
    )
    has_each_once = sorted(row_of_item.fill_null(-1).to_pylist()) == list(range(len(table)))
    if not has_each_once:
        raise ValueError(f"the predictions are not those of the {len(table)} items of {split}")
    answers = table.take(row_of_item)
    has_classes = bool(read_mapping(DataFolder(data).manifest).get("labels"))
    likelihood = None
    if not predictions["likelihood"].null_count:
        likelihood = predictions["likelihood"].to_numpy()
    predicted = PredictedItems(predictions["prediction"].to_numpy(), likelihood, has_classes)
    labels = answers["label"].to_numpy()
    return score_subsets(predicted, labels, answers["subset"].to_numpy()).scores
