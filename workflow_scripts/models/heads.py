"""An encoder and what is trained on top of it."""

from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class EncoderWithHeads(nn.Module):
    """The encoder lies under the name that Hugging Face has for its family, so that a file of these weights is one of
    the encoder, too, whose reader leaves the heads out. A class of its own kind adds `heads`."""

    def __init__(self, inner: "PreTrainedModel", frozen: bool = False):
        super().__init__()
        self.prefix, self.frozen = inner.base_model_prefix, frozen
        self.add_module(self.prefix, inner.requires_grad_(not frozen))

    @property
    def encoder(self) -> "PreTrainedModel":
        """The encoder, without the heads."""
        return getattr(self, self.prefix)

    def train(self, mode: bool = True) -> "EncoderWithHeads":
        """A frozen encoder has no dropout either: what it says of a text is always the same."""
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self
