"""An encoder that finds the answer to a question in a paragraph: where it begins, and where it ends."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from workflow_scripts.models import encoder
from workflow_scripts.models.heads import EncoderWithHeads
from workflow_scripts.training.state import load_weights, read_weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from workflow_scripts.training.span_batches import SpanBatch


class SpanModel(EncoderWithHeads):
    """heads.span is one linear layer d -> 2 on each token's state of one readout: scores of the first and of the last
    token."""

    def __init__(self, inner: "PreTrainedModel", readout: str, frozen: bool, dropout: float):
        super().__init__(inner, frozen)
        self.readout = readout
        layers = nn.Sequential(nn.Dropout(dropout), nn.Linear(inner.config.hidden_size, 2))
        self.heads = nn.ModuleDict({"span": layers})

    def forward(self, batch: "SpanBatch") -> Tensor:
        """Scores [B, 2, S] of each token as the first and as the last one: -inf on what is neither [CLS] nor of the
        paragraph."""
        states = encoder.hidden(self.encoder, batch.ids, batch.real, batch.types)[self.readout]
        scores = self.heads["span"](states).transpose(1, 2)
        return scores.masked_fill(~batch.allowed[:, None], -torch.inf)


def build(inner: "PreTrainedModel", model_settings: dict) -> SpanModel:
    """A trained encoder with a head drawn from torch's global generator, in training mode."""
    s = encoder.read_encoder_settings(model_settings)
    return SpanModel(inner, s.readout, s.frozen, s.dropout).train()


def load(folder: Path, model_settings: dict) -> SpanModel:
    """Encoder and head of a folder, in training mode. Raises UserError where files are missing, broken or another's."""
    model = build(encoder.load(folder, model_settings), model_settings)
    file = folder / "model.safetensors"
    load_weights(model, read_weights(file), file)
    return model


def best_spans(scores: Tensor, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """(score [B], first token [B], last token [B]) of the likeliest span of at most `longest` tokens, from scores
    [B, 2, S]. [CLS], the first position, is no answer."""
    first, last = scores[:, 0, 1:], scores[:, 1, 1:]
    size = first.size(-1)
    summed = first[:, :, None] + last[:, None, :]
    position = torch.arange(size, device=scores.device)
    distance = position[None, :] - position[:, None]
    summed = summed.masked_fill((distance < 0) | (distance >= longest), -torch.inf)
    best, where = summed.flatten(1).max(-1)
    return best, where // size + 1, where % size + 1
