import pytest
import torch

from tests.models.small_models import ALL, PLAIN, count_parameters, decoder_input, make, sentences
from workflow_scripts.models.transformer import model as seq2seq
from workflow_scripts.models.transformer.model import make_sinusoids


def test_parameter_counts_of_the_paper_on_scan():
    model = seq2seq.build(seq2seq.Settings(), 17, 10)
    attention = 4 * (256 * 256 + 256)
    relative, norm = 2 * 41 * 64, 2 * 256
    feed_forward = 2 * (256 * 512 + 512 + 512 * 256 + 256)
    encoder = attention + relative + feed_forward + 2 * norm
    decoder = encoder + attention + norm
    assert count_parameters(model) == 3 * encoder + 3 * decoder + 27 * 256 == 5_569_536
    model = seq2seq.build(seq2seq.Settings(**{"positions": "sinusoidal", "gated": False}), 17, 10)
    assert 5_569_536 - count_parameters(model) == 6 * (
        2 * 41 * 64 + 256 * 512 + 512 + 512 * 256 + 256
    )


@pytest.mark.parametrize("name", ALL)
def test_padded_batch_equals_single_sentences(name):
    model = make(name).eval()
    source, target = sentences([6, 2, 4, 1]), sentences([3, 7, 1, 5], seed=1)
    target_in = decoder_input(target)
    logits = model(source, target_in).logits
    for row, (s, t) in enumerate(zip([6, 2, 4, 1], [3, 7, 1, 5], strict=True)):
        alone = model(source[row : row + 1, :s], target_in[row : row + 1, :t]).logits
        torch.testing.assert_close(logits[row : row + 1, :t], alone, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ALL)
def test_no_position_sees_a_later_target_word(name):
    model = make(name).eval()
    source, target_in = sentences([5, 3]), decoder_input(sentences([6, 6], seed=1))
    changed = target_in.clone()
    changed[:, 4:] = 11
    before, after = (model(source, target).logits for target in (target_in, changed))
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


@pytest.mark.parametrize("name", ALL)
def test_encoder_attention_sums_to_one_over_real_words(name):
    model = make(name).eval()
    source = sentences([6, 3])
    maps = model.compute_encoder_attention(source)
    assert maps.shape == (2, 2, 2, 6, 6)
    torch.testing.assert_close(maps.sum(dim=-1), torch.ones(2, 2, 2, 6))
    assert maps[:, 1, :, :, 3:].abs().max() == 0
    alone = model.compute_encoder_attention(source[1:, :3])
    torch.testing.assert_close(maps[:, 1:, :, :3, :3], alone, atol=1e-5, rtol=1e-4)


def test_sinusoids_are_those_of_vaswani():
    table = make_sinusoids(5, 6, 3, torch.device("cpu"))
    assert table.shape == (5, 1, 6)
    for row in range(5):
        for i in range(3):
            angle = torch.tensor((row + 3) / 10000 ** (i / 3))
            torch.testing.assert_close(table[row, 0, i], angle.sin(), atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(table[row, 0, 3 + i], angle.cos(), atol=1e-5, rtol=1e-5)


def test_embeddings_are_scaled_tied_and_without_a_vector_for_padding():
    model = make("relative").eval()
    ids = sentences([4, 2])
    embedded = model.embed(model.source_embedding, ids)
    torch.testing.assert_close(embedded, 4 * model.source_embedding.weight[ids].transpose(0, 1))
    assert model.source_embedding.weight[0].abs().max() == 0
    states = torch.randn(3, 2, 16)
    expected = torch.einsum("tbd,vd->btv", states, model.target_embedding.weight)
    torch.testing.assert_close(model.project(states), expected)


@pytest.mark.parametrize("name", PLAIN)
def test_dropout_only_in_training(name):
    model = make(name)
    source, target_in = sentences([5]), decoder_input(sentences([4], seed=1))
    assert not torch.equal(model(source, target_in).logits, model(source, target_in).logits)
    model.eval()
    assert torch.equal(model(source, target_in).logits, model(source, target_in).logits)


@pytest.mark.parametrize("name", ALL)
def test_half_precision_training_step_stays_close(name):
    model = make(name, dropout=0.0)
    source, target_in = sentences([5, 3]), decoder_input(sentences([4, 6], seed=1))
    torch.manual_seed(0)
    full = model(source, target_in).logits
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.manual_seed(0)
        half = model(source, target_in).logits
    half.float().square().mean().backward()
    assert (full - half.float()).abs().mean() < 0.05 * full.abs().mean() + 0.05
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
