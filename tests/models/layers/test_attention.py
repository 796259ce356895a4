import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_scripts.models.layers.attention import MultiHeadAttention, RelativePositions


def naive_attention(attention, query, key, value, visible):
    """Shaw et al. (2018), equations 3 and 4, one number at a time. query [T, N, d] -> list of
    [N][T][d].
    """
    T, N, d = query.shape
    S, heads = key.size(0), attention.heads
    size = d // heads
    q, k, v = (
        attention.query(query).tolist(),
        attention.key(key).tolist(),
        attention.value(value).tolist(),
    )
    relative_keys = relative_values = None
    if attention.relative_keys is not None:
        relative_keys = attention.relative_keys.table.tolist()
        relative_values = attention.relative_values.table.tolist()
        clip = attention.relative_keys.max_distance
    output = torch.zeros(T, N, d)
    for n in range(N):
        for h in range(heads):
            part = range(h * size, (h + 1) * size)
            for i in range(T):
                logits = {}
                for j in range(S):
                    if not visible(n, i, j):
                        continue
                    row = min(max(i - j, -clip), clip) + clip if relative_keys else None
                    logits[j] = sum(
                        q[i][n][c]
                        * (k[j][n][c] + (relative_keys[row][c - h * size] if relative_keys else 0))
                        for c in part
                    ) / math.sqrt(size)
                total = sum(math.exp(x) for x in logits.values())
                for j, logit in logits.items():
                    row = min(max(i - j, -clip), clip) + clip if relative_keys else None
                    for c in part:
                        extra = relative_values[row][c - h * size] if relative_keys else 0
                        output[i, n, c] += math.exp(logit) / total * (v[j][n][c] + extra)
    return attention.output(output)


@settings(max_examples=15, deadline=None)
@given(
    T=st.integers(1, 5),
    S=st.integers(1, 5),
    N=st.integers(1, 2),
    clip=st.one_of(st.none(), st.integers(1, 4)),
    seed=st.integers(0, 99),
)
def test_attention_equals_the_naive_loop(T, S, N, clip, seed):
    torch.manual_seed(seed)
    attention = MultiHeadAttention(8, 2, 0.0, clip)
    query, key, value = torch.randn(T, N, 8), torch.randn(S, N, 8), torch.randn(S, N, 8)
    lengths = torch.randint(1, S + 1, (N,))
    mask = torch.arange(S)[None, None, None] >= lengths[:, None, None, None]
    expected = naive_attention(attention, query, key, value, lambda n, i, j: j < lengths[n])
    torch.testing.assert_close(attention(query, key, value, mask), expected, atol=1e-5, rtol=1e-4)


def test_causal_mask_with_relative_positions_equals_the_naive_loop():
    attention = MultiHeadAttention(8, 2, 0.0, 2)
    x = torch.randn(5, 2, 8)
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1)[None, None]
    expected = naive_attention(attention, x, x, x, lambda n, i, j: j <= i)
    torch.testing.assert_close(attention(x, x, x, mask), expected, atol=1e-5, rtol=1e-4)


def test_relative_positions_drop_each_pair_of_positions_by_itself():
    relative = RelativePositions(20, 32, 0.3)
    looked_up = relative(40, 40)
    kept = looked_up.ne(0).float()
    assert abs(kept.mean() - 0.7) < 0.01
    # Pairs at equal distance share a vector, yet not their draws.
    assert not torch.equal(kept[0, 0], kept[1, 1])
    assert torch.equal(relative.eval()(40, 40)[3, 5], relative.table[18])
    assert torch.equal(relative(40, 40)[39, 0], relative.table[40])
