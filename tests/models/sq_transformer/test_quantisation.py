import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_scripts.models.sq_transformer.quantisation import Quantiser, apply_straight_through
from workflow_scripts.models.sq_transformer.settings import Settings


def quantiser(
    codes=4, width=8, mask_code=False, cosine=False, ema_decay=0.9, gradient=True, seed=0
):
    torch.manual_seed(seed)
    options = {
        "similarity": "cosine" if cosine else "euclidean",
        "ema_decay": ema_decay,
        "width": width,
    }
    options |= {"codebook_gradient": gradient}
    return Quantiser(codes, Settings.model_construct(**options), mask_code)


@settings(max_examples=30, deadline=None)
@given(
    codes=st.integers(1, 6),
    width=st.integers(1, 8),
    seed=st.integers(0, 999),
    scale=st.floats(0.1, 20),
)
def test_scores_are_squared_distances_and_codes_the_nearest(codes, width, seed, scale):
    model = quantiser(codes, width, seed=seed)
    torch.nn.init.normal_(model.codebook)
    embedded = scale * torch.randn(3, 2, width)
    distances = torch.stack(
        [(embedded - code).pow(2).sum(dim=-1) for code in model.codebook], dim=-1
    )
    scores = model.score_codes(embedded)
    torch.testing.assert_close(scores.softmax(-1), (-distances).softmax(-1), atol=1e-3, rtol=1e-3)
    nearest = distances.gather(-1, scores.argmax(-1, keepdim=True))[..., 0]
    torch.testing.assert_close(nearest, distances.min(dim=-1).values, atol=1e-3, rtol=1e-4)


def test_cosine_scores():
    model = quantiser(cosine=True)
    torch.nn.init.normal_(model.codebook)
    embedded = torch.randn(5, 3, 8)
    expected = torch.nn.functional.cosine_similarity(embedded[..., None, :], model.codebook, dim=-1)
    torch.testing.assert_close(model.score_codes(embedded), expected)


def test_codes_start_as_directions():
    torch.testing.assert_close(quantiser(codes=50).codebook.norm(dim=1), torch.ones(50))


def test_a_tie_goes_to_the_first_code():
    model = quantiser()
    with torch.no_grad():
        model.codebook[2] = model.codebook[1]
    assert model(model.codebook[2].detach()[None, None]).codes.item() == 1


def test_mask_code_is_never_assigned():
    model = quantiser(mask_code=True)
    assert model.codebook.shape == (5, 8)
    quantised = model(10 * model.codebook.detach()[:, None])
    assert quantised.codes[:, 0].tolist()[:4] == [0, 1, 2, 3]
    assert quantised.codes.max() < 4
    assert torch.isneginf(quantised.scores[..., 4]).all()
    posterior = quantised.scores.softmax(-1)
    posterior[..., 0].sum().backward()
    assert torch.isfinite(model.codebook.grad).all()
    assert model.codebook.grad[4].abs().max() == 0


def test_straight_through_has_the_value_of_the_code_and_the_gradient_of_the_word():
    vectors = torch.randn(3, 2, 8, requires_grad=True)
    embedded = (1e4 * torch.randn(3, 2, 8)).requires_grad_()
    result = apply_straight_through(vectors, embedded)
    assert torch.equal(result, vectors)
    weights = torch.randn(3, 2, 8)
    (result * weights).sum().backward()
    assert vectors.grad is None
    assert torch.equal(embedded.grad, weights)


def moved_by_loop(codebook, embedded, codes, real, decay):
    """The new codebook: for each code, the mean direction of its members, one word at a time."""
    result = []
    for k, code in enumerate(codebook):
        directions = []
        for word, own, counts in zip(
            embedded.flatten(0, 1), codes.flatten(), real.flatten(), strict=True
        ):
            if own == k and counts:
                length = word.norm()
                directions.append(word / length if length > 0 else word)
        towards = torch.stack(directions).mean(dim=0) if directions else code
        towards = towards / towards.norm() if towards.norm() > 0 else towards
        result.append(decay * code + (1 - decay) * towards)
    return torch.stack(result)


@settings(max_examples=30, deadline=None)
@given(
    decay=st.just(1.0) | st.floats(0.5, 0.999),
    mask_code=st.booleans(),
    seed=st.integers(0, 999),
)
def test_after_step_equals_the_loop(decay, mask_code, seed):
    model = quantiser(mask_code=mask_code, ema_decay=decay, seed=seed)
    # Not of length 1, as in training: a code without members moves by its length alone.
    model.codebook.data *= 0.5 + 2 * torch.rand(model.codebook.size(0), 1)
    before = model.codebook.detach().clone()
    real = torch.rand(3, 2) < 0.7
    embedded = 16 * torch.randn(3, 2, 8) * real[..., None]
    codes = model(embedded).codes
    model.observe(embedded, codes, real)
    model.finish_step()
    torch.testing.assert_close(
        model.codebook.detach(), moved_by_loop(before, embedded, codes, real, decay)
    )
    again = model.codebook.detach().clone()
    model.finish_step()
    assert torch.equal(model.codebook, again)


def test_half_precision_does_not_reach_the_codes():
    model = quantiser()
    embedded = torch.randn(4, 2, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(model(embedded).scores, model.score_codes(embedded))
