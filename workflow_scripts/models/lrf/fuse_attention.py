"""Fuse-attention of LRF (Zheng et al. 2024): a position attends over its own outputs of earlier layers."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from workflow_scripts.models.layers.attention import make_projections
from workflow_scripts.models.layers.dropout import Dropout


class FuseAttention(nn.Module):
    """H_p = MHA(H_a, H_plo, H_plo) (equations 9 and 10), where each position sees only its own rows of H_plo.

    For one position, with its query q, representations h_0 .. h_{l-1} and head i:
    a_ij = softmax_j((W_Q q + b_Q)_i . (W_K h_j)_i / sqrt(d_head)),
    out = W_O concat_i(sum_j a_ij (W_V h_j + b_V)_i) + b_O.
    The key's bias adds the same to all logits of a query: it is a parameter without effect, as in every attention.

    No h_j is projected. W_K goes to the query and W_V behind the sum, which leaves four products with d x d matrices
    whatever l is, and no cache for decoding: earlier layers' outputs of a position are computed in its own step.
    """

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = make_projections(width)

    def forward(self, query: Tensor, fused: Sequence[Tensor], uniform: bool = False) -> Tensor:
        """query [S, N, d], `fused` l times [S, N, d] -> [S, N, d]; `uniform`: equal weights, no W_Q and W_K."""
        if len(fused) == 1:  # its weight is 1
            return self.output(self.value(fused[0]))
        if uniform:
            return self.output(self.value(torch.stack(list(fused)).mean(dim=0)))
        stacked = self._by_position(fused)
        mixed = torch.bmm(self._weights(query, stacked), stacked)
        values = torch.einsum("phd,hkd->phk", mixed, self._by_head(self.value.weight))
        return self.output(values.reshape(query.shape) + self.value.bias)

    def compute_weights(self, query: Tensor, fused: Sequence[Tensor]) -> Tensor:
        """a_ij of every position: query [S, N, d], `fused` l times [S, N, d] -> [S, N, heads, l]."""
        return self._weights(query, self._by_position(fused)).view(*query.shape[:2], self.heads, len(fused))

    def _weights(self, query: Tensor, stacked: Tensor) -> Tensor:
        """query [S, N, d], stacked [S N, l, d] -> [S N, heads, l]"""
        by_head = self.query(query).view(stacked.size(0), self.heads, -1)
        asked = torch.einsum("phk,hkd->phd", by_head * by_head.size(-1) ** -0.5, self._by_head(self.key.weight))
        return torch.bmm(asked, stacked.transpose(1, 2)).softmax(dim=-1)

    def _by_head(self, weight: Tensor) -> Tensor:
        """[d, d] -> [heads, d_head, d]"""
        return weight.view(self.heads, -1, weight.size(1))

    @staticmethod
    def _by_position(fused: Sequence[Tensor]) -> Tensor:
        """l times [S, N, d] -> [S N, l, d]"""
        return torch.stack(list(fused), dim=2).flatten(0, 1)


class FuseSublayer(nn.Module):
    """LN(H_a + dropout(H_p)), as around every other sub-layer, or without residual dropout(H_p), as equation 9 is."""

    def __init__(self, attention: FuseAttention, dropout: float, residual: bool, over: str, uniform: bool):
        super().__init__()
        self.attention = attention
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(attention.output.out_features) if residual else None
        self.over, self.uniform = over, uniform

    def select_fused(self, states: Tensor, earlier: Sequence[Tensor]) -> Sequence[Tensor]:
        """What the attention reads (`fuse_over`): of H_a `states` and the earlier layers' outputs, all [S, N, d]."""
        if self.over == "previous":
            return earlier[-1:]
        return [*earlier, states] if self.over == "earlier_and_current" else earlier

    def compute_weights(self, states: Tensor, earlier: Sequence[Tensor]) -> Tensor:
        """Attention over what is fused, [S, N, heads, l]."""
        fused = self.select_fused(states, earlier)
        if self.uniform:
            return states.new_full((*states.shape[:2], self.attention.heads, len(fused)), 1 / len(fused))
        return self.attention.compute_weights(states, fused)

    def forward(self, states: Tensor, earlier: Sequence[Tensor]) -> Tensor:
        """H_a [S, N, d], earlier outputs H^0 .. H^{l-1}, each [S, N, d] -> [S, N, d]"""
        change = self.dropout(self.attention(states, self.select_fused(states, earlier), self.uniform))
        return change if self.norm is None else self.norm(states + change)
