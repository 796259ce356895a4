"""Nearest neighbours of words in the plane of t-SNE (table 5)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas

from workflow_scripts.analyses.embedding_space import END, make_word_table, project_tsne
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import RUN_COLUMNS, TrainedRun, stack_tables
from workflow_scripts.common.plug_ins import merge_options

COLUMNS = ["word", "class", "rank", "neighbour", "neighbour_class", "distance"]


def find_nearest_rows(points: np.ndarray, row: int, k: int) -> np.ndarray:
    """Find the k points of [N, d] nearest to `row` by Euclidean distance, nearest first; ties by row."""
    distance = np.linalg.norm(points.astype(np.float64) - points[row].astype(np.float64), axis=1)
    distance[row] = np.inf
    return np.argsort(distance, kind="stable")[:k]


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Find the nearest neighbours of words, as in table 5, and score how many of them have the class of the word.

    options: words: those of neighbours.csv; k: neighbours per word; classes: `scan` or `cogs`; seed: of t-SNE.
    Score, over all words except `</s>`: `neighbours_same_class_tsne`, the share (percent) of a word's k nearest
    neighbours that have its class. A class of at most k words cannot reach 100%.
    """
    given = merge_options(options, words=[], k=10, classes="cogs", seed=0)
    scores, tables, classes = [], [], []
    for run in runs:
        table, vectors = make_word_table(run, given["classes"])
        classes.append(table[["word", "class"]].assign(task=run.task))
        real = np.flatnonzero(table["word"] != END)
        words, word_classes = table["word"].to_numpy()[real], table["class"].to_numpy()[real]
        points = project_tsne(vectors, given["seed"])[real]
        nearest = np.stack([find_nearest_rows(points, row, given["k"]) for row in range(len(real))])
        same = (word_classes[nearest] == word_classes[:, None]).mean()
        scores += run.make_scores(
            {"neighbours_same_class_tsne": (100 * same, "percent", len(real))}
        )
        for row in (row for word in given["words"] for row in np.flatnonzero(words == word)):
            distance = np.linalg.norm(points[nearest[row]] - points[row], axis=1)
            where = {**run.columns, "word": words[row], "class": word_classes[row]}
            found = {
                "neighbour": words[nearest[row]],
                "neighbour_class": word_classes[nearest[row]],
            }
            found |= {"rank": range(1, len(distance) + 1), "distance": distance}
            tables.append(pandas.DataFrame(where | found)[[*RUN_COLUMNS, *COLUMNS]])
    known = stack_tables(classes, ["word", "class"])[["task", "word", "class"]].drop_duplicates()
    return AnalysisResult(scores, {"neighbours": stack_tables(tables, COLUMNS), "classes": known})
