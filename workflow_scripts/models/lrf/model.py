"""LRF (Zheng et al. 2024): the Transformer with fuse-attention.

Fuse-attention comes before the feed-forward part of a layer.
"""

from contextlib import ExitStack
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from workflow_scripts.models.layers.attention import make_projections
from workflow_scripts.models.layers.dropout import Dropout
from workflow_scripts.models.layers.layer_list import LayerList
from workflow_scripts.models.layers.transformer import (
    DecoderLayer,
    EncoderLayer,
    LayerCache,
    make_padding_mask,
)
from workflow_scripts.models.lrf.settings import Settings
from workflow_scripts.models.transformer.model import Cache, Seq2Seq

PlainLayer = TypeVar("PlainLayer", EncoderLayer, DecoderLayer)


class FuseAttention(nn.Module):
    """H_p = MHA(H_a, H_plo, H_plo) (equations 9 and 10).

    Each position sees only its own rows of H_plo. For one position, with its query q,
    representations h_0 .. h_{l-1} and head i: a_ij = softmax_j((W_Q q + b_Q)_i . (W_K h_j)_i /
    sqrt(d_head)),
    out = W_O concat_i(sum_j a_ij (W_V h_j + b_V)_i) + b_O.
    The bias of the key is the same for all logits of a query, so it has no effect, as in every
    attention.

    W_K is applied to the query and W_V to the sum, not to each h_j: four products with d x d
    matrices for any l. Decoding needs no cache, because the earlier outputs of a position are
    computed in its own step.
    """

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = make_projections(width)

    def forward(self, query: Tensor, fused: list[Tensor], uniform: bool = False) -> Tensor:
        """Fuse l representations for query, all [S, N, d].

        uniform: equal weights, without W_Q and W_K.
        """
        if len(fused) == 1:  # its weight is 1
            return self.output(self.value(fused[0]))
        if uniform:
            return self.output(self.value(torch.stack(fused).mean(dim=0)))
        weights, stacked = self._weigh(query, fused)
        mixed = torch.bmm(weights, stacked)
        value_by_head = self.value.weight.unflatten(0, (self.heads, -1))
        values = torch.einsum("phd,hkd->phk", mixed, value_by_head)
        return self.output(values.reshape(query.shape) + self.value.bias)

    def compute_weights(self, query: Tensor, fused: list[Tensor]) -> Tensor:
        """Return a_ij [S, N, heads, l] for query and l representations `fused`, each [S, N, d]."""
        weights, _ = self._weigh(query, fused)
        return weights.view(*query.shape[:2], self.heads, len(fused))

    def _weigh(self, query: Tensor, fused: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return (a_ij [S N, heads, l], representations [S N, l, d]) for l `fused` [S, N, d]."""
        stacked = torch.stack(fused, dim=2).flatten(0, 1)
        head_width = query.size(-1) // self.heads
        query_by_head = self.query(query).view(stacked.size(0), self.heads, -1) * head_width**-0.5
        key_by_head = self.key.weight.unflatten(0, (self.heads, -1))
        # W_K^T W_Q q of each head, in the space of the representations.
        projected = torch.einsum("phk,hkd->phd", query_by_head, key_by_head)
        logits = torch.bmm(projected, stacked.transpose(1, 2))
        return logits.softmax(dim=-1), stacked


class FuseSublayer(nn.Module):
    """LN(H_a + dropout(H_p)), as in the other sub-layers.

    Without `residual` it is dropout(H_p), without LayerNorm, the literal equation 9. over: which
    earlier outputs are fused, as in the setting `fuse_over`. uniform: equal weights of these.
    """

    def __init__(
        self, attention: FuseAttention, dropout: float, residual: bool, over: str, uniform: bool
    ):
        super().__init__()
        self.attention = attention
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(attention.output.out_features) if residual else None
        self.over = over
        self.uniform = uniform

    def select_fused(self, states: Tensor, earlier: list[Tensor]) -> list[Tensor]:
        """Select the inputs of the attention by `fuse_over`, all [S, N, d].

        states: H_a. earlier: the outputs of the earlier layers.
        """
        if self.over == "previous":
            return earlier[-1:]
        if self.over == "earlier_and_current":
            return [*earlier, states]
        return earlier

    def compute_weights(self, states: Tensor, earlier: list[Tensor]) -> Tensor:
        """Return the weights of the l inputs of the attention, [S, N, heads, l]."""
        fused = self.select_fused(states, earlier)
        if self.uniform:
            shape = (*states.shape[:2], self.attention.heads, len(fused))
            return states.new_full(shape, 1 / len(fused))
        return self.attention.compute_weights(states, fused)

    def forward(self, states: Tensor, earlier: list[Tensor]) -> Tensor:
        """Fuse the outputs H^0 .. H^{l-1} of the earlier layers into H_a, all [S, N, d].

        states: H_a.
        """
        fused = self.select_fused(states, earlier)
        change = self.dropout(self.attention(states, fused, self.uniform))
        if self.norm is None:
            return change
        return self.norm(states + change)


class FusedLayer(nn.Module, Generic[PlainLayer]):
    """Layer of the plain Transformer, before its feed-forward part fuse-attention (if not None)."""

    def __init__(self, layer: PlainLayer, fuse: FuseSublayer | None):
        super().__init__()
        self.layer = layer
        self.fuse = fuse
        # The rest of the layer ends with its last attention.
        self.feed_forward = layer.feed_forward
        layer.feed_forward = nn.Identity()

    def start_cache(
        self: "FusedLayer[DecoderLayer]", memory_key: Tensor, memory_value: Tensor
    ) -> LayerCache:
        """Return a new cache with projected keys and values of the encoder's output, [S, ., d]."""
        return self.layer.start_cache(memory_key, memory_value)

    def forward(self, earlier: list[Tensor], *attention: Tensor | LayerCache | None) -> Tensor:
        """Return H^l [S, N, d] from H^0 .. H^{l-1}.

        attention: the arguments of the plain layer after H^{l-1}.
        """
        states = self.layer(earlier[-1], *attention)
        if self.fuse:
            states = self.fuse(states, earlier)
        return self.feed_forward(states)


class FusedTransformer(Seq2Seq):
    """Seq2Seq with fuse-attention in the layers of the encoder, the decoder, or both (`fuse_in`).

    Layer l fuses the outputs H^0 .. H^{l-1} of the earlier layers of its own side; H^0 are the
    embedded tokens.
    """

    settings: Settings
    encoder: "LayerList[FusedLayer[EncoderLayer]]"
    decoder: "LayerList[FusedLayer[DecoderLayer]]"

    def __init__(self, settings: Settings, source_vocabulary: int, target_vocabulary: int):
        super().__init__(settings, source_vocabulary, target_vocabulary)
        # Initialised after the plain Transformer's weights, so that both models share these for an
        # equal seed. Until then `encoder` and `decoder` have the plain layers.
        shared = None
        if settings.fuse_shared:
            shared = self._make_fuse_sublayer(settings.width, settings.heads)
        self.encoder = self._build_fused_layers(self.encoder, EncoderLayer, "encoder", shared)
        self.decoder = self._build_fused_layers(self.decoder, DecoderLayer, "decoder", shared)

    def _build_fused_layers(
        self,
        plain: nn.ModuleList,
        kind: type[PlainLayer],
        side: str,
        shared: FuseSublayer | None,
    ) -> "LayerList[FusedLayer[PlainLayer]]":
        """Wrap the plain layers of a side, with fuse-attention if `fuse_in` has the side.

        kind: their class. shared: the sub-layer of all layers; without one each layer gets its own.
        """
        wrapped: list[FusedLayer[PlainLayer]] = []
        for layer in plain:
            assert isinstance(layer, kind)
            fuse = None
            if self.settings.fuse_in in ("both", side):
                fuse = shared
                if fuse is None:
                    fuse = self._make_fuse_sublayer(self.settings.width, self.settings.heads)
            wrapped.append(FusedLayer(layer, fuse))
        return LayerList(wrapped)

    def _make_fuse_sublayer(self, width: int, heads: int, pretrained: bool = False) -> FuseSublayer:
        """Make a sub-layer for states of this width, by the settings `fuse_*`.

        heads: of the plain layer, for `fuse_heads` 0. For a `pretrained` encoder it has no residual
        and so no LayerNorm, and a zero output projection, whatever the settings say.
        """
        settings = self.settings
        attention = FuseAttention(width, settings.fuse_heads or heads)
        if pretrained or settings.fuse_zero_init:
            nn.init.zeros_(attention.output.weight)
        residual = settings.fuse_residual and not pretrained
        uniform = settings.fuse_weights == "uniform"
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
        states = self.embed_source(source)
        mask = make_padding_mask(source)
        inputs = [states, *self.run_encoder(states, mask)[:-1]]
        maps = []
        for layer, layer_input in zip(self.encoder, inputs, strict=True):
            maps.append(layer.layer.compute_attention_map(layer_input, mask, False))
        return torch.stack(maps)

    def compute_fusion(
        self, source: Tensor, target_in: Tensor
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return the weights of fuse-attention of (encoder, decoder).

        They are [B, length, heads, l] for each layer that has it. The model runs once, forwards.
        """
        weights: list[Tensor] = []  # in the order in which the layers run: the encoder's first

        def record(fuse: FuseSublayer, inputs: tuple[Tensor, list[Tensor]], _: Tensor) -> None:
            """Append the weights of a sub-layer that has run; a forward hook."""
            weights.append(fuse.compute_weights(*inputs).transpose(0, 1))

        in_encoder = [layer.fuse for layer in self.encoder if layer.fuse]
        in_decoder = [layer.fuse for layer in self.decoder if layer.fuse]
        with ExitStack() as hooks:
            for fuse in {*in_encoder, *in_decoder}:
                hooks.callback(fuse.register_forward_hook(record).remove)
            self(source, target_in)
        return weights[: len(in_encoder)], weights[len(in_encoder) :]


def build(settings: Settings, source_vocabulary: int, target_vocabulary: int) -> Seq2Seq:
    """Build the model with random weights; without fuse-attention it is the plain Transformer."""
    if settings.fuse_in == "none":
        return Seq2Seq(settings, source_vocabulary, target_vocabulary)
    if settings.fuse_in == "wider":
        return Seq2Seq(expand_feed_forward(settings), source_vocabulary, target_vocabulary)
    return FusedTransformer(settings, source_vocabulary, target_vocabulary)


def expand_feed_forward(settings: Settings) -> Settings:
    """Give the feed-forward parts as many parameters more as fuse-attention with its norm has."""
    d = settings.width
    fuse_attention = 4 * (d * d + d) + 2 * d
    per_unit = 2 * d + 1  # parameters of a feed-forward part for each unit of its width
    if settings.gated:
        per_unit *= 2
    added = round(fuse_attention / per_unit)
    return settings.model_copy(update={"feed_forward": settings.feed_forward + added})
