"""An encoder with trainable heads."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor, nn

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class EncoderWithHeads(nn.Module):
    """Base class of an encoder with `heads`.

    The encoder has the attribute name of its Hugging Face family, so that its weights can be loaded without the heads.
    """

    def __init__(self, inner: "PreTrainedModel", hidden: Callable[..., dict[str, Tensor]], frozen: bool = False):
        """`hidden(encoder, ids, attention_mask, token_types)` gives states by readout, each [B, S, d]."""
        super().__init__()
        self._hidden = hidden
        self.prefix, self.frozen = inner.base_model_prefix, frozen
        self.add_module(self.prefix, inner.requires_grad_(not frozen))

    @property
    def encoder(self) -> "PreTrainedModel":
        """The encoder, without the heads."""
        return getattr(self, self.prefix)

    def hidden(self, ids: Tensor, attention_mask: Tensor, token_types: Tensor) -> dict[str, Tensor]:
        """States of the encoder by readout, each [B, S, d], from tensors [B, S]."""
        return self._hidden(self.encoder, ids, attention_mask, token_types)

    def train(self, mode: bool = True) -> "EncoderWithHeads":
        """Set the mode. A frozen encoder stays in eval mode, so that its states never change."""
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self
