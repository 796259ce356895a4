"""An encoder with the heads of BERT's pre-training: vocabulary and next sentence."""

from typing import TYPE_CHECKING, Any

from torch import nn

from workflow_scripts.common.options import drop_name
from workflow_scripts.models.heads import EncoderWithHeads
from workflow_scripts.models.importing import import_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Pretraining(EncoderWithHeads):
    """Encoder with heads.words (linear, d -> V) and heads.next_sentence (first token's state -> 2 scores).

    The second score is that of a sentence which follows. All readouts share the heads.
    """

    def __init__(self, inner: "PreTrainedModel", tied: bool):
        super().__init__(inner)
        embeddings = inner.get_input_embeddings().weight
        vocabulary, width = embeddings.shape
        self.heads = nn.ModuleDict({"words": nn.Linear(width, vocabulary), "next_sentence": nn.Linear(width, 2)})
        for head in self.heads.values():
            nn.init.normal_(head.weight, std=inner.config.initializer_range)
            nn.init.zeros_(head.bias)
        if tied:
            self.heads["words"].weight = embeddings


def build(section: dict[str, Any], vocabulary: int) -> Pretraining:
    """Build encoder and heads with random weights, in training mode. `section` is `model` of a spec."""
    module, settings = import_model(section), drop_name(section)
    return Pretraining(module.build(settings, vocabulary), settings.get("tied", False))
