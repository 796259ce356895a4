"""Cross-entropy of the one token that answers a prompt."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from workflow_scripts.models.causal_lm import last_logits
from workflow_scripts.models.settings import read_settings
from workflow_scripts.objectives.settings import CrossEntropySettings

if TYPE_CHECKING:
    from workflow_scripts.training.prompt_batches import PromptBatch


def build(settings: dict) -> Callable[[nn.Module, "PromptBatch"], tuple[Tensor, dict[str, Tensor]]]:
    """objective(model, batch) -> (mean over prompts of -log p(label | prompt), in nats; parts).

    `settings`: label_smoothing.
    """
    label_smoothing = read_settings(CrossEntropySettings, settings, "objective").label_smoothing

    def objective(model: nn.Module, batch: "PromptBatch") -> tuple[Tensor, dict[str, Tensor]]:
        logits = last_logits(model, batch.ids, batch.last).float()
        loss = torch.nn.functional.cross_entropy(logits, batch.label, label_smoothing=label_smoothing)
        return loss, {"answer": loss.detach()}

    return objective
