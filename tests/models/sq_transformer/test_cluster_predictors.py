import pytest
import torch

from workflow_scripts.models.layers.transformer import make_padding_mask
from workflow_scripts.models.sq_transformer.model import (
    CrossPredictor,
    SentencePredictor,
    sample_masked_positions,
)
from workflow_scripts.models.transformer.settings import Settings

LAYER = Settings(
    width=16, heads=2, feed_forward=24, dropout=0.0, gated=True, max_relative_position=3
)


def test_masked_positions_cover_all_but_the_end_symbol_evenly():
    lengths = torch.tensor([2, 5, 1]).repeat(3000)
    drawn = sample_masked_positions(lengths).view(-1, 3)
    assert drawn[:, 0].unique().tolist() == [0] == drawn[:, 2].unique().tolist()
    shares = torch.bincount(drawn[:, 1]) / 3000
    assert shares.shape == (4,)
    assert (shares - 0.25).abs().max() < 0.04


def test_logits_are_the_tied_codebook_and_a_bias():
    predictor, codebook = SentencePredictor(1, LAYER, 5, causal=False), torch.randn(5, 16)
    inputs, mask = torch.randn(4, 2, 16), make_padding_mask(torch.ones(2, 4))
    states = predictor.layers[0](inputs, mask)
    torch.testing.assert_close(
        predictor(inputs, mask, codebook), states @ codebook.t() + predictor.bias
    )


@pytest.mark.parametrize("causal", [False, True])
def test_one_position_is_that_of_the_whole(causal):
    predictor, codebook = SentencePredictor(2, LAYER, 5, causal), torch.randn(5, 16)
    mask = make_padding_mask(torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]]))
    inputs, at = torch.randn(4, 3, 16), torch.tensor([3, 0, 1])
    whole = predictor(inputs, mask, codebook)
    torch.testing.assert_close(predictor(inputs, mask, codebook, at)[0], whole[at, torch.arange(3)])


def test_what_each_predictor_sees():
    codebook, memory = torch.randn(5, 16), torch.randn(3, 2, 16)
    memory_mask = make_padding_mask(torch.tensor([[1, 1, 1], [1, 1, 0]]))
    mask = make_padding_mask(torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]))
    inputs = torch.randn(5, 2, 16)
    later, hidden = inputs.clone(), memory.clone()
    later[3:] += 1
    hidden[2, 1] += 1

    causal = SentencePredictor(2, LAYER, 5, causal=True)
    assert torch.equal(causal(inputs, mask, codebook)[:3], causal(later, mask, codebook)[:3])
    both = SentencePredictor(2, LAYER, 5, causal=False)
    before, after = both(inputs, mask, codebook), both(later, mask, codebook)
    assert not torch.allclose(before[:3, 0], after[:3, 0])
    torch.testing.assert_close(before[:3, 1], after[:3, 1])

    cross = CrossPredictor(2, LAYER, 5)
    before = cross(inputs, memory, memory_mask, codebook)
    torch.testing.assert_close(before[:3], cross(later, memory, memory_mask, codebook)[:3])
    torch.testing.assert_close(before, cross(inputs, hidden, memory_mask, codebook))
    assert not torch.allclose(before, cross(inputs, memory + 1, memory_mask, codebook))
