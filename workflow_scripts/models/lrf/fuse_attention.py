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
    The bias of the key is the same for all logits of a query, so it has no effect, as in every attention.

    W_K is applied to the query and W_V to the sum, not to each h_j: four products with d x d matrices for any l.
    Decoding needs no cache, because the earlier outputs of a position are computed in its own step.
    """

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = make_projections(width)

    def forward(self, query: Tensor, fused: Sequence[Tensor], uniform: bool = False) -> Tensor:
        """Fuse l representations for query, all [S, N, d]. uniform: equal weights, without W_Q and W_K."""
        if len(fused) == 1:  # its weight is 1
            return self.output(self.value(fused[0]))
        if uniform:
            return self.output(self.value(torch.stack(list(fused)).mean(dim=0)))
        stacked = self._by_position(fused)
        mixed = torch.bmm(self._weights(query, stacked), stacked)
        values = torch.einsum("phd,hkd->phk", mixed, self._by_head(self.value.weight))
        return self.output(values.reshape(query.shape) + self.value.bias)

    def compute_weights(self, query: Tensor, fused: Sequence[Tensor]) -> Tensor:
        """Return a_ij [S, N, heads, l] for query [S, N, d] and l representations `fused`, each [S, N, d]."""
        return self._weights(query, self._by_position(fused)).view(*query.shape[:2], self.heads, len(fused))

    def _weights(self, query: Tensor, stacked: Tensor) -> Tensor:
        """Return a_ij [S N, heads, l] for query [S, N, d] and stacked [S N, l, d]."""
        by_head = self.query(query).view(stacked.size(0), self.heads, -1)
        asked = torch.einsum("phk,hkd->phd", by_head * by_head.size(-1) ** -0.5, self._by_head(self.key.weight))
        return torch.bmm(asked, stacked.transpose(1, 2)).softmax(dim=-1)

    def _by_head(self, weight: Tensor) -> Tensor:
        """Split the rows of a matrix by head: [d, d] -> [heads, d_head, d]."""
        return weight.view(self.heads, -1, weight.size(1))

    @staticmethod
    def _by_position(fused: Sequence[Tensor]) -> Tensor:
        """Stack l representations [S, N, d] by position: [S N, l, d]."""
        return torch.stack(list(fused), dim=2).flatten(0, 1)


class FuseSublayer(nn.Module):
    """LN(H_a + dropout(H_p)), as in the other sub-layers, or dropout(H_p) without residual (literal equation 9)."""

    def __init__(self, attention: FuseAttention, dropout: float, residual: bool, over: str, uniform: bool):
        super().__init__()
        self.attention = attention
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(attention.output.out_features) if residual else None
        self.over, self.uniform = over, uniform

    def select_fused(self, states: Tensor, earlier: Sequence[Tensor]) -> Sequence[Tensor]:
        """Select the inputs of the attention by `fuse_over` from H_a and the earlier layers' outputs, all [S, N, d]."""
        if self.over == "previous":
            return earlier[-1:]
        return [*earlier, states] if self.over == "earlier_and_current" else earlier

    def compute_weights(self, states: Tensor, earlier: Sequence[Tensor]) -> Tensor:
        """Return the weights of the l inputs of the attention, [S, N, heads, l]."""
        fused = self.select_fused(states, earlier)
        if self.uniform:
            return states.new_full((*states.shape[:2], self.attention.heads, len(fused)), 1 / len(fused))
        return self.attention.compute_weights(states, fused)

    def forward(self, states: Tensor, earlier: Sequence[Tensor]) -> Tensor:
        """Return H_a [S, N, d] after fusion of the earlier outputs H^0 .. H^{l-1}, each [S, N, d]."""
        change = self.dropout(self.attention(states, self.select_fused(states, earlier), self.uniform))
        return change if self.norm is None else self.norm(states + change)
