"""Nearest neighbours of words in the plane of t-SNE (table 5)."""

from collections.abc import Sequence

import numpy as np
import pandas

from workflow_scripts.analyses.embedding_space import END, make_word_table, project_tsne
from workflow_scripts.analyses.options.neighbours import Options
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import RUN_COLUMNS, TrainedRun, stack_tables

COLUMNS = ["word", "class", "rank", "neighbour", "neighbour_class", "distance"]


def find_nearest_rows(points: np.ndarray, row: int, k: int) -> np.ndarray:
    """Find the k points of [N, d] nearest to `row` by Euclidean distance, nearest first.

    Of equal distances the first row comes first.
    """
    points = points.astype(np.float64)
    distance = np.linalg.norm(points - points[row], axis=1)
    distance[row] = np.inf
    return np.argsort(distance, kind="stable")[:k]


def analyse(runs: Sequence[TrainedRun], options: Options) -> AnalysisResult:
    """Find the nearest neighbours of words (table 5), and score how many have the word's class.

    Score, over all words except `</s>`: `neighbours_same_class_tsne`, the share (percent) of a
    word's k nearest neighbours that have its class. A class of at most k words cannot reach 100%.
    """
    scores = []
    class_tables = []
    neighbour_tables = []
    for run in runs:
        table, vectors = make_word_table(run, options.classes)
        class_tables.append(table[["word", "class"]].assign(task=run.task))
        is_word = (table["word"] != END).to_numpy()
        words = table["word"].to_numpy()[is_word]
        classes = table["class"].to_numpy()[is_word]
        points = project_tsne(vectors, options.seed)[is_word]
        k = options.k
        nearest = np.stack([find_nearest_rows(points, row, k) for row in range(len(words))])
        same = (classes[nearest] == classes[:, None]).mean()
        values = {"neighbours_same_class_tsne": (100 * same, "percent", len(words))}
        scores += run.make_scores(values)
        for word in options.words:
            for row in np.flatnonzero(words == word):
                neighbours = nearest[row]
                distance = np.linalg.norm(points[neighbours] - points[row], axis=1)
                columns = {
                    **run.columns,
                    "word": words[row],
                    "class": classes[row],
                    "rank": range(1, len(distance) + 1),
                    "neighbour": words[neighbours],
                    "neighbour_class": classes[neighbours],
                    "distance": distance,
                }
                neighbour_tables.append(pandas.DataFrame(columns)[[*RUN_COLUMNS, *COLUMNS]])
    all_classes = stack_tables(class_tables, ["word", "class"])
    files = {
        "neighbours": stack_tables(neighbour_tables, COLUMNS),
        "classes": all_classes[["task", "word", "class"]].drop_duplicates(),
    }
    return AnalysisResult(scores, files)
