"""Multi-head attention on time-major states.

It has relative positions, and attention maps that several streams share.
"""

import torch
from torch import Tensor, nn

from workflow_scripts.models.layers.dropout import Dropout


def make_projections(width: int) -> list[nn.Linear]:
    """Return W_Q, W_K, W_V and W_O of attention, d -> d, with the initial weights of fairseq."""
    query = nn.Linear(width, width)
    key = nn.Linear(width, width)
    value = nn.Linear(width, width)
    output = nn.Linear(width, width)
    for projection in (query, key, value):
        nn.init.xavier_uniform_(projection.weight, gain=2**-0.5)
    nn.init.xavier_uniform_(output.weight)
    nn.init.zeros_(output.bias)
    return [query, key, value, output]


class RelativePositions(nn.Module):
    """Learned vectors of the clipped distance of two positions, for all heads (Shaw et al. 2018).

    Dropout applies to pairs of positions.
    """

    def __init__(self, max_distance: int, head_width: int, dropout: float):
        super().__init__()
        self.max_distance = max_distance
        self.table = nn.Parameter(torch.randn(2 * max_distance + 1, head_width))
        self.dropout = Dropout(dropout)

    def forward(self, queries: int, keys: int, offset: int = 0) -> Tensor:
        """Return a_{ij} [T, S, d_head].

        Query positions are offset .. offset + queries - 1, key positions start at 0.
        """
        positions = torch.arange(max(queries + offset, keys), device=self.table.device)
        distance = positions[offset : offset + queries, None] - positions[None, :keys]
        index = distance.clamp(-self.max_distance, self.max_distance) + self.max_distance
        return self.dropout(nn.functional.embedding(index, self.table))


class MultiHeadAttention(nn.Module):
    """softmax((q k^T + q a^K) / sqrt(d_head)) (v + a^V).

    The a terms are only for relative positions. States are time-major [S, N, d], where N is the
    batch, or streams x batch. If values have G times the N of the queries, all their streams share
    one attention map, as in the Systematic Attention Layer (SAL).
    """

    def __init__(
        self, width: int, heads: int, dropout: float, max_relative_position: int | None = None
    ):
        super().__init__()
        self.heads = heads
        self.relative_keys = None
        self.relative_values = None
        self.query, self.key, self.value, self.output = make_projections(width)
        if max_relative_position is not None:
            head_width = width // heads
            self.relative_keys = RelativePositions(max_relative_position, head_width, dropout)
            self.relative_values = RelativePositions(max_relative_position, head_width, dropout)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """Attend from query [T, N, d] to key [S, N, d] and value [S, G N, d] -> [T, G N, d].

        mask: see compute_weights.
        """
        return self.attend(query, self.key(key), self.value(value), mask)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, offset: int = 0
    ) -> Tensor:
        """Attend from query [T, N, d] to projected key [S, N, d] and value [S, G N, d].

        The result is [T, G N, d]. The first query is at position `offset`. mask: see
        compute_weights.
        """
        weights = self.compute_weights(query, key, mask, offset)
        streams = value.size(1) // key.size(1)
        if streams > 1:
            weights = weights.repeat(streams, 1, 1)
        attended = torch.bmm(weights, self._split_heads(value).transpose(0, 1)).transpose(0, 1)
        if self.relative_values is not None:
            relative = self.relative_values(query.size(0), key.size(0), offset)
            attended = torch.baddbmm(attended, weights.transpose(0, 1), relative)
        return self.output(attended.reshape(query.size(0), value.size(1), -1))

    def compute_weights(
        self, query: Tensor, key: Tensor, mask: Tensor | None, offset: int = 0
    ) -> Tensor:
        """Return the attention map [N heads, T, S] of query [T, N, d] on projected keys [S, N, d].

        mask: True where a query must not see a key, [B, 1, 1, S] (padding; N is a multiple of B) or
        [1, 1, T, S].
        """
        queries = self._split_heads(self.query(query))  # [T, N heads, d_head]
        scale = queries.size(-1) ** -0.5
        keys = self._split_heads(key).permute(1, 2, 0)  # [N heads, d_head, S]
        if self.relative_keys is None:
            logits = torch.bmm(queries.transpose(0, 1) * scale, keys)
        else:
            relative = self.relative_keys(queries.size(0), keys.size(2), offset)
            positional = torch.bmm(queries, relative.transpose(1, 2)).transpose(0, 1)
            logits = torch.baddbmm(
                positional, queries.transpose(0, 1), keys, beta=scale, alpha=scale
            )
        if mask is not None:
            by_sentence = logits.view(-1, mask.size(0), self.heads, *logits.shape[1:])
            logits = by_sentence.masked_fill(mask, -torch.inf).view_as(logits)
        return logits.softmax(dim=-1)

    def _split_heads(self, states: Tensor) -> Tensor:
        """Split states into heads: [S, N, d] -> [S, N heads, d_head]."""
        return states.view(states.size(0), states.size(1) * self.heads, -1)
