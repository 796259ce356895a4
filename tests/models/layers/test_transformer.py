"""Layers by hand, and where dropout falls in them: on what each sub-layer adds, and inside the
gate.
"""

import pytest
import torch
from torch.nn.functional import layer_norm, linear

from workflow_scripts.models.layers.dropout import Dropout
from workflow_scripts.models.layers.transformer import DecoderLayer, EncoderLayer, FeedForward
from workflow_scripts.models.transformer.settings import Settings

SETTINGS = Settings(
    width=16, heads=2, feed_forward=24, dropout=0.5, gated=True, max_relative_position=3
)


def by_hand(first, second, states):
    """D -> feed_forward -> d with ReLU: (the hidden values, a function that ends with them or with
    others).
    """
    hidden = linear(states, first.weight, first.bias).clamp(min=0)
    return hidden, lambda values: linear(values, second.weight, second.bias)


def dropped(layer):
    """Of each dropout of a layer, in the order of the calls: (what came in, what went out)."""
    seen = []
    for module in layer.modules():
        if isinstance(module, Dropout):
            module.register_forward_hook(lambda _, inputs, output: seen.append((inputs[0], output)))
    return seen


def normalised(states):
    return layer_norm(states, (16,))


@pytest.mark.parametrize("gated", [True, False])
def test_a_feed_forward_part_is_its_equation(gated):
    part = FeedForward(SETTINGS.model_copy(update={"gated": gated}))
    seen, states = dropped(part), torch.randn(4, 3, 16)
    found = part(states)
    hidden, end = by_hand(part.inner, part.outer, states)
    torch.testing.assert_close(seen[0][0], end(hidden))
    change = seen[0][1]
    if gated:
        hidden, end = by_hand(part.gate_inner, part.gate_outer, states)
        torch.testing.assert_close(seen[1][0], hidden)
        gate = 1 / (1 + torch.exp(-end(seen[1][1])))
        torch.testing.assert_close(found, normalised(gate * states + (1 - gate) * change))
    else:
        torch.testing.assert_close(found, normalised(states + change))
    assert len(seen) == 1 + gated and not torch.equal(*seen[0])


def test_an_encoder_layer_drops_what_attention_adds():
    layer = EncoderLayer(SETTINGS)
    layer.attention.eval()  # it drops relative positions
    layer.feed_forward = torch.nn.Identity()
    seen, states = dropped(layer.dropout), torch.randn(4, 3, 16)
    found = layer(states, None)
    ((added, kept),) = seen
    torch.testing.assert_close(added, layer.attention(states, states, states, None))
    assert not torch.equal(added, kept)
    torch.testing.assert_close(found, normalised(states + kept))


def test_a_decoder_layer_drops_what_both_attentions_add():
    layer = DecoderLayer(SETTINGS)
    layer.self_attention.eval()
    layer.feed_forward = torch.nn.Identity()
    seen, states, memory = dropped(layer.dropout), torch.randn(4, 3, 16), torch.randn(5, 3, 16)
    mask, nothing = (
        torch.ones(4, 4, dtype=torch.bool).triu(1)[None, None],
        torch.zeros(3, 1, 1, 5, dtype=torch.bool),
    )
    found = layer(states, layer.start_cache(memory, memory), nothing, mask)
    (first, kept_first), (second, kept_second) = seen
    torch.testing.assert_close(first, layer.self_attention(states, states, states, mask))
    between = normalised(states + kept_first)
    torch.testing.assert_close(second, layer.cross_attention(between, memory, memory, None))
    torch.testing.assert_close(found, normalised(between + kept_second))
    assert not torch.equal(first, kept_first) and not torch.equal(second, kept_second)
