"""Encoder-decoder Transformer: the paper's baseline, and the backbone of SQ-Transformer."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from workflow_scripts.common.validation import parse_as
from workflow_scripts.models.layers.dropout import Dropout
from workflow_scripts.models.layers.transformer import (
    DecoderLayer,
    EncoderLayer,
    LayerCache,
    LayerSettings,
    make_causal_mask,
    make_padding_mask,
)
from workflow_scripts.models.transformer.settings import Settings


@dataclass
class Seq2SeqOutput:
    """logits [B, T, V]; `terms`: what an objective needs beyond them, by name."""

    logits: Tensor
    terms: dict[str, Tensor] = field(default_factory=dict)


@dataclass
class EncoderOutput:
    """The encoder's output: states [S, B, d] (time-major; [S, 2 B, d] with a stream of codes), mask [B, 1, 1, S]."""

    states: Tensor
    mask: Tensor


@dataclass
class Cache:
    """What decoding keeps between steps: one entry per layer, and the mask of the sentences still in it."""

    layers: list[LayerCache]
    mask: Tensor

    def select(self, rows: Tensor) -> "Cache":
        """Keep the sentences `rows` [R], in that order; rows may repeat (beam search)."""
        return Cache([layer.select(rows, self.mask.size(0)) for layer in self.layers], self.mask[rows])

    def reorder(self, rows: Tensor) -> "Cache":
        """As `select`, where each of `rows` is a hypothesis of the sentence in whose place it comes (beam search)."""
        return Cache([layer.reorder(rows, self.mask.size(0)) for layer in self.layers], self.mask)


def make_sinusoids(length: int, width: int, offset: int, device: torch.device) -> Tensor:
    """Position vectors sin, cos(n / 10000^(2i/d)) of Vaswani et al. (2017), for n from `offset`: [length, 1, width].

    Sines fill the first half of a vector, cosines the second.
    """
    position = torch.arange(offset, offset + length, device=device, dtype=torch.float32)[:, None]
    rates = 10000.0 ** -(torch.arange(width // 2, device=device) / (width // 2))
    return torch.cat([(position * rates).sin(), (position * rates).cos()], dim=1)[:, None]


class Seq2Seq(nn.Module):
    """Ids are [B, S]: 0 pads, 2 ends a sentence (and starts the decoder's input). States are time-major [S, B, d]."""

    guided = False  # whether attention comes from a stream of codes beside the words

    def __init__(self, settings: Settings, source_vocabulary: int, target_vocabulary: int):
        super().__init__()
        self.settings = settings
        self.relative = settings.positions == "relative"
        self.source_embedding = self._embedding(source_vocabulary)
        self.target_embedding = self._embedding(target_vocabulary)
        self.dropout = Dropout(settings.dropout)
        layer = self.make_layer_settings()
        self.encoder = nn.ModuleList(EncoderLayer(layer) for _ in range(settings.layers))
        self.decoder = nn.ModuleList(DecoderLayer(layer) for _ in range(settings.layers))

    def _embedding(self, vocabulary: int) -> nn.Embedding:
        table = nn.Embedding(vocabulary, self.settings.width, padding_idx=0)
        nn.init.normal_(table.weight, std=self.settings.width**-0.5)
        nn.init.zeros_(table.weight[0])
        return table

    def make_layer_settings(self) -> LayerSettings:
        """What the layers of both sides share."""
        settings = self.settings
        return LayerSettings(
            settings.width,
            settings.heads,
            settings.feed_forward,
            settings.dropout,
            settings.gated,
            settings.max_relative_position if self.relative else None,
        )

    def embed(self, table: nn.Embedding, ids: Tensor, offset: int = 0) -> Tensor:
        """dropout(sqrt(d) E[ids] (+ sinusoids)): ids [B, S] -> [S, B, d]; the first id stands at position `offset`."""
        states = table(ids.t()) * self.settings.width**0.5
        if not self.relative:
            states = states + make_sinusoids(ids.size(1), self.settings.width, offset, ids.device)
        return self.dropout(states)

    def embed_source(self, source: Tensor) -> Tensor:
        """What enters the encoder: [B, S] -> [S, N, d]"""
        return self.embed(self.source_embedding, source)

    def embed_target(self, target_in: Tensor, offset: int = 0) -> Tensor:
        """What enters the decoder: [B, T] -> [T, N, d]"""
        return self.embed(self.target_embedding, target_in, offset)

    def forward(self, source: Tensor, target_in: Tensor) -> Seq2SeqOutput:
        """source [B, S], target_in [B, T] (starts with the end symbol, without the last token) -> logits [B, T, V]."""
        return Seq2SeqOutput(self.decode(self.encode(source), target_in))

    def encode(self, source: Tensor) -> EncoderOutput:
        """[B, S] -> Memory"""
        mask = make_padding_mask(source)
        return EncoderOutput(self.run_encoder(self.embed_source(source), mask)[-1], mask)

    def decode(self, memory: EncoderOutput, target_in: Tensor) -> Tensor:
        """All positions at once, each seeing only those before it: target_in [B, T] -> logits [B, T, V]."""
        mask = make_causal_mask(target_in.size(1), target_in.device)
        outputs = self.run_decoder(self.embed_target(target_in), self.start(memory), mask)
        return self.project(outputs[-1])

    def decode_step(self, memory: EncoderOutput, cache: Cache | None, tokens: Tensor) -> tuple[Tensor, Cache]:
        """One position: the last tokens [B] (the end symbol and no cache at first) -> logits [B, V], cache."""
        if cache is None:
            cache = self.start(memory)
        outputs = self.run_decoder(self.embed_target(tokens[:, None], cache.layers[0].length), cache, None)
        return self.project(outputs[-1])[:, 0], cache

    def start(self, memory: EncoderOutput) -> Cache:
        """The cache before the first position."""
        return Cache([layer.start(memory.states, memory.states) for layer in self.decoder], memory.mask)

    def run_encoder(self, states: Tensor, mask: Tensor) -> list[Tensor]:
        """Each layer's output [S, N, d] for embedded tokens [S, N, d] and a padding mask [B, 1, 1, S]."""
        outputs = []
        for layer in self.encoder:
            states = layer(states, mask)
            outputs.append(states)
        return outputs

    def run_decoder(self, states: Tensor, cache: Cache, mask: Tensor | None) -> list[Tensor]:
        """Each layer's output [T, N, d] for embedded tokens [T, N, d].

        All positions at once under a causal `mask`, or (None) the one position that follows those in the cache.
        """
        outputs = []
        for layer, layer_cache in zip(self.decoder, cache.layers, strict=True):
            states = layer(states, layer_cache, cache.mask, mask)
            outputs.append(states)
        return outputs

    def project(self, states: Tensor) -> Tensor:
        """Logits E_target h, tied to the embedding and without bias: [T, B, d] -> [B, T, V]."""
        return nn.functional.linear(states, self.target_embedding.weight).transpose(0, 1)

    def compute_encoder_attention(self, source: Tensor) -> Tensor:
        """Attention maps of the encoder's layers: source [B, S] -> [layers, B, heads, S, S]."""
        states, mask, maps = self.embed_source(source), make_padding_mask(source), []
        for layer in self.encoder:
            maps.append(layer.compute_attention_map(states, mask, self.guided))
            states = layer(states, mask, self.guided)
        return torch.stack(maps)


def build(settings: dict, source_vocabulary: int, target_vocabulary: int) -> Seq2Seq:
    """The model that `settings` (see Settings) describe; an unknown key is a UserError."""
    return Seq2Seq(parse_as(Settings, settings, "model"), source_vocabulary, target_vocabulary)
