"""Cross-entropy of every token of a text given those before it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from workflow_scripts.models.settings import read_settings
from workflow_scripts.objectives.settings import CrossEntropySettings

if TYPE_CHECKING:
    from workflow_scripts.training.prompt_batches import TextBatch


def token_nats(model: nn.Module, batch: "TextBatch", label_smoothing: float = 0.0) -> Tensor:
    """-log p(token | tokens before it) of every real token but the first of each text: [n], in nats."""
    states = model.base_model(input_ids=batch.ids, use_cache=False).last_hidden_state[:, :-1]
    predicted = batch.real[:, 1:]
    # Scores of the vocabulary are the costly part: none are made for padding.
    logits = model.get_output_embeddings()(states[predicted]).float()
    return torch.nn.functional.cross_entropy(
        logits, batch.ids[:, 1:][predicted], label_smoothing=label_smoothing, reduction="none"
    )


def build(settings: dict) -> Callable[[nn.Module, "TextBatch"], tuple[Tensor, dict[str, Tensor]]]:
    """objective(model, batch) -> (mean of -log p(token | tokens before it) over the batch's tokens, in nats; parts).

    `settings`: label_smoothing.
    """
    label_smoothing = read_settings(CrossEntropySettings, settings, "objective").label_smoothing

    def objective(model: nn.Module, batch: "TextBatch") -> tuple[Tensor, dict[str, Tensor]]:
        loss = token_nats(model, batch, label_smoothing).mean()
        return loss, {"token": loss.detach()}

    return objective
