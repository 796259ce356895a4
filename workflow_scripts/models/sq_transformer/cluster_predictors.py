"""Cluster prediction priors: small Transformers that predict the code of a token from its context."""

import torch
from torch import Tensor, nn

from workflow_scripts.models.layers.transformer import DecoderLayer, EncoderLayer, LayerSettings, make_causal_mask


def sample_masked_positions(lengths: Tensor) -> Tensor:
    """One position per sentence, uniform over all but its last (the end symbol): lengths [B] -> positions [B]."""
    return (torch.rand(lengths.shape, device=lengths.device) * (lengths - 1)).long()


class SentencePredictor(nn.Module):
    """p(z_n | context), the context being the rest of the sentence (`causal` False) or what stands before n.

    Logits are h Z^T + b with the codebook Z.
    """

    def __init__(self, layers: int, settings: LayerSettings, codes: int, causal: bool):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(settings) for _ in range(layers))
        self.bias = _bias(codes, settings.width)
        self.causal = causal

    def forward(self, inputs: Tensor, mask: Tensor, codebook: Tensor, at: Tensor | None = None) -> Tensor:
        """inputs [S, B, d], padding mask [B, 1, 1, S], codebook [K, d] -> logits [S, B, K].

        With `at` (positions [B]) only the logits of that position of each sentence: [1, B, K].
        """
        if self.causal:
            # Padding stands at the end, where no real position sees it.
            mask = make_causal_mask(inputs.size(0), inputs.device)
        for layer in self.layers[:-1]:
            inputs = layer(inputs, mask)
        return nn.functional.linear(self.layers[-1](inputs, mask, at=at), codebook, self.bias)


class CrossPredictor(nn.Module):
    """p(z_t | what stands before t, the encoder's output x_L). Logits are h Z^T + b with the codebook Z."""

    def __init__(self, layers: int, settings: LayerSettings, codes: int):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(settings) for _ in range(layers))
        self.bias = _bias(codes, settings.width)

    def forward(self, inputs: Tensor, memory: Tensor, memory_mask: Tensor, codebook: Tensor) -> Tensor:
        """inputs [T, B, d], memory x_L [S, B, d], its padding mask [B, 1, 1, S], codebook [K, d] -> [T, B, K]."""
        mask = make_causal_mask(inputs.size(0), inputs.device)
        for layer in self.layers:
            inputs = layer(inputs, layer.start(memory, memory), memory_mask, mask)
        return nn.functional.linear(inputs, codebook, self.bias)


def _bias(codes: int, width: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(codes).uniform_(-(width**-0.5), width**-0.5))
