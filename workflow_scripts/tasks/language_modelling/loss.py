"""Cross-entropy of every token given the tokens before it."""

import torch
from torch import Tensor, nn

from workflow_scripts.tasks.language_modelling.batches import TextBatch


def compute_token_nll(model: nn.Module, batch: TextBatch, label_smoothing: float = 0.0) -> Tensor:
    """Return -log p(token | tokens before it) of every real token but the first of each text: [n], in nats."""
    states = model.base_model(input_ids=batch.ids, use_cache=False).last_hidden_state[:, :-1]
    predicted = batch.real[:, 1:]
    # No scores of the vocabulary are computed for padding, because they are the costly part.
    logits = model.get_output_embeddings()(states[predicted]).float()
    return torch.nn.functional.cross_entropy(
        logits, batch.ids[:, 1:][predicted], label_smoothing=label_smoothing, reduction="none"
    )
