"""An encoder with trainable heads."""

from torch import Tensor, nn
from transformers import PreTrainedModel


class EncoderWithHeads(nn.Module):
    """Base class of an encoder with `heads`.

    The encoder's attribute has the name of its Hugging Face family, so that its weights load without the heads.
    """

    def __init__(self, inner: PreTrainedModel, frozen: bool = False):
        super().__init__()
        self.prefix, self.frozen = inner.base_model_prefix, frozen
        self.add_module(self.prefix, inner.requires_grad_(not frozen))

    @property
    def encoder(self) -> PreTrainedModel:
        """The encoder, without the heads."""
        return getattr(self, self.prefix)

    def compute_states(self, ids: Tensor, attention_mask: Tensor, token_types: Tensor) -> dict[str, Tensor]:
        """Return the states of the last layer by readout, each [B, S, d]: `last`, or those that the encoder defines.

        ids, token_types [B, S] int64; attention_mask [B, S], 0 on padding. Models without token types ignore these.
        """
        types = {"token_type_ids": token_types} if getattr(self.encoder.config, "type_vocab_size", 1) > 1 else {}
        output = self.encoder(input_ids=ids, attention_mask=attention_mask, **types)
        return getattr(output, "readouts", {"last": output.last_hidden_state})

    def train(self, mode: bool = True) -> "EncoderWithHeads":
        """Set the mode. A frozen encoder stays in eval mode, so its states do not change."""
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self
