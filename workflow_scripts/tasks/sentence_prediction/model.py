"""An encoder that predicts a class, a score, or the similarity of two sentences."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from workflow_scripts.common.validation import parse_as
from workflow_scripts.models.encoder.model import PAD
from workflow_scripts.models.heads import EncoderWithHeads
from workflow_scripts.models.importing import read_settings
from workflow_scripts.tasks.sentence_prediction.batches import SentenceBatch, StateBatch
from workflow_scripts.tasks.sentence_prediction.settings import Settings


class SentenceModel(EncoderWithHeads):
    """Encoder with heads.sentence on the last layer's state of [CLS] of one readout, with `outputs` numbers.

    The outputs are scores of several classes, or one number. Without a head the prediction is a cosine, and only the
    encoder is trained.
    """

    def __init__(
        self, inner: PreTrainedModel, readout: str, frozen: bool, outputs: int, dropout: float, settings: Settings
    ):
        super().__init__(inner, frozen)
        self.readout = readout
        self.heads = nn.ModuleDict()
        if settings.prediction == "head":
            width = inner.config.hidden_size
            if settings.head_layers == 1:
                layers = [nn.Dropout(dropout), nn.Linear(width, outputs)]
            else:
                first, last = nn.Linear(width, settings.head_width), nn.Linear(settings.head_width, outputs)
                layers = [first, nn.Tanh(), nn.Dropout(dropout), last]
            self.heads["sentence"] = nn.Sequential(*layers)

    @property
    def positions(self) -> int:
        """Number of tokens of a text, at most. RoBERTa's positions begin after that of padding."""
        return self.encoder.config.max_position_embeddings - (1 + PAD) * (self.prefix == "roberta")

    def compute_cls_states(self, batch: SentenceBatch) -> dict[str, Tensor]:
        """Return the last layer's state of [CLS] of each of an item's T texts, by readout: [B, T, d]."""
        ids, real, types = (tensor.flatten(0, 1) for tensor in (batch.ids, batch.real, batch.types))
        found = self.compute_states(ids, real, types)
        return {name: states[:, 0].unflatten(0, batch.ids.shape[:2]) for name, states in found.items()}

    def forward(self, batch: SentenceBatch | StateBatch) -> Tensor:
        """Return scores of the classes [B, C], or numbers [B]."""
        return self.predict(
            batch.states if isinstance(batch, StateBatch) else self.compute_cls_states(batch)[self.readout]
        )

    def predict(self, states: Tensor) -> Tensor:
        """Predict from states [B, T, d]; a cosine is 0 if one of the two states is all zero."""
        if "sentence" in self.heads:
            return self.heads["sentence"](states[:, 0]).squeeze(-1)
        return torch.nn.functional.cosine_similarity(states[:, 0].float(), states[:, 1].float(), dim=-1)


def build(inner: PreTrainedModel, spec: dict[str, Any], outputs: int) -> SentenceModel:
    """Build a trained encoder with a random head, in training mode."""
    s, problem = read_settings(spec["model"]), parse_as(Settings, spec["problem"], "problem")
    return SentenceModel(inner, s.readout, s.frozen, outputs, s.dropout, problem).train()
