"""Cross-entropy of the single token that answers a prompt."""

import torch
from torch import Tensor, nn

from workflow_scripts.models.causal_lm.model import compute_last_logits
from workflow_scripts.tasks.prompt.batches import PromptBatch


def compute_answer_loss(
    model: nn.Module, batch: PromptBatch, label_smoothing: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (mean over prompts of -log p(label | prompt), in nats; parts)."""
    logits = compute_last_logits(model, batch.ids, batch.last).float()
    loss = torch.nn.functional.cross_entropy(logits, batch.label, label_smoothing=label_smoothing)
    return loss, {"answer": loss.detach()}
