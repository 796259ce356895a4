"""Values of pairs of sentences with masked words, and metrics over them."""

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.evaluation.scores import Score
from workflow_scripts.tasks.masked_lm.batches import IGNORED, MaskedBatch
from workflow_scripts.tasks.masked_lm.model import (
    Pretraining,
    compute_masked_nll,
    compute_next_sentence_nll,
)


def score_pairs(model: Pretraining, states: Tensor, batch: MaskedBatch) -> dict[str, Tensor]:
    """Return [B] float64 of each pair.

    They are nats, number and right answers of masked tokens, and whether `follows` is right.
    """
    is_masked = batch.labels.ne(IGNORED)
    nats = compute_masked_nll(model, states, batch)
    predicted = model.heads["words"](states[is_masked]).argmax(-1)
    is_right = predicted.eq(batch.labels[is_masked])
    next_sentence_nats = compute_next_sentence_nll(model, states, batch)
    return {
        "nats": _sum_by_pair(nats, is_masked),
        "masked": is_masked.sum(1).double(),
        "right": _sum_by_pair(is_right, is_masked),
        # a probability above 1/2
        "follows_right": next_sentence_nats.lt(torch.tensor(2.0).log()).double(),
    }


def _sum_by_pair(values: Tensor, is_masked: Tensor) -> Tensor:
    """Sum the values [n] of the masked tokens of each pair: is_masked [B, S] -> [B] float64."""
    table = torch.zeros(is_masked.shape, dtype=torch.float64, device=is_masked.device)
    table[is_masked] = values.double()
    return table.sum(1)


def score_values(columns: dict[str, np.ndarray]) -> list[Score]:
    """Compute the scores over all pairs from the columns [N] of `score_pairs`."""
    masked = int(columns["masked"].sum())
    cross_entropy = columns["nats"].sum() / masked
    accuracy = 100 * columns["right"].sum() / masked
    scores = [
        Score("cross_entropy", float(cross_entropy), "nats", masked),
        Score("mlm_accuracy", float(accuracy), "percent", masked),
    ]
    if "follows_right" in columns:
        is_right = columns["follows_right"]
        accuracy = 100 * float(is_right.mean())
        scores.append(Score("nsp_accuracy", accuracy, "percent", len(is_right)))
    return scores
