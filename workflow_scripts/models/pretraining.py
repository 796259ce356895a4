"""An encoder with the heads of BERT's pre-training: scores of the vocabulary, and of the next sentence."""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from workflow_scripts.models import encoder
from workflow_scripts.models.heads import EncoderWithHeads

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Pretraining(EncoderWithHeads):
    """heads.words is a linear layer d -> V, heads.next_sentence one from the first token's state to 2 scores; the
    second is that of a sentence which follows. The same heads read every readout.
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

    def hidden(self, ids: Tensor, attention_mask: Tensor, token_types: Tensor) -> dict[str, Tensor]:
        """What `encoder.hidden` gives, from the same tensors [B, S]."""
        return encoder.hidden(self.encoder, ids, attention_mask, token_types)


def build(settings: dict, vocabulary: int) -> Pretraining:
    """Encoder and heads drawn from torch's global generator, in training mode."""
    inner = encoder.build(settings, vocabulary)
    return Pretraining(inner, encoder.read_encoder_settings(settings).tied)
