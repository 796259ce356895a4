"""LRF (Zheng et al. 2024): the Transformer with fuse-attention before the feed-forward part of its layers."""

from contextlib import ExitStack

import torch
from torch import Tensor, nn

from workflow_scripts.models.layers.attention import make_projections
from workflow_scripts.models.layers.dropout import Dropout
from workflow_scripts.models.layers.transformer import (
    DecoderLayer,
    EncoderLayer,
    LayerCache,
    make_padding_mask,
)
from workflow_scripts.models.lrf.settings import Settings
from workflow_scripts.models.transformer.model import Cache, Seq2Seq


class FuseAttention(nn.Module):
    """H_p = MHA(H_a, H_plo, H_plo) (equations 9 and 10), where each position sees only its own rows of H_plo.

    For one position, with its query q, representations h_0 .. h_{l-1} and head i:
    a_ij = softmax_j((W_Q q + b_Q)_i . (W_K h_j)_i / sqrt(d_head)),
    out = W_O concat_i(sum_j a_ij (W_V h_j + b_V)_i) + b_O.
    The bias of the key is the same for all logits of a query, so it has no effect, as in every attention.

    W_K is applied to the query and W_V to the sum, not to each h_j: four products with d x d matrices for any l.
    Decoding needs no cache, because the earlier outputs of a position are computed in its own step.
    """

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = make_projections(width)

    def forward(self, query: Tensor, fused: list[Tensor], uniform: bool = False) -> Tensor:
        """Fuse l representations for query, all [S, N, d]. uniform: equal weights, without W_Q and W_K."""
        if len(fused) == 1:  # its weight is 1
            return self.output(self.value(fused[0]))
        if uniform:
            return self.output(self.value(torch.stack(fused).mean(dim=0)))
        mixed = torch.bmm(*self._weigh(query, fused))
        values = torch.einsum(
            "phd,hkd->phk", mixed, self.value.weight.unflatten(0, (self.heads, -1))
        )
        return self.output(values.reshape(query.shape) + self.value.bias)

    def compute_weights(self, query: Tensor, fused: list[Tensor]) -> Tensor:
        """Return a_ij [S, N, heads, l] for query [S, N, d] and l representations `fused`, each [S, N, d]."""
        return self._weigh(query, fused)[0].view(*query.shape[:2], self.heads, len(fused))

    def _weigh(self, query: Tensor, fused: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return (a_ij [S N, heads, l], representations [S N, l, d])."""
        stacked = torch.stack(fused, dim=2).flatten(0, 1)
        by_head = (
            self.query(query).view(stacked.size(0), self.heads, -1)
            * (query.size(-1) // self.heads) ** -0.5
        )
        asked = torch.einsum(
            "phk,hkd->phd", by_head, self.key.weight.unflatten(0, (self.heads, -1))
        )
        return torch.bmm(asked, stacked.transpose(1, 2)).softmax(dim=-1), stacked


class FuseSublayer(nn.Module):
    """LN(H_a + dropout(H_p)), as in the other sub-layers, or dropout(H_p) without residual (literal equation 9)."""

    def __init__(
        self, attention: FuseAttention, dropout: float, residual: bool, over: str, uniform: bool
    ):
        super().__init__()
        self.attention = attention
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(attention.output.out_features) if residual else None
        self.over, self.uniform = over, uniform

    def select_fused(self, states: Tensor, earlier: list[Tensor]) -> list[Tensor]:
        """Select the inputs of the attention by `fuse_over` from H_a and the earlier layers' outputs, all [S, N, d]."""
        if self.over == "previous":
            return earlier[-1:]
        return [*earlier, states] if self.over == "earlier_and_current" else earlier

    def compute_weights(self, states: Tensor, earlier: list[Tensor]) -> Tensor:
        """Return the weights of the l inputs of the attention, [S, N, heads, l]."""
        fused = self.select_fused(states, earlier)
        if self.uniform:
            return states.new_full(
                (*states.shape[:2], self.attention.heads, len(fused)), 1 / len(fused)
            )
        return self.attention.compute_weights(states, fused)

    def forward(self, states: Tensor, earlier: list[Tensor]) -> Tensor:
        """Return H_a [S, N, d] after fusion of the earlier outputs H^0 .. H^{l-1}, each [S, N, d]."""
        change = self.dropout(
            self.attention(states, self.select_fused(states, earlier), self.uniform)
        )
        return change if self.norm is None else self.norm(states + change)


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

    def forward(self, earlier: list[Tensor], *attention: Tensor | LayerCache | None) -> Tensor:
        """Return H^l [S, N, d] from H^0 .. H^{l-1}. `attention`: the arguments of the plain layer after H^{l-1}."""
        states = self.layer(earlier[-1], *attention)
        return self.feed_forward(self.fuse(states, earlier) if self.fuse else states)


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
            fused = (
                FusedLayer(layer, (shared or self._sublayer(*sizes)) if fuses else None)
                for layer in layers
            )
            setattr(self, side, nn.ModuleList(fused))

    def _sublayer(self, width: int, heads: int, pretrained: bool = False) -> FuseSublayer:
        """Build a sub-layer; for a `pretrained` encoder without LayerNorm and with a zero output projection."""
        settings = self.settings
        attention = FuseAttention(width, settings.fuse_heads or heads)
        if pretrained or settings.fuse_zero_init:
            nn.init.zeros_(attention.output.weight)
        residual, uniform = (
            settings.fuse_residual and not pretrained,
            settings.fuse_weights == "uniform",
        )
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
        inputs = zip(self.encoder, [states, *self.run_encoder(states, mask)[:-1]], strict=True)
        return torch.stack(
            [layer.layer.compute_attention_map(x, mask, False) for layer, x in inputs]
        )

    def compute_fusion(
        self, source: Tensor, target_in: Tensor
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return the weights of fuse-attention [B, length, heads, l] of each layer that has it: (encoder, decoder)."""
        found: list[Tensor] = []

        def record(fuse: FuseSublayer, inputs: tuple[Tensor, list[Tensor]], _: Tensor) -> None:
            found.append(fuse.compute_weights(*inputs).transpose(0, 1))

        fuses = [
            [layer.fuse for layer in side if layer.fuse] for side in (self.encoder, self.decoder)
        ]
        with ExitStack() as hooks:
            for fuse in {*fuses[0], *fuses[1]}:
                hooks.callback(fuse.register_forward_hook(record).remove)
            self(source, target_in)
        return found[: len(fuses[0])], found[len(fuses[0]) :]


def build(settings: Settings, source_vocabulary: int, target_vocabulary: int) -> Seq2Seq:
    """Build the model with random weights."""
    if settings.fuse_in == "wider":
        # As many parameters as fuse-attention with its norm has. A feed-forward part has 2 d + 1 per unit of width, a
        # gated one twice as many.
        d = settings.width
        added = round((4 * (d * d + d) + 2 * d) / ((2 * d + 1) * (2 if settings.gated else 1)))
        settings = settings.model_copy(update={"feed_forward": settings.feed_forward + added})
    kind = Seq2Seq if settings.fuse_in in ("none", "wider") else FusedTransformer
    return kind(settings, source_vocabulary, target_vocabulary)
