"""Predictions of sentences by readout, and their metrics by subset."""

from collections import defaultdict
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.common.progress import Reporter
from workflow_scripts.evaluation.scores import Score, UndefinedScore, find_subset_rows
from workflow_scripts.evaluation.sentence_metrics import compute_class_metrics, compute_correlations
from workflow_scripts.tasks.batching import find_file_order
from workflow_scripts.tasks.sentence_prediction.training_setup import (
    SentenceModel,
    Sentences,
    decide_classes,
)


class ReadoutOutputs(NamedTuple):
    """What a model gives for N items by a readout, in the order of the file.

    values: class scores [N, C] or numbers [N]. is_zero [N]: whether a state of an item is all zero.
    """

    values: Tensor
    is_zero: np.ndarray


class PredictedItems(NamedTuple):
    """The predicted classes or numbers of N items.

    values [N]. likelihood [N]: the probability of class 1 if there are two classes, else None.
    """

    values: np.ndarray
    likelihood: np.ndarray | None
    are_classes: bool


@torch.no_grad()
def predict_items(
    model: SentenceModel,
    sentences: Sentences,
    batch_tokens: int,
    device: torch.device,
    reporter: Reporter,
) -> dict[str, ReadoutOutputs]:
    """Return the outputs by readout: that of the head, or all readouts if there is no head."""
    values_of = defaultdict(list)
    zeros_of = defaultdict(list)
    batches = sentences.make_batches(batch_tokens, device)
    for rows, batch in batches:
        for readout, states in model.compute_cls_states(batch).items():
            if not model.heads or readout == model.readout:
                values_of[readout].append(model.predict(states).float().cpu())
                zeros_of[readout].append((states == 0).all(-1).any(-1).cpu())
        reporter.advance(len(rows))
    order = find_file_order(batches)
    outputs_of = {}
    for readout in values_of:
        values = torch.cat(values_of[readout])[order]
        is_zero = torch.cat(zeros_of[readout])[order].numpy()
        outputs_of[readout] = ReadoutOutputs(values, is_zero)
    return outputs_of


def decide_predictions(values: Tensor, has_classes: bool) -> PredictedItems:
    """Return the predictions by class scores [N, C], or by numbers [N]."""
    if has_classes:
        classes, likelihood = decide_classes(values)
        return PredictedItems(classes, likelihood, are_classes=True)
    return PredictedItems(values.numpy(), None, are_classes=False)


class SubsetScores(NamedTuple):
    """The scores of each subset, and the metrics that are undefined there."""

    scores: list[Score]
    undefined: list[UndefinedScore]


def score_subsets(
    predicted: PredictedItems, label: np.ndarray, subsets: np.ndarray
) -> SubsetScores:
    """Score predictions over all items and each subset. label, subsets: [N]."""
    scores = []
    undefined = []
    for subset, rows in find_subset_rows(subsets).items():
        if predicted.are_classes:
            likelihood = None
            if predicted.likelihood is not None:
                likelihood = predicted.likelihood[rows]
            values, reasons = compute_class_metrics(predicted.values[rows], likelihood, label[rows])
        else:
            values, reasons = compute_correlations(predicted.values[rows], label[rows])
        n = len(rows)
        for metric, value in values.items():
            scores.append(Score(metric, value, "percent", n, subset))
        for metric, reason in reasons.items():
            undefined.append(UndefinedScore(metric, reason, "percent", n, subset))
    return SubsetScores(scores, undefined)
