"""Scores without a model: the overlap of words and of sememes of two phrases, and the constant answer for classes.

CAT scores the relatedness of phrases by the cosine of their states, and paraphrases on data where nine in ten pairs are
none. A model has learnt something only if it is better than these scores.
"""

import tempfile
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.files import read_json
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.data.formats import hownet
from workflow_scripts.data.prepared import read_table
from workflow_scripts.data.stand_ins import sememes as stand_in
from workflow_scripts.evaluation.scores import find_subset_rows, make_scores
from workflow_scripts.evaluation.sentence_metrics import compute_class_metrics, compute_correlations


def analyse(
    runs: Sequence[TrainedRun], options: dict[str, Any], sources: dict[str, Path]
) -> AnalysisResult:
    """Score the data of `runs` by task and readout, without reading the runs; options: split.

    Readouts: for tasks with scores `word_overlap` and `sememe_overlap` (pearson, spearman, times 100); for tasks with
    two classes `constant`, the most frequent class in training (accuracy, accuracy_label_0, f1, auc, in percent). An
    undefined metric, such as the correlation of an overlap that is the same for all pairs, gets a note.
    """
    given = merge_options(options, split="test")
    if sources:
        known, _ = hownet.read_sememes(sources[hownet.SOURCES[0]].parent)
    else:
        with tempfile.TemporaryDirectory() as folder:
            stand_in.write_sememes(Path(folder))
            known, _ = hownet.read_sememes(Path(folder))
    found = AnalysisResult()
    for run in {run.task: run for run in runs}.values():
        names = read_json(run.data / "dataset.json")["labels"]
        table = read_table(run.data, given["split"], ["first", "second", "label", "subset"])
        label = table["label"].to_numpy()
        if names:
            train = read_table(run.data, "train", ["label"])["label"].to_numpy().astype(int)
            answers = {"constant": np.full(len(label), np.bincount(train).argmax(), float)}
        else:
            pairs = list(zip(table["first"].to_pylist(), table["second"].to_pylist(), strict=True))
            answers = {
                "word_overlap": compute_overlaps(pairs, {}),
                "sememe_overlap": compute_overlaps(pairs, known),
            }
        for readout, answer in answers.items():
            for subset, rows in find_subset_rows(table["subset"].to_numpy()).items():
                if names:
                    values, undefined = compute_class_metrics(
                        answer[rows], answer[rows], label[rows]
                    )
                else:
                    values, undefined = compute_correlations(answer[rows], label[rows])
                where = {
                    "task": run.task,
                    "split": given["split"],
                    "subset": subset,
                    "readout": readout,
                }
                where["protocol"] = run.protocol
                found.scores += make_scores(
                    where, {name: (v, "percent", len(rows)) for name, v in values.items()}
                )
                found.notes += [
                    f"{run.task}, {subset}, {readout}: no {name}: {why}"
                    for name, why in undefined.items()
                ]
    return found


def compute_overlaps(pairs: Iterable[tuple[str, str]], known: dict[str, list[int]]) -> np.ndarray:
    """Compute |A & B| / |A | B| of each pair, [N], of sememes, or of words if none is `known`; 1 for two empty sets."""

    def parts(phrase: str) -> set[Hashable]:
        words = phrase.split()
        return {number for word in words for number in known.get(word, ())} if known else set(words)

    sets = ((parts(first), parts(second)) for first, second in pairs)
    return np.array([len(a & b) / len(a | b) if a | b else 1.0 for a, b in sets])
