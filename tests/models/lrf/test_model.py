import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.small_models import FUSED, SMALL, count_parameters, decoder_input, make, sentences
from workflow_scripts.models.lrf import model as fused_transformer
from workflow_scripts.models.lrf.model import FuseAttention
from workflow_scripts.models.transformer import model as seq2seq
from workflow_scripts.models.transformer.model import Seq2Seq
from workflow_scripts.models.weights import list_weights


def random_attention(width, heads, seed):
    """Weights and biases large enough for every one of them to show in the output."""
    torch.manual_seed(seed)
    attention = FuseAttention(width, heads)
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return attention


def masked_attention(attention, query, fused):
    """The paper's form: keys and values are all S K vectors of a sentence, and a mask hides those
    of other positions.

    query [S, N, d], fused K times [S, N, d] -> (output [S, N, d], weights [N, heads, S, S K]).
    """
    S, N, d = query.shape
    heads, K = attention.heads, len(fused)
    # position by position, in it layer by layer
    keys = torch.stack(fused, dim=1).reshape(S * K, N, d)
    q, k, v = (
        layer(x).view(-1, N, heads, d // heads).permute(1, 2, 0, 3)
        for layer, x in ((attention.query, query), (attention.key, keys), (attention.value, keys))
    )
    logits = q @ k.transpose(2, 3) / math.sqrt(d // heads)
    other = torch.arange(S)[:, None] != torch.arange(S * K)[None] // K
    weights = logits.masked_fill(other, -torch.inf).softmax(-1)
    return attention.output((weights @ v).permute(2, 0, 1, 3).reshape(S, N, d)), weights


@settings(max_examples=25, deadline=None)
@given(
    S=st.integers(1, 5),
    N=st.integers(1, 3),
    K=st.integers(1, 6),
    heads=st.sampled_from([1, 2, 4]),
    seed=st.integers(0, 999),
)
def test_fuse_attention_equals_attention_over_all_positions_under_the_mask(S, N, K, heads, seed):
    """In its output, its weights and its gradients."""
    attention = random_attention(8, heads, seed).double()  # so that rounding cannot decide
    inputs = torch.randn(K + 1, S, N, 8, dtype=torch.float64, requires_grad=True)
    query, fused = inputs[0], list(inputs[1:])
    (expected, weights), output = masked_attention(attention, query, fused), attention(query, fused)
    torch.testing.assert_close(output, expected)
    own = torch.stack([weights[:, :, s, s * K : (s + 1) * K] for s in range(S)])
    torch.testing.assert_close(attention.compute_weights(query, fused), own)
    gradients = (
        torch.autograd.grad(
            made.square().sum(),
            [inputs, *attention.parameters()],
            allow_unused=True,
            materialize_grads=True,
        )
        for made in (output, expected)
    )
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_uniform_weights_are_the_mean_of_the_values():
    attention = random_attention(8, 2, 0)
    query, *fused = torch.randn(4, 3, 2, 8)
    expected = attention.output(torch.stack([attention.value(x) for x in fused]).mean(0))
    torch.testing.assert_close(
        attention(query, fused, uniform=True), expected, atol=1e-5, rtol=1e-4
    )


# Parameters


@pytest.mark.parametrize(
    ("layers", "base", "fused"),
    [(6, 35_389_440, 48_009_216), (4, 24_875_008, 33_288_192), (2, 14_360_576, 18_567_168)],
)
def test_parameter_counts_on_cognition(layers, base, fused):
    sizes = {"layers": layers, "width": 512, "feed_forward": 1024, "heads": 4}
    plain = seq2seq.build(
        seq2seq.Settings(**(sizes | {"positions": "sinusoidal", "gated": False})), 2008, 5504
    )
    assert count_parameters(plain) == base
    model = fused_transformer.build(fused_transformer.Settings(**sizes), 2008, 5504)
    assert count_parameters(model) == fused == base + 2 * layers * 1_051_648
    shared = fused_transformer.build(
        fused_transformer.Settings(**(sizes | {"fuse_shared": True})), 2008, 5504
    )
    assert count_parameters(shared) == base + 1_051_648
    assert sum(tensor.numel() for tensor in list_weights(shared).values()) == base + 1_051_648


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(
    ("width", "feed_forward", "layers"), [(512, 1024, 6), (256, 512, 3), (128, 256, 2), (32, 64, 2)]
)
def test_the_wider_transformer_has_as_many_parameters(width, feed_forward, layers, gated):
    sizes = {
        "layers": layers,
        "width": width,
        "feed_forward": feed_forward,
        "heads": 4,
        "gated": gated,
    }
    fused, wider = (
        fused_transformer.build(fused_transformer.Settings(**(sizes | changes)), 100, 100)
        for changes in ({}, {"fuse_in": "wider"})
    )
    assert type(wider) is Seq2Seq
    assert abs(count_parameters(wider) / count_parameters(fused) - 1) < 0.005


def test_without_fuse_attention_anywhere_it_is_the_plain_transformer():
    model = fused_transformer.build(
        fused_transformer.Settings(**(SMALL | {"fuse_in": "none"})), 12, 12
    )
    torch.manual_seed(0)
    plain = seq2seq.build(
        seq2seq.Settings(**(SMALL | {"positions": "sinusoidal", "gated": False})), 12, 12
    )
    assert type(model) is Seq2Seq
    assert all(
        torch.equal(value, plain.state_dict()[key]) for key, value in model.state_dict().items()
    )


@pytest.mark.parametrize("name", ["fused-previous", "fused-uniform", "fused-current"])
def test_controls_have_exactly_the_parameters_of_fuse_attention(name):
    assert count_parameters(make(name)) == count_parameters(make("fused"))


def test_the_backbone_starts_from_the_weights_of_the_plain_transformer():
    model, plain = make("fused"), make("sinusoidal", gated=False)
    renamed = {
        key.replace(".layer.", "."): value
        for key, value in model.state_dict().items()
        if ".fuse." not in key
    }
    assert renamed.keys() == plain.state_dict().keys()
    assert all(torch.equal(value, renamed[key]) for key, value in plain.state_dict().items())


# The layers


def by_the_equations(model, states, *inputs, side):
    """Layer outputs H^0 .. H^L of one side, sub-layer by sub-layer (equations 4 to 10, with
    residuals and norms).
    """
    outputs = [states]
    for layer in getattr(model, side):
        attention, x = layer.layer, outputs[-1]
        if side == "encoder":
            (mask,) = inputs
            x = attention.norm(x + attention.attention(x, x, x, mask))
        else:
            memory, memory_mask, mask = inputs
            x = attention.self_norm(x + attention.self_attention(x, x, x, mask))
            x = attention.cross_norm(x + attention.cross_attention(x, memory, memory, memory_mask))
        fuse = layer.fuse
        if fuse is not None:
            fused = {
                "earlier": outputs,
                "previous": outputs[-1:],
                "earlier_and_current": [*outputs, x],
            }[fuse.over]
            if fuse.uniform:
                values = torch.stack([fuse.attention.value(h) for h in fused]).mean(0)
                change = fuse.attention.output(values)
            else:
                change = masked_attention(fuse.attention, x, list(fused))[0]
            x = change if fuse.norm is None else fuse.norm(x + change)
        outputs.append(layer.feed_forward(x))
    return outputs


@pytest.mark.parametrize("name", FUSED)
def test_a_model_is_its_equations(name):
    model = make(name, dropout=0.0, layers=3)
    source, target_in = sentences([6, 3, 4]), decoder_input(sentences([5, 7, 2], seed=1))
    mask = source.eq(0)[:, None, None]
    causal = torch.ones(7, 7, dtype=torch.bool).triu(1)[None, None]
    encoded = by_the_equations(model, model.embed_source(source), mask, side="encoder")
    decoded = by_the_equations(
        model, model.embed_target(target_in), encoded[-1], mask, causal, side="decoder"
    )
    expected = decoded[-1].transpose(0, 1) @ model.target_embedding.weight.t()
    torch.testing.assert_close(model(source, target_in).logits, expected, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", FUSED)
def test_decoding_keeps_nothing_beyond_the_cache_of_the_plain_transformer(name):
    model = make(name).eval()
    plain = make(model.settings.positions).eval()
    tokens, source = torch.full((2,), 2), sentences([5, 3])
    caches = []
    for m in (model, plain):
        memory, cache = m.encode(source), None
        for _ in range(3):
            _, cache = m.decode_step(memory, cache, tokens)
        caches.append(cache)
    for ours, theirs in zip(caches[0].layers, caches[1].layers, strict=True):
        shapes = [
            {name: getattr(value, "shape", value) for name, value in vars(x).items()}
            for x in (ours, theirs)
        ]
        assert type(ours) is type(theirs) and shapes[0] == shapes[1]


@pytest.mark.parametrize("name", ["fused", "fused-bare"])
def test_dropout_falls_on_what_fuse_attention_gives(name):
    fuse = make(name, dropout=0.5).encoder[1].fuse
    query, *fused = torch.randn(3, 4, 2, 16)
    seen = []
    fuse.dropout.register_forward_hook(lambda _, inputs, output: seen.append((inputs[0], output)))
    found = fuse(query, fused)
    ((given, kept),) = seen
    torch.testing.assert_close(given, fuse.attention(query, fused))
    assert not torch.equal(given, kept)
    torch.testing.assert_close(found, kept if name == "fused-bare" else fuse.norm(query + kept))


def test_shared_fuse_attention_is_one_module_for_both_sides():
    model = make("fused-shared")
    modules = {id(layer.fuse) for side in (model.encoder, model.decoder) for layer in side}
    assert len(modules) == 1 and model.encoder[0].fuse.attention.heads == 4


def test_a_zero_output_projection_without_norm_leaves_the_sublayer_silent():
    model = make("fused-bare", fuse_zero_init=True).eval()
    fuse = model.encoder[1].fuse
    assert fuse.norm is None
    states, *earlier = torch.randn(3, 4, 2, 16)
    assert not fuse(states, earlier).any()


# Weights for the analysis


@pytest.mark.parametrize(
    "name", ["fused", "fused-current", "fused-uniform", "fused-previous", "fused-encoder"]
)
def test_weights_of_every_layer_sum_to_one(name):
    model = make(name, layers=3).eval()
    source, target_in = sentences([6, 3]), decoder_input(sentences([4, 6], seed=1))
    encoder, decoder = model.compute_fusion(source, target_in)
    keys = {"fused-current": [2, 3, 4], "fused-previous": [1, 1, 1]}.get(name, [1, 2, 3])
    assert [tuple(w.shape) for w in encoder] == [(2, 6, 2, K) for K in keys]
    assert [tuple(w.shape) for w in decoder] == (
        [] if name == "fused-encoder" else [(2, 6, 2, K) for K in keys]
    )
    for weights in [*encoder, *decoder]:
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    if name == "fused-uniform":
        assert torch.equal(encoder[1], torch.full_like(encoder[1], 0.5))


def test_the_weights_are_those_of_the_forward_pass():
    model = make("fused").eval()
    source = sentences([5, 3])
    seen = []
    attention = model.encoder[1].fuse.attention
    original = attention._weigh
    attention._weigh = lambda query, fused: seen.append(original(query, fused)) or seen[-1]
    model.encode(source)
    ((in_forward, _),) = seen
    attention._weigh = original
    found = model.compute_fusion(source, decoder_input(source))[0][1]
    torch.testing.assert_close(found.transpose(0, 1).flatten(0, 1), in_forward)
