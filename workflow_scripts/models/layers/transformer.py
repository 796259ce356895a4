"""Post-norm Transformer layers, for one stream or for words and codes.

Two streams are one tensor, joined along the batch: states [S, 2 B, d] hold the words in the first B
columns and their codes in the last B. `guided` attention takes queries and keys from the codes and
values from both (SAL).
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from workflow_scripts.data.token_ids import PAD
from workflow_scripts.models.layers.attention import MultiHeadAttention
from workflow_scripts.models.layers.dropout import Dropout
from workflow_scripts.models.transformer.settings import Settings

FIRST_CAPACITY = 16  # positions of a new cache


def select_words(states: Tensor) -> Tensor:
    """Return the words of two streams: [S, 2 B, d] -> [S, B, d]."""
    return states[:, : states.size(1) // 2]


def select_codes(states: Tensor) -> Tensor:
    """Return the codes of two streams: [S, 2 B, d] -> [S, B, d]."""
    return states[:, states.size(1) // 2 :]


def select_positions(states: Tensor, at: Tensor) -> Tensor:
    """Return one position of each sequence: states [S, N, d], positions [N] -> [1, N, d]."""
    return states.gather(0, at[None, :, None].expand(1, -1, states.size(-1)))


def make_padding_mask(ids: Tensor) -> Tensor:
    """Return a mask that is True where a key is padding: ids [B, S] -> [B, 1, 1, S]."""
    return ids.eq(PAD)[:, None, None, :]


def make_causal_mask(length: int, device: torch.device) -> Tensor:
    """Return a mask [1, 1, T, T] that is True where a key comes after the query."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu_(1)[None, None]


class FeedForward(nn.Module):
    """LN(u + dropout(FFN(u))), or gated: LN(g u + (1 - g) dropout(FFN(u))), g = sigmoid(G(u)).

    FFN and G are d -> feed_forward -> d with ReLU; G has dropout after its ReLU.
    """

    def __init__(self, settings: Settings):
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
        """Transform states [S, N, d] -> [S, N, d]."""
        change = self.dropout(self.outer(self.inner(states).relu()))
        if not self.gated:
            return self.norm(states + change)
        gate = self.gate_outer(self.dropout(self.gate_inner(states).relu())).sigmoid()
        return self.norm(change + gate * (states - change))


class EncoderLayer(nn.Module):
    """Self-attention and FeedForward, each followed by dropout, residual and LayerNorm."""

    def __init__(self, settings: Settings):
        super().__init__()
        self.attention = MultiHeadAttention(
            settings.width, settings.heads, settings.dropout, settings.max_distance
        )
        self.dropout = Dropout(settings.dropout)
        self.norm = nn.LayerNorm(settings.width)
        self.feed_forward: nn.Module = FeedForward(settings)  # LRF takes it out of the layer

    def compute_attention_map(self, states: Tensor, mask: Tensor | None, guided: bool) -> Tensor:
        """Return the self-attention weights [N, heads, S, S] of states [S, N, d].

        With `guided` these are the weights of the codes.
        """
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
        """Transform states [S, N, d] -> [S, N, d].

        guided: SAL (Jiang et al. 2024, section 3.2), with words and codes, N = 2 B:
            z_{l+1} = MHAttn(q = z_l, k = z_l, v = z_l),
            x_{l+1} = MHAttn(q = z_l, k = z_l, v = x_l).
            Otherwise each of the N attends to itself, as in the Transformer and in SRL
            (section 3.3).
        words_only: return the words alone, [S, B, d].
        at: positions [N]; return these alone, [1, N, d].
        """
        guide = select_codes(states) if guided else states
        if words_only:
            states = select_words(states)
        attended = self.attention(guide, guide, states, mask)
        if at is not None:
            attended = select_positions(attended, at)
            states = select_positions(states, at)
        return self.feed_forward(self.norm(states + self.dropout(attended)))


@dataclass
class LayerCache:
    """Projected states that a decoder layer keeps between decoding steps.

    key [C, N, d] and value [C, G N, d] of self-attention: the first `length` of C positions are
    filled, and C doubles when it is full. cross_key and cross_value [S, ., d] of the encoder's
    output.
    """

    cross_key: Tensor
    cross_value: Tensor
    key: Tensor | None = None
    value: Tensor | None = None
    length: int = 0

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append one position in place, key [1, N, d] and value [1, G N, d].

        Returns keys and values of all positions so far, views of the cache.
        """
        if self.key is None or self.value is None:  # both are, or neither
            self.key = key.new_empty(FIRST_CAPACITY, *key.shape[1:])
            self.value = value.new_empty(FIRST_CAPACITY, *value.shape[1:])
        elif self.length == self.key.size(0):
            self.key = torch.cat([self.key, torch.empty_like(self.key)])
            self.value = torch.cat([self.value, torch.empty_like(self.value)])
        self.key[self.length] = key[0]
        self.value[self.length] = value[0]
        self.length += 1
        return self.key[: self.length], self.value[: self.length]

    def select(self, rows: Tensor, batch: int, same_sentences: bool = False) -> "LayerCache":
        """Return the cache of the sentences `rows` [R] of `batch`, in that order; rows may repeat.

        same_sentences: each of `rows` is a hypothesis of the sentence that it replaces, so the
        cross states stay.
        """
        cross_key = self.cross_key
        cross_value = self.cross_value
        if not same_sentences:
            cross_key = cross_key.index_select(1, _find_columns(cross_key, rows, batch))
            cross_value = cross_value.index_select(1, _find_columns(cross_value, rows, batch))
        key = self._copy_rows(self.key, rows, batch)
        value = self._copy_rows(self.value, rows, batch)
        return LayerCache(cross_key, cross_value, key, value, self.length)

    def _copy_rows(self, states: Tensor | None, rows: Tensor, batch: int) -> Tensor | None:
        """Copy the filled part of key or value for `rows`, to one of the same capacity.

        Returns None for None.
        """
        if states is None:
            return None
        capacity, columns, width = states.shape
        copy = states.new_empty(capacity, columns // batch * len(rows), width)
        # Decoding needs no gradient, and `out` does not support it.
        filled = states[: self.length].detach()
        torch.index_select(filled, 1, _find_columns(states, rows, batch), out=copy[: self.length])
        return copy


def _find_columns(states: Tensor, rows: Tensor, batch: int) -> Tensor:
    """Return the columns of `rows` in each stream of states [S, streams x batch, d]."""
    streams = torch.arange(states.size(1) // batch, device=rows.device)
    return (streams[:, None] * batch + rows).flatten()


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention and FeedForward.

    Each is followed by dropout, residual and LayerNorm.
    """

    def __init__(self, settings: Settings):
        super().__init__()
        self.self_attention = MultiHeadAttention(
            settings.width, settings.heads, settings.dropout, settings.max_distance
        )
        self.cross_attention = MultiHeadAttention(settings.width, settings.heads, settings.dropout)
        self.dropout = Dropout(settings.dropout)
        self.self_norm = nn.LayerNorm(settings.width)
        self.cross_norm = nn.LayerNorm(settings.width)
        self.feed_forward: nn.Module = FeedForward(settings)  # LRF takes it out of the layer

    def start_cache(self, memory_key: Tensor, memory_value: Tensor) -> LayerCache:
        """Return a new cache with projected keys and values of the encoder's output, [S, ., d]."""
        cross_key = self.cross_attention.key(memory_key)
        cross_value = self.cross_attention.value(memory_value)
        return LayerCache(cross_key, cross_value)

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
        """Transform states [T, N, d] -> [T, N, d].

        These are all positions under a causal `mask`, or the next one without a mask, whose key and
        value are then added to `cache` in place.

        guided, guided_cross: SAL in the decoder (Jiang et al. 2024, appendix A.5), N = 2 B:
            y' = SelfAttn(q = z, k = z, v = y), then CrossAttn(q = y', k = x_L, v = x_L) as in the
            text, or with `guided_cross` CrossAttn(q = z', k = x_L, v = x_L) as in the official
            code. If the values have one stream, both streams get the same result.
        words_only: see EncoderLayer.
        """
        guide = select_codes(states) if guided else states
        if words_only and not guided_cross:
            states = select_words(states)
        key = self.self_attention.key(guide)
        value = self.self_attention.value(states)
        offset = 0
        if mask is None:
            offset = cache.length
            key, value = cache.append(key, value)
        attended = self.self_attention.attend(guide, key, value, mask, offset)
        states = self.self_norm(states + self.dropout(attended))
        guide = select_codes(states) if guided_cross else states
        if words_only and guided_cross:
            states = select_words(states)
        attended = self.cross_attention.attend(
            guide, cache.cross_key, cache.cross_value, memory_mask
        )
        attended = self.dropout(attended)
        if attended.size(1) < states.size(1):
            attended = attended.repeat(1, 2, 1)
        return self.feed_forward(self.cross_norm(states + attended))
