"""Cross-entropy of every token given the tokens before it."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from workflow_scripts.tasks.language_modelling.batches import TextBatch


def compute_token_nll(model: nn.Module, batch: TextBatch, label_smoothing: float = 0.0) -> Tensor:
    """Return -log p(token | tokens before it) of every real token but the first of each text: [n], in nats."""
    states = model.base_model(input_ids=batch.ids, use_cache=False).last_hidden_state[:, :-1]
    predicted = batch.real[:, 1:]
    # Scores of the vocabulary are the costly part: none are made for padding.
    logits = model.get_output_embeddings()(states[predicted]).float()
    return torch.nn.functional.cross_entropy(
        logits, batch.ids[:, 1:][predicted], label_smoothing=label_smoothing, reduction="none"
    )


@dataclass(frozen=True)
class TokenLoss:
    """loss(model, batch) -> (mean of -log p(token | tokens before it) over the batch's tokens, in nats; parts)."""

    label_smoothing: float = 0.0

    def __call__(self, model: nn.Module, batch: TextBatch) -> tuple[Tensor, dict[str, Tensor]]:
        loss = compute_token_nll(model, batch, self.label_smoothing).mean()
        return loss, {"token": loss.detach()}
