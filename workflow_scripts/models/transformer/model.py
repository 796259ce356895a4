"""Encoder-decoder Transformer: the baseline, and the backbone of SQ-Transformer and LRF."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from workflow_scripts.data.token_ids import PAD
from workflow_scripts.models.layers.dropout import Dropout
from workflow_scripts.models.layers.layer_list import LayerList
from workflow_scripts.models.layers.transformer import (
    DecoderLayer,
    EncoderLayer,
    LayerCache,
    make_causal_mask,
    make_padding_mask,
)
from workflow_scripts.models.transformer.settings import Settings


@dataclass
class Seq2SeqOutput:
    """Word logits [B, T, V]."""

    logits: Tensor


@dataclass
class EncoderOutput:
    """Final states [S, B, d] of the encoder, with codes [S, 2 B, d]; padding mask [B, 1, 1, S]."""

    states: Tensor
    mask: Tensor


@dataclass
class Cache:
    """Cache of decoding: an entry for each decoder layer, and the mask of its sentences."""

    layers: list[LayerCache]
    mask: Tensor

    def select(self, rows: Tensor, same_sentences: bool = False) -> "Cache":
        """Return the cache of the sentences `rows` [R], which may repeat.

        same_sentences: see LayerCache.
        """
        batch = self.mask.size(0)
        layers = [layer.select(rows, batch, same_sentences) for layer in self.layers]
        mask = self.mask if same_sentences else self.mask[rows]
        return Cache(layers, mask)


def make_sinusoids(length: int, width: int, offset: int, device: torch.device) -> Tensor:
    """Return position vectors for n = offset, offset + 1, ...: [length, 1, width].

    They are those of Vaswani et al. (2017):
    sin(n / 10000^(2i/d)) fills the first half of a vector, the cosine the second.
    """
    position = torch.arange(offset, offset + length, device=device, dtype=torch.float32)[:, None]
    rates = 10000.0 ** -(torch.arange(width // 2, device=device) / (width // 2))
    return torch.cat([(position * rates).sin(), (position * rates).cos()], dim=1)[:, None]


class Seq2Seq(nn.Module):
    """Encoder-decoder Transformer (Vaswani et al. 2017).

    Ids [B, S] int64: 0 is padding, 2 ends a sentence and starts the decoder's input. States are
    time-major [S, N, d], where N is B, or 2 B with words and codes.
    """

    guided = False  # whether the codes give the attention (SAL)
    capturable = True  # whether a GPU can repeat an update as a graph: see tasks.base.TrainingSetup

    def __init__(self, settings: Settings, source_vocabulary: int, target_vocabulary: int):
        super().__init__()
        self.settings = settings
        self.source_embedding = self._make_embedding(source_vocabulary)
        self.target_embedding = self._make_embedding(target_vocabulary)
        self.dropout = Dropout(settings.dropout)
        self.encoder = LayerList(EncoderLayer(settings) for _ in range(settings.layers))
        self.decoder = LayerList(DecoderLayer(settings) for _ in range(settings.layers))

    def _make_embedding(self, vocabulary: int) -> nn.Embedding:
        """Make a table of embeddings with fairseq's initial weights; that of padding is 0."""
        table = nn.Embedding(vocabulary, self.settings.width, padding_idx=PAD)
        nn.init.normal_(table.weight, std=self.settings.width**-0.5)
        nn.init.zeros_(table.weight[PAD])
        return table

    def embed(self, table: nn.Embedding, ids: Tensor, offset: int = 0) -> Tensor:
        """Return dropout(sqrt(d) E[ids] (+ sinusoids)): ids [B, S] -> [S, B, d].

        The first of the ids is at position `offset`.
        """
        states = table(ids.t()) * self.settings.width**0.5
        if self.settings.positions == "sinusoidal":
            states = states + make_sinusoids(ids.size(1), self.settings.width, offset, ids.device)
        return self.dropout(states)

    def embed_source(self, source: Tensor) -> Tensor:
        """Return the encoder's input: [B, S] -> [S, N, d]."""
        return self.embed(self.source_embedding, source)

    def embed_target(self, target_in: Tensor, offset: int = 0) -> Tensor:
        """Return the decoder's input: [B, T] -> [T, N, d]."""
        return self.embed(self.target_embedding, target_in, offset)

    def forward(self, source: Tensor, target_in: Tensor) -> Seq2SeqOutput:
        """Return logits [B, T, V] for source [B, S] and target_in [B, T].

        target_in starts with the end symbol.
        """
        return Seq2SeqOutput(self.decode(self.encode(source), target_in))

    def encode(self, source: Tensor) -> EncoderOutput:
        """Run the encoder on source ids [B, S]."""
        mask = make_padding_mask(source)
        outputs = self.run_encoder(self.embed_source(source), mask)
        return EncoderOutput(outputs[-1], mask)

    def decode(self, memory: EncoderOutput, target_in: Tensor) -> Tensor:
        """Return the logits of all positions under a causal mask: target_in [B, T] -> [B, T, V]."""
        mask = make_causal_mask(target_in.size(1), target_in.device)
        states = self.embed_target(target_in)
        outputs = self.run_decoder(states, self.start_cache(memory), mask)
        return self.project(outputs[-1])

    def decode_step(
        self, memory: EncoderOutput, cache: Cache | None, tokens: Tensor
    ) -> tuple[Tensor, Cache]:
        """Return (logits [B, V] of the next position, cache) for the last tokens [B].

        cache: of the positions before these tokens, None at the first position. The tokens are
        added to it in place, and it is returned; for None a new one is returned.
        """
        if cache is None:
            cache = self.start_cache(memory)
        position = cache.layers[0].length
        states = self.embed_target(tokens[:, None], position)
        outputs = self.run_decoder(states, cache, mask=None)  # without a mask: one more position
        logits = self.project(outputs[-1])[:, 0]
        return logits, cache

    def start_cache(self, memory: EncoderOutput) -> Cache:
        """Return the cache before the first position."""
        layers = [layer.start_cache(memory.states, memory.states) for layer in self.decoder]
        return Cache(layers, memory.mask)

    def run_encoder(self, states: Tensor, mask: Tensor) -> list[Tensor]:
        """Return each layer's output [S, N, d] for embedded tokens [S, N, d].

        mask: of padding, [B, 1, 1, S].
        """
        outputs = []
        for layer in self.encoder:
            states = layer(states, mask)
            outputs.append(states)
        return outputs

    def run_decoder(self, states: Tensor, cache: Cache, mask: Tensor | None) -> list[Tensor]:
        """Return each layer's output [T, N, d] for embedded tokens [T, N, d].

        mask: causal, of self-attention. With it the tokens are all positions of the outputs. With
        None they are one position, the next after those in `cache`. Either way the positions are
        added to `cache` in place; `cache.mask` is that of the encoder's padding.
        """
        outputs = []
        for layer, layer_cache in zip(self.decoder, cache.layers, strict=True):
            states = layer(states, layer_cache, cache.mask, mask)
            outputs.append(states)
        return outputs

    def project(self, states: Tensor) -> Tensor:
        """Return logits E h without bias, with the target embedding E: [T, B, d] -> [B, T, V]."""
        return nn.functional.linear(states, self.target_embedding.weight).transpose(0, 1)

    def compute_encoder_attention(self, source: Tensor) -> Tensor:
        """Return the encoder's self-attention: source [B, S] -> [layers, B, heads, S, S]."""
        states = self.embed_source(source)
        mask = make_padding_mask(source)
        maps = []
        for layer in self.encoder:
            maps.append(layer.compute_attention_map(states, mask, self.guided))
            states = layer(states, mask, self.guided)
        return torch.stack(maps)


def build(settings: Settings, source_vocabulary: int, target_vocabulary: int) -> Seq2Seq:
    """Build the model with random weights."""
    return Seq2Seq(settings, source_vocabulary, target_vocabulary)
