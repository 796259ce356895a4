"""Scores without a model: overlaps of two phrases, and the constant answer for classes.

The overlaps are those of words and of sememes.

CAT scores the relatedness of phrases by the cosine of their states, and paraphrases on data where
nine in ten pairs are none. A model has learnt something only if it is better than these scores.
"""

import tempfile
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

import numpy as np

from workflow_scripts.analyses.options.training_free import Options
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.files import read_json
from workflow_scripts.data.formats import hownet
from workflow_scripts.data.prepared import read_table
from workflow_scripts.data.stand_ins import sememes as stand_in
from workflow_scripts.evaluation.scores import find_subset_rows, make_scores
from workflow_scripts.evaluation.sentence_metrics import compute_class_metrics, compute_correlations


def analyse(
    runs: Sequence[TrainedRun], options: Options, sources: dict[str, Path]
) -> AnalysisResult:
    """Score the data of `runs` by task and readout, without reading the runs.

    Readouts: for tasks with scores `word_overlap` and `sememe_overlap` (pearson, spearman, times
    100); for tasks with two classes `constant`, the most frequent class in training (accuracy,
    accuracy_label_0, f1, auc, in percent). An undefined metric, such as the correlation of an
    overlap that is the same for all pairs, gets a note.
    """
    split = options.split
    sememes = read_sememes_of_words(sources)
    result = AnalysisResult()
    for run in {run.task: run for run in runs}.values():
        has_classes = bool(read_json(run.dataset).get("labels"))
        table = read_table(run.data, split, ["first", "second", "label", "subset"])
        label = table["label"].to_numpy()
        if has_classes:
            answers = {"constant": np.full(len(label), find_most_frequent_class(run), float)}
        else:
            pairs = list(zip(table["first"].to_pylist(), table["second"].to_pylist(), strict=True))
            answers = {
                "word_overlap": compute_overlaps(pairs, {}),
                "sememe_overlap": compute_overlaps(pairs, sememes),
            }
        for readout, answer in answers.items():
            for subset, rows in find_subset_rows(table["subset"].to_numpy()).items():
                if has_classes:
                    metrics, reasons = compute_class_metrics(
                        answer[rows], answer[rows], label[rows]
                    )
                else:
                    metrics, reasons = compute_correlations(answer[rows], label[rows])
                columns = {
                    "task": run.task,
                    "split": split,
                    "subset": subset,
                    "readout": readout,
                    "protocol": run.protocol,
                }
                values = {name: (value, "percent", len(rows)) for name, value in metrics.items()}
                result.scores += make_scores(columns, values)
                for name, reason in reasons.items():
                    result.notes.append(f"{run.task}, {subset}, {readout}: no {name}: {reason}")
    return result


def read_sememes_of_words(sources: dict[str, Path]) -> dict[str, list[int]]:
    """Read the sememes of words from HowNet, or without sources from the stand-in."""
    if sources:
        sememes, _ = hownet.read_sememes(sources[hownet.SOURCES[0]].parent)
        return sememes
    with tempfile.TemporaryDirectory() as folder:
        stand_in.write_sememes(Path(folder))
        sememes, _ = hownet.read_sememes(Path(folder))
    return sememes


def find_most_frequent_class(run: TrainedRun) -> int:
    """Find the most frequent class in training, the lowest of equally frequent ones."""
    labels = read_table(run.data, "train", ["label"])["label"].to_numpy().astype(int)
    return int(np.bincount(labels).argmax())


def compute_overlaps(pairs: Iterable[tuple[str, str]], sememes: dict[str, list[int]]) -> np.ndarray:
    """Compute |A & B| / |A | B| of the sememes of each pair, [N]; 1 for two empty sets.

    If `sememes` is empty, the overlap is that of words.
    """
    overlaps = []
    for first, second in pairs:
        parts = _split_phrase(first, sememes)
        other_parts = _split_phrase(second, sememes)
        union = parts | other_parts
        if union:
            overlaps.append(len(parts & other_parts) / len(union))
        else:
            overlaps.append(1.0)
    return np.array(overlaps)


def _split_phrase(phrase: str, sememes: dict[str, list[int]]) -> set[Hashable]:
    """Return the sememes of a phrase, or its words if there are no sememes at all."""
    words = phrase.split()
    if not sememes:
        return set(words)
    parts: set[Hashable] = set()
    for word in words:
        parts.update(sememes.get(word, ()))
    return parts
