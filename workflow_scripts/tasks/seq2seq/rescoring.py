"""Scores of a seq2seq run from outputs that were kept, without its model."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workflow_scripts.common.files import read_mapping
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.prepared import read_table
from workflow_scripts.evaluation.measures import parse_measure_options
from workflow_scripts.evaluation.scores import Score, score_shares
from workflow_scripts.tasks.seq2seq.scoring import match_structures
from workflow_scripts.tasks.seq2seq.settings import Seq2SeqEvaluation

if TYPE_CHECKING:
    import pyarrow


def score_predictions(
    predictions: "pyarrow.Table",
    data: Path,
    split: str,
    settings: Seq2SeqEvaluation,
    metrics: Collection[str],
) -> list[Score]:
    """Return the scores of the outputs for a split, of measures those that give `metrics`.

    data: a folder with the columns target and subset of the split. The measures of the settings are
    computed where it also has dataset.json, as prepared data have. Raises ValueError if the
    predictions are not those of its rows.
    """
    ordered = predictions.sort_by("row")
    table = read_table(data, split, ["target", "subset"])
    if ordered["row"].to_pylist() != list(range(len(table))):
        raise ValueError(f"the predictions are not those of the {len(table)} rows of {split}")
    subsets = table["subset"].to_numpy()
    outputs = ordered["prediction"].to_pylist()
    manifest = DataFolder(data).manifest
    references = table["target"].to_pylist()
    groups: dict[str, list[str]] = {}
    scores: list[Score] = []
    if manifest.exists():
        from workflow_scripts.tasks.seq2seq.decoding import join_tokens, score_with_modules

        groups = read_mapping(manifest).get("subset_groups", {})
        references = join_tokens(references, settings.joined)
        wanted = settings.model_copy(update={"measures": select_measures(settings, metrics)})
        scores += score_with_modules(outputs, references, data, split, wanted)
    elif settings.joined != "tokens":
        return []
    # Arrays of texts are as wide as the longest one: comparing them takes ten times as long.
    pairs = zip(outputs, references, strict=True)
    correct = np.array([output == reference for output, reference in pairs])
    scores += score_shares("exact_match", correct, subsets, groups)
    if settings.same_word and "structure_match" in metrics:
        right = match_structures(outputs, references, settings.same_word)
        scores += score_shares("structure_match", right, subsets, groups)
    return scores


def select_measures(
    settings: Seq2SeqEvaluation, metrics: Collection[str]
) -> dict[str, dict[str, Any]]:
    """Return the measures of the settings that give one of the metrics, with their options."""
    measures = {}
    for name, content in settings.get_measures().items():
        options = parse_measure_options(name, content, f"evaluation.measures.{name}")
        if set(options.list_metrics()) & set(metrics):
            measures[name] = content
    return measures
