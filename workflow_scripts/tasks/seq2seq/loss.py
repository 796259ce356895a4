"""Cross-entropy of the next target word."""

from dataclasses import dataclass

import torch
from torch import Tensor

from workflow_scripts.tasks.batching import Batch


def compute_word_cross_entropy(logits: Tensor, target: Tensor, label_smoothing: float) -> Tensor:
    """(1 - eps) mean_n(-log p(y_n)) - eps mean_{n,v}(log p(v)), over the words that are not padding.

    logits [B, T, V], target [B, T] -> scalar, in nats.
    """
    real = target.ne(0)
    return torch.nn.functional.cross_entropy(logits[real].float(), target[real], label_smoothing=label_smoothing)


@dataclass(frozen=True)
class WordLoss:
    """loss(model, batch) -> (cross-entropy of the target's words, parts)."""

    label_smoothing: float = 0.0

    def __call__(self, model: torch.nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (loss, parts) of a batch."""
        logits = model(batch.source, batch.target_in).logits
        loss = compute_word_cross_entropy(logits, batch.target_out, self.label_smoothing)
        return loss, {"word": loss.detach()}
