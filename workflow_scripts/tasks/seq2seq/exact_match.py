"""Exact match: the share of sentences whose whole output equals the reference, in percent."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from workflow_scripts.tasks.batching import PAD, Batch


def find_exact_matches(logits: Tensor, target_out: Tensor) -> Tensor:
    """Return [B] bool: whether every arg-max of logits [B, T, V] equals target_out [B, T], without padding.

    Under teacher forcing this equals "greedy decoding gives the reference": both read the same prefixes up to the first
    wrong token.
    """
    predicted = logits[..., PAD + 1 :].argmax(-1) + PAD + 1
    return ((predicted == target_out) | (target_out == PAD)).all(-1)


def score_teacher_forced(model: nn.Module, batches: Sequence[Batch]) -> dict[str, float]:
    """Return exact match (percent), mean cross-entropy and log-likelihood (nats per token), in one pass per batch.

    Call it in eval mode without gradients.
    """
    right = sentences = tokens = 0
    nats: Tensor | float = 0.0
    for batch in batches:
        logits = model(batch.source, batch.target_in).logits.float()
        right = right + find_exact_matches(logits, batch.target_out).sum()
        sentences += len(batch.target_out)
        flat = batch.target_out.flatten()
        nats = nats + torch.nn.functional.cross_entropy(logits.flatten(0, 1), flat, ignore_index=PAD, reduction="sum")
        tokens = tokens + (flat != PAD).sum()
    cross_entropy = float(nats) / float(tokens)
    return {
        "exact_match": 100 * float(right) / sentences,
        "cross_entropy": cross_entropy,
        "log_likelihood": -cross_entropy,
    }
