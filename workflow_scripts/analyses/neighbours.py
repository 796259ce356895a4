"""The words nearest to a word, in the plane of t-SNE and in the space of embeddings (table 5)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas

from workflow_scripts.analyses.embedding_space import END, make_word_table, project_tsne
from workflow_scripts.analyses.trained_runs import RUN_COLUMNS, AnalysisResult, TrainedRun, make_score_row, stack_tables
from workflow_scripts.common.options import merge_options

COLUMNS = [*RUN_COLUMNS, "space", "word", "class", "rank", "neighbour", "neighbour_class", "distance"]


def find_nearest_rows(points: np.ndarray, row: int, k: int) -> np.ndarray:
    """Rows of the k points of [N, d] nearest to `row` by Euclidean distance, nearest first; of equals the lower row."""
    distance = np.linalg.norm(points.astype(np.float64) - points[row].astype(np.float64), axis=1)
    distance[row] = np.inf
    return np.argsort(distance, kind="stable")[:k]


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Nearest neighbours of `words` (all, for the scores), as in table 5.

    options:
        words: whose neighbours are written to neighbours.csv, one row per neighbour with its class and distance; the
            classes of all words go to classes.csv.
        k: neighbours per word.
        classes: `scan` or `cogs`; seed: of t-SNE.
    Scores, over all words but `</s>`: `neighbours_same_class_tsne` and `neighbours_same_class_embedding`, the share
    (percent) of a word's k nearest that are of its own syntactic class. With k above the size of a class less one, a
    class cannot reach 100%.
    """
    given = merge_options(options, words=[], k=10, classes="cogs", seed=0)
    scores, rows, classes = [], [], []
    for run in runs:
        table, vectors = make_word_table(run, given["classes"])
        classes.append(table[["word", "class"]].assign(task=run.task))
        spaces = {"tsne": project_tsne(vectors, given["seed"]), "embedding": vectors}
        real = np.flatnonzero(table["word"] != END)
        words, of_class = table["word"].to_numpy()[real], table["class"].to_numpy()[real]
        for space, points in spaces.items():
            points = points[real]
            nearest = np.stack([find_nearest_rows(points, row, given["k"]) for row in range(len(real))])
            same = (of_class[nearest] == of_class[:, None]).mean()
            scores.append(make_score_row(run, f"neighbours_same_class_{space}", 100 * same, "percent", len(real)))
            for row in (row for word in given["words"] for row in np.flatnonzero(words == word)):
                distance = np.linalg.norm(points[nearest[row]] - points[row], axis=1)
                for rank, (other, far) in enumerate(zip(nearest[row], distance, strict=True), start=1):
                    found = {"space": space, "word": words[row], "class": of_class[row], "rank": rank}
                    found |= {"neighbour": words[other], "neighbour_class": of_class[other], "distance": far}
                    rows.append({**run.columns, **found})
    known = stack_tables(classes, ["word", "class"])[["task", "word", "class"]].drop_duplicates()
    return AnalysisResult(scores, {"neighbours": pandas.DataFrame(rows, columns=COLUMNS), "classes": known})
