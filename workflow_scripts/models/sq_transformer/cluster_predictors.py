"""Priors p(z | context) of SQ-Transformer: small Transformers that predict the code of a token from its context."""

import torch
from torch import Tensor, nn

from workflow_scripts.models.layers.transformer import DecoderLayer, EncoderLayer, make_causal_mask
from workflow_scripts.models.sq_transformer.settings import Settings


def sample_masked_positions(lengths: Tensor) -> Tensor:
    """Sample one position per sentence, uniformly over all but the end symbol: lengths [B] -> positions [B]."""
    return (torch.rand(lengths.shape, device=lengths.device) * (lengths - 1)).long()


class SentencePredictor(nn.Module):
    """p(z_n | context), with logits h Z^T + b and the codebook Z.

    The context is the whole input sentence, in which position n is masked, or with `causal` the positions up to n.
    """

    def __init__(self, layers: int, settings: Settings, codes: int, causal: bool):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(settings) for _ in range(layers))
        self.bias = _bias(codes, settings.width)
        self.causal = causal

    def forward(self, inputs: Tensor, mask: Tensor, codebook: Tensor, at: Tensor | None = None) -> Tensor:
        """Return logits [S, B, K] for inputs [S, B, d], a padding mask [B, 1, 1, S] and codebook [K, d].

        With `at` (positions [B]) return that position of each sentence only: [1, B, K].
        """
        if self.causal:
            # Padding is at the end, where no real position sees it.
            mask = make_causal_mask(inputs.size(0), inputs.device)
        for layer in self.layers[:-1]:
            inputs = layer(inputs, mask)
        return nn.functional.linear(self.layers[-1](inputs, mask, at=at), codebook, self.bias)


class CrossPredictor(nn.Module):
    """p(z_t | input up to t, the encoder's output x_L), with logits h Z^T + b and the codebook Z (official code)."""

    def __init__(self, layers: int, settings: Settings, codes: int):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(settings) for _ in range(layers))
        self.bias = _bias(codes, settings.width)

    def forward(self, inputs: Tensor, memory: Tensor, memory_mask: Tensor, codebook: Tensor) -> Tensor:
        """Return logits [T, B, K] for inputs [T, B, d], x_L [S, B, d], its mask [B, 1, 1, S], codebook [K, d]."""
        mask = make_causal_mask(inputs.size(0), inputs.device)
        for layer in self.layers:
            inputs = layer(inputs, layer.start(memory, memory), memory_mask, mask)
        return nn.functional.linear(inputs, codebook, self.bias)


def _bias(codes: int, width: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(codes).uniform_(-(width**-0.5), width**-0.5))
