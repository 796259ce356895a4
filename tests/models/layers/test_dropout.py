import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_scripts.models.layers.dropout import Dropout, sample_keep_mask


@settings(max_examples=30, deadline=None)
@given(
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    p=st.floats(0.05, 0.95),
    seed=st.integers(0, 9),
)
def test_mask_has_the_shape_and_two_values(shape, p, seed):
    torch.manual_seed(seed)
    mask = sample_keep_mask(torch.empty(shape), p)
    assert list(mask.shape) == shape
    kept = mask[mask != 0]
    assert torch.allclose(kept, torch.full_like(kept, 1 / (1 - p)), rtol=1e-3)


def test_share_and_mean_over_many_draws():
    mask = sample_keep_mask(torch.empty(1001, 1001), 0.3)
    assert abs(float(mask.ne(0).float().mean()) - 0.7) < 0.002
    assert abs(float(mask.mean()) - 1) < 0.003
    # The four elements that share one 64-bit draw are dropped equally often, and not together.
    quarters = mask.flatten()[:1_000_000].view(-1, 4).ne(0).float()
    assert (quarters.mean(dim=0) - 0.7).abs().max() < 0.003
    assert (torch.corrcoef(quarters.t()) - torch.eye(4)).abs().max() < 0.01


def test_gradient_passes_where_the_value_did():
    x = torch.randn(50, 50, requires_grad=True)
    dropped = Dropout(0.4)(x)
    dropped.sum().backward()
    assert torch.equal(x.grad.ne(0), dropped.ne(0))


def test_seed_decides_the_draw_and_evaluation_keeps_all():
    dropout, x = Dropout(0.5), torch.ones(9, 9)
    torch.manual_seed(3)
    first = dropout(x)
    torch.manual_seed(3)
    assert torch.equal(first, dropout(x))
    assert not torch.equal(first, dropout(x))
    assert dropout.eval()(x) is x
