"""Transformer layers (post-norm) whose feed-forward part may be gated, and that can run words and codes side by side.

Two streams travel as one tensor, joined along the batch: states [S, 2 B, d] hold the words in the first B columns and
their codes in the last B. `guided` attention takes queries and keys from the codes and values from both (SAL).
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from workflow_scripts.models.layers.attention import MultiHeadAttention
from workflow_scripts.models.layers.dropout import Dropout


@dataclass
class LayerSettings:
    """What all layers of a model share; `max_relative_position` None: no relative positions."""

    width: int
    heads: int
    feed_forward: int
    dropout: float
    gated: bool
    max_relative_position: int | None


def select_words(states: Tensor) -> Tensor:
    """[S, 2 B, d] -> [S, B, d]"""
    return states[:, : states.size(1) // 2]


def select_codes(states: Tensor) -> Tensor:
    """[S, 2 B, d] -> [S, B, d]"""
    return states[:, states.size(1) // 2 :]


def make_padding_mask(ids: Tensor) -> Tensor:
    """True where a key is padding: ids [B, S] -> [B, 1, 1, S]."""
    return ids.eq(0)[:, None, None, :]


def make_causal_mask(length: int, device: torch.device) -> Tensor:
    """True where a key lies after the query: [1, 1, T, T]."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu_(1)[None, None]


class FeedForward(nn.Module):
    """LN(u + dropout(FFN(u))), or gated: LN(g u + (1 - g) dropout(FFN(u))), g = sigmoid(G(u)).

    FFN and G are d -> feed_forward -> d with ReLU; G has dropout after its ReLU.
    """

    def __init__(self, settings: LayerSettings):
        super().__init__()
        self.inner = nn.Linear(settings.width, settings.feed_forward)
        self.outer = nn.Linear(settings.feed_forward, settings.width)
        self.gated = settings.gated
        if self.gated:
            self.gate_inner = nn.Linear(settings.width, settings.feed_forward)
            self.gate_outer = nn.Linear(settings.feed_forward, settings.width)
        self.dropout = Dropout(settings.dropout)
        self.norm = nn.LayerNorm(settings.width)

    def forward(self, states: Tensor) -> Tensor:
        """[S, N, d] -> [S, N, d]"""
        change = self.dropout(self.outer(self.inner(states).relu()))
        if not self.gated:
            return self.norm(states + change)
        gate = self.gate_outer(self.dropout(self.gate_inner(states).relu())).sigmoid()
        return self.norm(change + gate * (states - change))


class EncoderLayer(nn.Module):
    """Self-attention, then FeedForward, each with dropout, residual and LayerNorm after it."""

    def __init__(self, settings: LayerSettings):
        super().__init__()
        self.attention = MultiHeadAttention(
            settings.width, settings.heads, settings.dropout, settings.max_relative_position
        )
        self.dropout = Dropout(settings.dropout)
        self.norm = nn.LayerNorm(settings.width)
        self.feed_forward = FeedForward(settings)

    def compute_attention_map(self, states: Tensor, mask: Tensor | None, guided: bool) -> Tensor:
        """Attention weights [B, heads, S, S] of states [S, N, d]."""
        guide = select_codes(states) if guided else states
        weights = self.attention.compute_weights(guide, self.attention.key(guide), mask)
        return weights.view(guide.size(1), -1, *weights.shape[1:])

    def forward(
        self,
        states: Tensor,
        mask: Tensor | None,
        guided: bool = False,
        words_only: bool = False,
        at: Tensor | None = None,
    ) -> Tensor:
        """[S, N, d] -> [S, N, d]; `words_only` drops the codes from the result, where nothing reads them further.

        `guided` is SAL (Jiang et al. 2024, section 3.2), with N = 2 B, words and codes beside each other:
        z_{l+1} = MHAttn(q = z_l, k = z_l, v = z_l), x_{l+1} = MHAttn(q = z_l, k = z_l, v = x_l). Without it all
        N attend by themselves: a Transformer's layer, and the two streams of SRL (section 3.3).

        With `at` (positions [N]) only the result at that position of each sentence: [1, N, d].
        """
        guide = select_codes(states) if guided else states
        if words_only:
            states = select_words(states)
        attended = self.attention(guide, guide, states, mask)
        if at is not None:
            rows = torch.arange(at.size(0), device=at.device)
            attended, states = attended[at, rows][None], states[at, rows][None]
        return self.feed_forward(self.norm(states + self.dropout(attended)))


@dataclass
class LayerCache:
    """What one decoder layer keeps between decoding steps.

    key [C, N, d] and value [C, G N, d] of its self-attention (C: capacity, grown by doubling, `length` of it filled);
    cross_key and cross_value [S, ., d] of the encoder's output.
    """

    cross_key: Tensor
    cross_value: Tensor
    key: Tensor | None = None
    value: Tensor | None = None
    length: int = 0

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Add one position (key [1, N, d]); returns all so far, [length, N, d]."""
        if self.key is None:
            self.key, self.value = key.new_empty(16, *key.shape[1:]), value.new_empty(16, *value.shape[1:])
        elif self.length == self.key.size(0):
            self.key = torch.cat([self.key, torch.empty_like(self.key)])
            self.value = torch.cat([self.value, torch.empty_like(self.value)])
        self.key[self.length], self.value[self.length] = key[0], value[0]
        self.length += 1
        return self.key[: self.length], self.value[: self.length]

    def select(self, rows: Tensor, batch: int) -> "LayerCache":
        """Keep the sentences `rows` [R] (of `batch`), in that order; rows may repeat."""
        cross = (states.index_select(1, _columns(states, rows, batch)) for states in (self.cross_key, self.cross_value))
        return LayerCache(*cross, *self._reordered(rows, batch), self.length)

    def reorder(self, rows: Tensor, batch: int) -> "LayerCache":
        """As `select`, where each of `rows` is a hypothesis of the sentence in whose place it comes: what was read of
        the encoder's output stays.
        """
        return LayerCache(self.cross_key, self.cross_value, *self._reordered(rows, batch), self.length)

    def _reordered(self, rows: Tensor, batch: int) -> list[Tensor | None]:
        """key and value for `rows`, only the filled part being copied."""
        moved: list[Tensor | None] = []
        for states in (self.key, self.value):
            if states is None:
                moved.append(None)
                continue
            room = states.new_empty(states.size(0), states.size(1) // batch * len(rows), states.size(2))
            filled = states[: self.length].detach()  # decoding needs no gradient, and `out` allows for none
            torch.index_select(filled, 1, _columns(states, rows, batch), out=room[: self.length])
            moved.append(room)
        return moved


def _columns(states: Tensor, rows: Tensor, batch: int) -> Tensor:
    """Columns of `rows` (of `batch`) in each of the streams of states [S, streams x batch, d]."""
    streams = torch.arange(states.size(1) // batch, device=rows.device)
    return (streams[:, None] * batch + rows).flatten()


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention on the encoder's output, FeedForward: each as in EncoderLayer."""

    def __init__(self, settings: LayerSettings):
        super().__init__()
        self.self_attention = MultiHeadAttention(
            settings.width, settings.heads, settings.dropout, settings.max_relative_position
        )
        self.cross_attention = MultiHeadAttention(settings.width, settings.heads, settings.dropout)
        self.dropout = Dropout(settings.dropout)
        self.self_norm = nn.LayerNorm(settings.width)
        self.cross_norm = nn.LayerNorm(settings.width)
        self.feed_forward = FeedForward(settings)

    def start(self, memory_key: Tensor, memory_value: Tensor) -> LayerCache:
        """Project the encoder's outputs [S, ., d] once for all decoding steps."""
        return LayerCache(self.cross_attention.key(memory_key), self.cross_attention.value(memory_value))

    def forward(
        self,
        states: Tensor,
        cache: LayerCache,
        memory_mask: Tensor,
        mask: Tensor | None = None,
        guided: bool = False,
        guided_cross: bool = False,
        words_only: bool = False,
    ) -> Tensor:
        """states [T, N, d] -> [T, N, d].

        `guided` and `guided_cross` are SAL in the decoder (Jiang et al. 2024, appendix A.5), where N = 2 B:
        y' = SelfAttn(q = z, k = z, v = y), then CrossAttn(q = y', k = x_L, v = x_L) in the text (`guided_cross` off);
        the official code asks with the codes, q = z'.

        With `mask` (causal) the whole target is computed at once; without, states are the one next position and the
        earlier ones come from the cache. `guided_cross`: cross-attention queries come from the codes; where its values
        have one stream, both streams receive the same result. `words_only` as in the encoder.
        """
        guide = select_codes(states) if guided else states
        if words_only and not guided_cross:
            states = select_words(states)
        key, value, offset = self.self_attention.key(guide), self.self_attention.value(states), 0
        if mask is None:
            offset = cache.length
            key, value = cache.append(key, value)
        attended = self.self_attention.attend(guide, key, value, mask, offset)
        states = self.self_norm(states + self.dropout(attended))
        guide = select_codes(states) if guided_cross else states
        if words_only and guided_cross:
            states = select_words(states)
        attended = self.dropout(self.cross_attention.attend(guide, cache.cross_key, cache.cross_value, memory_mask))
        if attended.size(1) < states.size(1):
            attended = attended.repeat(1, 2, 1)
        return self.feed_forward(self.cross_norm(states + attended))
