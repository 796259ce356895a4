"""Cross-entropy of the single token that answers a prompt."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from workflow_scripts.models.causal_lm.model import compute_last_logits
from workflow_scripts.tasks.prompt.batches import PromptBatch


@dataclass(frozen=True)
class AnswerLoss:
    """loss(model, batch) -> (mean over prompts of -log p(label | prompt), in nats; parts)."""

    label_smoothing: float = 0.0

    def __call__(self, model: nn.Module, batch: PromptBatch) -> tuple[Tensor, dict[str, Tensor]]:
        logits = compute_last_logits(model, batch.ids, batch.last).float()
        loss = torch.nn.functional.cross_entropy(logits, batch.label, label_smoothing=self.label_smoothing)
        return loss, {"answer": loss.detach()}
