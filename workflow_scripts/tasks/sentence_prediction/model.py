"""An encoder that predicts a class, a score, or the similarity of two sentences."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from workflow_scripts.common.options import drop_name
from workflow_scripts.common.validation import parse_as
from workflow_scripts.models.encoder.model import PAD
from workflow_scripts.models.heads import EncoderWithHeads
from workflow_scripts.models.importing import import_model
from workflow_scripts.models.weights import load_weights, read_weights
from workflow_scripts.tasks.sentence_prediction.batches import SentenceBatch, StateBatch
from workflow_scripts.tasks.sentence_prediction.settings import Settings

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class SentenceModel(EncoderWithHeads):
    """Encoder with heads.sentence on the last layer's state of [CLS] of one readout, with `outputs` numbers.

    The outputs are scores of several classes, or one number. Without a head the prediction is a cosine, and only the
    encoder is trained.
    """

    def __init__(
        self, inner: "PreTrainedModel", readout: str, frozen: bool, outputs: int, dropout: float, settings: Settings
    ):
        super().__init__(inner, frozen)
        self.readout = readout
        self.heads = nn.ModuleDict()
        if settings.prediction == "head":
            self.heads["sentence"] = build_head(inner.config.hidden_size, outputs, dropout, settings)

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
        states = batch.states if isinstance(batch, StateBatch) else self.compute_cls_states(batch)[self.readout]
        if "sentence" not in self.heads:
            return compute_cosine(states)
        return self.heads["sentence"](states[:, 0]).squeeze(-1)


def build_head(width: int, outputs: int, dropout: float, settings: Settings) -> nn.Sequential:
    """Build dropout and a linear layer d -> outputs, after a layer of `head_width` with tanh if there are two."""
    if settings.head_layers == 1:
        return nn.Sequential(nn.Dropout(dropout), nn.Linear(width, outputs))
    inner = settings.head_width
    return nn.Sequential(nn.Linear(width, inner), nn.Tanh(), nn.Dropout(dropout), nn.Linear(inner, outputs))


def compute_cosine(states: Tensor) -> Tensor:
    """Return the cosine of the two states of an item, [B, 2, d] -> [B]; 0 if one of them is all zero."""
    return torch.nn.functional.cosine_similarity(states[:, 0].float(), states[:, 1].float(), dim=-1)


def build(inner: "PreTrainedModel", spec: dict[str, Any], outputs: int) -> SentenceModel:
    """Build a trained encoder with a random head, in training mode."""
    module, problem = import_model(spec["model"]), parse_as(Settings, spec["problem"], "problem")
    s = parse_as(module.Settings, drop_name(spec["model"]), "model")
    return SentenceModel(inner, s.readout, s.frozen, outputs, s.dropout, problem).train()


def load_sentence_model(folder: Path, spec: dict[str, Any], outputs: int) -> SentenceModel:
    """Load encoder and head, in training mode. Raises UserError if files are missing, broken or of another run."""
    model = build(import_model(spec["model"]).load_model(folder, drop_name(spec["model"])), spec, outputs)
    file = folder / "model.safetensors"
    load_weights(model, read_weights(file), file)
    return model
