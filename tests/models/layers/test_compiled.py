"""Layers can be compiled as a whole, for all shapes; tested with SAL, whose layers have two
streams.
"""

import pytest
import torch

from workflow_scripts.models.layers.transformer import (
    DecoderLayer,
    EncoderLayer,
    make_causal_mask,
    make_padding_mask,
)
from workflow_scripts.models.transformer.settings import Settings

SETTINGS = Settings(layers=1, heads=2, width=8, feed_forward=8, dropout=0.0)


@pytest.fixture(autouse=True)
def forget_compiled():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def make_source(length: int) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(1, 9, (3, length))
    ids[0, -1] = 0
    return torch.randn(length, 6, 8), make_padding_mask(ids)


@pytest.mark.slow
def test_an_encoder_layer_compiles_without_a_break_and_once_for_all_lengths():
    layer = EncoderLayer(SETTINGS)
    inputs = [make_source(length) for length in (4, 5, 7)]
    expected = [layer(states, mask, True) for states, mask in inputs]
    layer.compile(dynamic=True, fullgraph=True, backend="eager")
    found = [layer(*inputs[0], True)]
    with torch.compiler.set_stance("fail_on_recompile"):
        found += [layer(states, mask, True) for states, mask in inputs[1:]]
    torch.testing.assert_close(found, expected)


def test_a_decoder_layer_compiles_without_a_break_and_once_for_all_lengths():
    layer = DecoderLayer(SETTINGS)
    inputs = [(make_source(length + 9), torch.randn(length, 6, 8)) for length in (4, 5, 7)]

    def run(source: tuple[torch.Tensor, torch.Tensor], states: torch.Tensor) -> torch.Tensor:
        memory, mask = source
        cache = layer.start_cache(memory[:, :3], memory)
        return layer(states, cache, mask, make_causal_mask(len(states), states.device), True, True)

    expected = [run(*pair) for pair in inputs]
    layer.compile(dynamic=True, fullgraph=True, backend="eager")
    found = [run(*inputs[0])]
    with torch.compiler.set_stance("fail_on_recompile"):
        found += [run(*pair) for pair in inputs[1:]]
    torch.testing.assert_close(found, expected)


def test_a_compiled_layer_runs_as_written_where_that_is_asked():
    layer = EncoderLayer(SETTINGS)
    states, mask = make_source(4)
    expected = layer(states, mask)
    layer.compile(dynamic=True, fullgraph=True, backend="eager")
    with torch.compiler.set_stance("force_eager"):
        assert torch.equal(layer(states, mask), expected)
