"""Cross-entropy of the next target word."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from workflow_scripts.models.settings import read_settings
from workflow_scripts.objectives.settings import CrossEntropySettings

if TYPE_CHECKING:
    from workflow_scripts.training.batches import Batch


def word_cross_entropy(logits: Tensor, target: Tensor, label_smoothing: float) -> Tensor:
    """(1 - eps) mean_n(-log p(y_n)) - eps mean_{n,v}(log p(v)), over the words that are not padding.

    logits [B, T, V], target [B, T] -> scalar, in nats.
    """
    real = target.ne(0)
    return torch.nn.functional.cross_entropy(logits[real].float(), target[real], label_smoothing=label_smoothing)


def build(settings: dict) -> Callable[[torch.nn.Module, "Batch"], tuple[Tensor, dict[str, Tensor]]]:
    """objective(model, batch) -> (loss, parts); `settings`: label_smoothing."""
    label_smoothing = read_settings(CrossEntropySettings, settings, "objective").label_smoothing

    def objective(model: torch.nn.Module, batch: "Batch") -> tuple[Tensor, dict[str, Tensor]]:
        loss = word_cross_entropy(model(batch.source, batch.target_in).logits, batch.target_out, label_smoothing)
        return loss, {"word": loss.detach()}

    return objective
