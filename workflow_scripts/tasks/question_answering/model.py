"""An encoder that finds the first and last token of the answer to a question in a paragraph."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from workflow_scripts.models.heads import EncoderWithHeads
from workflow_scripts.models.importing import read_settings
from workflow_scripts.tasks.question_answering.batches import SpanBatch


class SpanModel(EncoderWithHeads):
    """Encoder with heads.span, linear d -> 2 on each token's state of one readout: scores of first and last token."""

    def __init__(self, inner: PreTrainedModel, readout: str, frozen: bool, dropout: float):
        super().__init__(inner, frozen)
        self.readout = readout
        layers = nn.Sequential(nn.Dropout(dropout), nn.Linear(inner.config.hidden_size, 2))
        self.heads = nn.ModuleDict({"span": layers})

    def forward(self, batch: SpanBatch) -> Tensor:
        """Score each token as the first and the last one, [B, 2, S]; -inf outside of [CLS] and the paragraph."""
        states = self.compute_states(batch.ids, batch.real, batch.types)[self.readout]
        scores = self.heads["span"](states).transpose(1, 2)
        return scores.masked_fill(~batch.allowed[:, None], -torch.inf)


def build(inner: PreTrainedModel, section: dict[str, Any]) -> SpanModel:
    """Build a trained encoder with a random head, in training mode. `section` is `model` of a spec."""
    s = read_settings(section)
    return SpanModel(inner, s.readout, s.frozen, s.dropout).train()


def find_best_spans(scores: Tensor, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return (score, first token, last token), each [B], of the most probable span of at most `longest` tokens.

    scores [B, 2, S]. [CLS], the first position, is no answer.
    """
    first, last = scores[:, 0, 1:], scores[:, 1, 1:]
    size = first.size(-1)
    summed = first[:, :, None] + last[:, None, :]
    position = torch.arange(size, device=scores.device)
    distance = position[None, :] - position[:, None]
    summed = summed.masked_fill((distance < 0) | (distance >= longest), -torch.inf)
    best, where = summed.flatten(1).max(-1)
    return best, where // size + 1, where % size + 1
