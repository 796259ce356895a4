"""Predictions of sentences by readout, and their metrics by subset."""

from collections import defaultdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.common.progress import Reporter
from workflow_scripts.evaluation.scores import find_subset_rows
from workflow_scripts.evaluation.sentence_metrics import compute_class_metrics, compute_correlations
from workflow_scripts.tasks.sentence_prediction.problem import (
    SentenceModel,
    Sentences,
)


@torch.no_grad()
def predict_items(
    model: SentenceModel,
    sentences: Sentences,
    batch_tokens: int,
    device: torch.device,
    reporter: Reporter,
) -> tuple[dict[str, Tensor], dict[str, np.ndarray]]:
    """Return by readout: class scores [N, C] or numbers [N], and whether a state of an item is all zero [N]."""
    found, zero = defaultdict(list), defaultdict(list)
    batches = sentences.make_batches(batch_tokens, device)
    for rows, batch in zip(*batches, strict=True):
        for readout, states in model.compute_cls_states(batch).items():
            if not model.heads or readout == model.readout:
                found[readout].append(model.predict(states).float().cpu())
                zero[readout].append((states == 0).all(-1).any(-1).cpu())
        reporter.advance(len(rows))
    order = np.argsort(np.concatenate(batches[0]))
    predicted = {readout: torch.cat(parts)[order] for readout, parts in found.items()}
    return predicted, {readout: torch.cat(zero[readout])[order].numpy() for readout in found}


def score_subsets(
    predicted: np.ndarray,
    likelihood: np.ndarray | None,
    label: np.ndarray,
    subsets: np.ndarray,
    classes: bool,
) -> list[dict[str, Any]]:
    """Return one row per metric and subset. An undefined metric has a `reason` instead of a value.

    predicted, label, subsets [N]. likelihood [N]: the probability of class 1, or None.
    """
    rows = []
    for subset, chosen in find_subset_rows(subsets).items():
        if classes:
            likely = None if likelihood is None else likelihood[chosen]
            values, reasons = compute_class_metrics(predicted[chosen], likely, label[chosen])
        else:
            values, reasons = compute_correlations(predicted[chosen], label[chosen])
        where = {"subset": subset, "n": len(chosen)}
        rows += [{**where, "metric": metric, "value": value} for metric, value in values.items()]
        rows += [
            {**where, "metric": metric, "reason": reason} for metric, reason in reasons.items()
        ]
    return rows
