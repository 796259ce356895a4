"""LRF (Zheng et al. 2024): the Transformer with fuse-attention before the feed-forward part of its layers."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from workflow_scripts.common.validation import parse_as
from workflow_scripts.models.layers.transformer import (
    DecoderLayer,
    EncoderLayer,
    LayerCache,
    make_causal_mask,
    make_padding_mask,
)
from workflow_scripts.models.lrf.fuse_attention import FuseAttention, FuseSublayer
from workflow_scripts.models.lrf.settings import Settings
from workflow_scripts.models.transformer.model import Cache, EncoderOutput, Seq2Seq


class FusedLayer(nn.Module):
    """Layer of the plain Transformer with fuse-attention (if not None) before its feed-forward part."""

    def __init__(self, layer: EncoderLayer | DecoderLayer, fuse: FuseSublayer | None):
        super().__init__()
        self.layer, self.fuse = layer, fuse
        # The rest of the layer ends with its last attention.
        self.feed_forward, layer.feed_forward = layer.feed_forward, nn.Identity()

    def start(self, memory_key: Tensor, memory_value: Tensor) -> LayerCache:
        """Return a new cache; see DecoderLayer."""
        return self.layer.start(memory_key, memory_value)

    def forward(self, earlier: Sequence[Tensor], *attention: Tensor | LayerCache | None) -> Tensor:
        """Return H^l [S, N, d] from H^0 .. H^{l-1}. `attention`: the arguments of the plain layer after H^{l-1}."""
        states = self.layer(earlier[-1], *attention)
        return self.feed_forward(self.fuse(states, earlier) if self.fuse else states)

    def compute_fuse_weights(self, earlier: Sequence[Tensor], *attention: Tensor | LayerCache | None) -> Tensor:
        """Return the weights of fuse-attention for the inputs of forward: [S, N, heads, l]."""
        return self.fuse.compute_weights(self.layer(earlier[-1], *attention), earlier)


class FusedTransformer(Seq2Seq):
    """Seq2Seq with fuse-attention in the layers of the encoder, the decoder, or both (`fuse_in`).

    Layer l fuses the outputs H^0 .. H^{l-1} of the earlier layers of its own side; H^0 are the embedded tokens.
    """

    settings: Settings

    def __init__(self, settings: Settings, source_vocabulary: int, target_vocabulary: int):
        super().__init__(settings, source_vocabulary, target_vocabulary)
        # Initialised after the plain Transformer's weights, so that both models share these for an equal seed.
        sizes = (settings.width, settings.heads)
        shared = self._sublayer(*sizes) if settings.fuse_shared else None
        for side in ("encoder", "decoder"):
            layers, fuses = getattr(self, side), settings.fuse_in in ("both", side)
            fused = (FusedLayer(layer, (shared or self._sublayer(*sizes)) if fuses else None) for layer in layers)
            setattr(self, side, nn.ModuleList(fused))

    def _sublayer(self, width: int, heads: int, pretrained: bool = False) -> FuseSublayer:
        """Build a sub-layer; for a `pretrained` encoder without LayerNorm and with a zero output projection."""
        settings = self.settings
        attention = FuseAttention(width, settings.fuse_heads or heads)
        if pretrained or settings.fuse_zero_init:
            nn.init.zeros_(attention.output.weight)
        residual, uniform = settings.fuse_residual and not pretrained, settings.fuse_weights == "uniform"
        return FuseSublayer(attention, settings.dropout, residual, settings.fuse_over, uniform)

    def run_encoder(self, states: Tensor, mask: Tensor) -> list[Tensor]:
        """See Seq2Seq; each layer reads all earlier outputs."""
        outputs = [states]
        for layer in self.encoder:
            outputs.append(layer(outputs, mask))
        return outputs[1:]

    def run_decoder(self, states: Tensor, cache: Cache, mask: Tensor | None) -> list[Tensor]:
        """See Seq2Seq; each layer reads all earlier outputs."""
        outputs = [states]
        for layer, layer_cache in zip(self.decoder, cache.layers, strict=True):
            outputs.append(layer(outputs, layer_cache, cache.mask, mask))
        return outputs[1:]

    def compute_encoder_attention(self, source: Tensor) -> Tensor:
        """Return the maps of self-attention, not of fuse-attention; see Seq2Seq."""
        states, mask = self.embed_source(source), make_padding_mask(source)
        inputs = [states, *self.run_encoder(states, mask)[:-1]]
        maps = [
            layer.layer.compute_attention_map(x, mask, False) for layer, x in zip(self.encoder, inputs, strict=True)
        ]
        return torch.stack(maps)

    def compute_encoder_fusion(self, source: Tensor) -> tuple[list[Tensor], EncoderOutput]:
        """Return (weights of fuse-attention [B, S, heads, l] of each encoder layer that has it, encoder's output)."""
        states, mask = self.embed_source(source), make_padding_mask(source)
        outputs = [states, *self.run_encoder(states, mask)]
        weights = [
            layer.compute_fuse_weights(outputs[: number + 1], mask).transpose(0, 1)
            for number, layer in enumerate(self.encoder)
            if layer.fuse
        ]
        return weights, EncoderOutput(outputs[-1], mask)

    def compute_decoder_fusion(self, memory: EncoderOutput, target_in: Tensor) -> list[Tensor]:
        """Return the weights of fuse-attention [B, T, heads, l] of each decoder layer that has it."""
        states, mask = self.embed_target(target_in), make_causal_mask(target_in.size(1), target_in.device)
        cache = self.start(memory)
        outputs = [states, *self.run_decoder(states, cache, mask)]
        return [
            layer.compute_fuse_weights(outputs[: number + 1], layer_cache, cache.mask, mask).transpose(0, 1)
            for number, (layer, layer_cache) in enumerate(zip(self.decoder, cache.layers, strict=True))
            if layer.fuse
        ]


def build(settings: dict, source_vocabulary: int, target_vocabulary: int) -> Seq2Seq:
    """Build the model with random weights. Raises UserError for settings that `Settings` does not allow."""
    found = parse_as(Settings, settings, "model")
    if found.fuse_in == "wider":
        # As many parameters as fuse-attention with its norm has. A feed-forward part has 2 d + 1 per unit of width, a
        # gated one twice as many.
        d = found.width
        added = round((4 * (d * d + d) + 2 * d) / ((2 * d + 1) * (2 if found.gated else 1)))
        found = found.model_copy(update={"feed_forward": found.feed_forward + added})
    kind = Seq2Seq if found.fuse_in in ("none", "wider") else FusedTransformer
    return kind(found, source_vocabulary, target_vocabulary)
