"""Values of pairs of sentences with masked words, and metrics over them."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.tasks.masked_lm.batches import IGNORED, MaskedBatch
from workflow_scripts.tasks.masked_lm.model import (
    Pretraining,
    compute_masked_nll,
    compute_next_sentence_nll,
)


def score_pairs(model: Pretraining, states: Tensor, batch: MaskedBatch) -> dict[str, Tensor]:
    """Return [B] float64 of each pair: nats, number and right answers of masked tokens; whether `follows` is right."""
    chosen = batch.labels.ne(IGNORED)

    def per_pair(values: Tensor) -> Tensor:
        table = torch.zeros(chosen.shape, dtype=torch.float64, device=chosen.device)
        table[chosen] = values.double()
        return table.sum(1)

    right = model.heads["words"](states[chosen]).argmax(-1).eq(batch.labels[chosen])
    return {
        "nats": per_pair(compute_masked_nll(model, states, batch)),
        "masked": chosen.sum(1).double(),
        "right": per_pair(right),
        "follows_right": compute_next_sentence_nll(model, states, batch)
        .lt(torch.tensor(2.0).log())
        .double(),
    }


def score_rows(columns: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Compute the metrics over all pairs from the columns [N] of `score_pairs`."""
    masked = int(columns["masked"].sum())
    rows = [
        {
            "metric": "cross_entropy",
            "value": columns["nats"].sum() / masked,
            "unit": "nats",
            "n": masked,
        },
        {
            "metric": "mlm_accuracy",
            "value": 100 * columns["right"].sum() / masked,
            "unit": "percent",
            "n": masked,
        },
    ]
    if "follows_right" in columns:
        right = columns["follows_right"]
        rows.append(
            {
                "metric": "nsp_accuracy",
                "value": 100 * right.mean(),
                "unit": "percent",
                "n": len(right),
            }
        )
    return rows
