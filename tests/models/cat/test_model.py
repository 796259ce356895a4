"""CAT: its sizes, codebook attention and mixing against plain oracles, gradients, files of Hugging
Face's format.
"""

import numpy as np
import pytest
import torch
from torch import nn

from tests.models.small_models import count_parameters
from workflow_scripts.models.cat import model as cat
from workflow_scripts.models.cat.model import (
    CatConfig,
    CatModel,
    CodebookAttention,
    Mean,
    StreamMixer,
)
from workflow_scripts.models.cat.settings import Settings
from workflow_scripts.tasks.encoders import EncoderWithHeads

SMALL = {
    "family": "cat",
    "layers": 2,
    "heads": 2,
    "width": 8,
    "feed_forward": 16,
    "positions": 20,
    "codes": 5,
}
SMALL |= {"last_codes": 7, "dropout": 0.0}
VOCABULARY = 30


def config(**changes: object) -> CatConfig:
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "attention_probs_dropout_prob": 0.0}
    return CatConfig(**{**sizes, **changes})


def codebook(seed: int = 0, codes: int = 6, **changes: object) -> CodebookAttention:
    """With weights of a size at which every part counts."""
    torch.manual_seed(seed)
    module = CodebookAttention(config(**changes), codes).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module


def small(**changes: object) -> CatModel:
    torch.manual_seed(0)
    return cat.build(cat.Settings(**(SMALL | changes)), VOCABULARY)


def inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Three sequences, two of them padded."""
    torch.manual_seed(1)
    real = torch.arange(6) < torch.tensor([6, 4, 2])[:, None]
    return torch.randint(5, VOCABULARY, (3, 6)) * real, real, (torch.arange(6) > 2).long() * real


def test_sizes_are_those_of_the_paper():
    """With the biases of the official code, which the paper's formulas lack."""
    with torch.device("meta"):
        model = CatModel(cat.build_cat_config(Settings(), 30522))
        coded = CatModel(cat.build_cat_config(Settings(value_bias=True), 30522))
        per_layer = CatModel(
            cat.build_cat_config(Settings(value_bias=True, mixing="per_layer"), 30522)
        )
    count = count_parameters
    assert count(coded) == 68_722_180 and count(model) == 68_722_180 - 4 * 768
    assert count(per_layer) == 75_809_284
    assert count(coded.blocks[0]) == 7_087_872 and count(coded.mixing[0]) == 2_362_368
    assert (
        count(coded.codebooks[0]) == 2_361_601 + 768_000
        and count(coded.codebooks[3]) == 2_361_601 + 2_420_736
    )


@pytest.mark.parametrize("score", ["dot", "cosine"])
@pytest.mark.parametrize("normalisation", ["l2", "rms"])
@pytest.mark.parametrize("attention", ["relu", "softmax"])
@pytest.mark.parametrize("projected", [True, False])
def test_codebook_attention_is_what_the_equation_says(score, normalisation, attention, projected):
    options = {"score": score, "normalisation": normalisation, "attention": attention}
    module = codebook(**options, output_projection=projected, value_bias=True)
    states = torch.randn(2, 3, 8, dtype=torch.float64)
    composed, weights = module(states)

    def arrays(layer: nn.Linear) -> tuple[np.ndarray, np.ndarray]:
        return layer.weight.detach().numpy(), layer.bias.detach().numpy()

    (w_q, b_q), (w_k, b_k), (w_v, b_v) = (
        arrays(layer) for layer in (module.query, module.key, module.value)
    )
    e, g = module.codebook.detach().numpy(), module.scale.item()
    for row in range(2):
        for token in range(3):
            q = w_q @ states[row, token].numpy() + b_q
            scores = []
            for code in e:
                k = w_k @ code + b_k
                length = 8**0.5 if score == "dot" else np.sqrt(q @ q) * np.sqrt(k @ k)
                scores.append(q @ k / length)
            if attention == "softmax":
                o = g * np.exp(scores) / np.exp(scores).sum()
            else:
                p = np.maximum(scores, 0)
                norm = np.sqrt((p**2).mean() if normalisation == "rms" else (p**2).sum())
                o = g * p / norm if norm else p
            h = sum(weight * (w_v @ code + b_v) for weight, code in zip(o, e, strict=True))
            if projected:
                h = module.output.weight.detach().numpy() @ h
            np.testing.assert_allclose(
                weights.normalise()[row, token].detach().numpy(), o, atol=1e-7
            )
            np.testing.assert_allclose(
                weights.sum_over_codes()[row, token].item(), np.abs(o).sum(), atol=1e-6
            )
            np.testing.assert_allclose(
                composed[row, token].detach().numpy(), h, rtol=1e-6, atol=1e-7
            )


def test_a_state_that_no_code_matches_is_composed_of_nothing():
    """Whether or not the values have a bias; its gradients are 0 and finite."""
    module = codebook(value_bias=True)
    nn.init.zeros_(module.query.weight)
    nn.init.zeros_(module.key.weight)
    nn.init.constant_(module.query.bias, 1.0)
    nn.init.constant_(module.key.bias, -1.0)
    states = torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True)
    composed, weights = module(states)
    assert not composed.any() and not weights.normalise().any()
    (composed.sum() + weights.sum_over_codes().sum()).backward()
    for parameter in (states, *module.parameters()):
        assert not parameter.grad.any()


def test_weights_have_norm_one_however_little_the_codes_match():
    module = codebook()
    nn.init.normal_(module.query.weight, std=1e-5)
    nn.init.zeros_(module.query.bias)
    weights = module(torch.randn(4, 5, 8, dtype=torch.float64))[1]
    some = weights.weights.any(-1)
    assert some.sum() > 10 and weights.weights.max() < 1e-3
    norm = weights.normalise().norm(dim=-1)[some]
    torch.testing.assert_close(
        norm, module.scale.detach().abs().expand(len(norm)), rtol=0.05, atol=0
    )


def test_gradients_reach_the_block_through_the_query():
    module = codebook()
    states = torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True)
    module(states)[0].sum().backward()
    assert module.codebook.grad.any() and module.query.weight.grad.any()
    assert states.grad.any()


def test_mixing_is_attention_of_one_head_over_both():
    module = StreamMixer(config()).double()
    theirs = nn.MultiheadAttention(8, 1, batch_first=True, dtype=torch.float64)
    theirs.in_proj_weight.data, theirs.in_proj_bias.data = (
        module.projections.weight.data,
        module.projections.bias.data,
    )
    theirs.out_proj.weight.data, theirs.out_proj.bias.data = (
        module.output.weight.data,
        module.output.bias.data,
    )
    cont, comp = torch.randn(2, 3, 6, 8, dtype=torch.float64)
    real = inputs()[1]
    both = torch.cat([cont, comp], 1)
    expected = theirs(both, both, both, key_padding_mask=torch.cat([~real, ~real], 1))[0]
    expected = (expected[:, :6] + expected[:, 6:]) / 2
    torch.testing.assert_close(module(cont, comp, real)[real], expected[real])
    # order is nothing
    torch.testing.assert_close(module(comp, cont, real), module(cont, comp, real))


def test_a_residual_and_a_norm_around_the_mixing_are_an_option():
    module = StreamMixer(config(mixing_residual=True))
    cont, comp = torch.randn(2, 3, 6, 8)
    plain = StreamMixer(config())
    plain.load_state_dict(
        {k: v for k, v in module.state_dict().items() if not k.startswith("norm")}
    )
    expected = nn.functional.layer_norm(plain(cont, comp, None) + cont, (8,), eps=1e-12)
    torch.testing.assert_close(module(cont, comp, None), expected)


def test_attention_of_the_mixing_has_berts_dropout_in_training_alone():
    module = StreamMixer(config(attention_probs_dropout_prob=0.5)).double()
    cont, comp = torch.randn(2, 3, 6, 8, dtype=torch.float64)
    expected = module.eval()(cont, comp, None)
    assert torch.equal(module(cont, comp, None), expected)
    module.train()
    drawn = torch.stack([module(cont, comp, None) for _ in range(3000)])
    assert drawn.std(0).min() > 0.01
    # Scaling compensates for the dropped weights.
    assert ((drawn.mean(0) - expected).abs() < 5 * drawn.std(0) / 3000**0.5).all()


def test_codes_start_with_xaviers_deviation_and_the_gain_of_relu():
    found = small(width=64, codes=500).codebooks[0].codebook
    assert found.mean().abs() < 0.002 and found.std().item() == pytest.approx(
        (2 * 2 / (500 + 64)) ** 0.5, rel=0.02
    )


def test_padding_changes_nothing():
    model = small().eval()
    ids, real, types = inputs()
    alone = EncoderWithHeads(model).compute_states(ids[2:, :2], real[2:, :2], types[2:, :2])
    together = EncoderWithHeads(model).compute_states(ids, real, types)
    assert all(
        torch.allclose(states[2:, :2], alone[name], atol=1e-6) for name, states in together.items()
    )


def test_layers_are_what_the_parts_make():
    model = small(mixing="per_layer").eval()
    ids, real, types = inputs()
    states = model.embeddings(input_ids=ids, token_type_ids=types)
    mask = real[:, None, None].expand(3, 1, 6, 6)
    for block, code, mixing in zip(model.blocks, model.codebooks, model.mixing, strict=True):
        cont = block(states, mask)
        comp, _ = code(cont)
        states = mixing(cont, comp, real)
    output = model(ids, real, types)
    for found, expected in zip(output.to_tuple()[:3], (states, cont, comp), strict=True):
        torch.testing.assert_close(found[real], expected[real])
    torch.testing.assert_close(output.gaps[-1], output.contextual - output.compositional)
    assert [weights.weights.shape for weights in output.codes] == [(3, 6, 5), (3, 6, 7)]


def test_readouts_have_the_papers_names():
    model = small().eval()
    given = inputs()
    output, found = model(*given), EncoderWithHeads(model).compute_states(*given)
    names = {"mix": "last_hidden_state", "cont": "contextual", "comp": "compositional"}
    assert list(found) == list(names)  # validation reads the first
    assert all(torch.equal(found[name], output[field]) for name, field in names.items())
    assert not torch.allclose(found["cont"], found["comp"], atol=0.1)


def test_the_mean_in_place_of_mixing():
    ids, real, types = inputs()
    mean = small(mixing="mean").eval()
    output = mean(ids, real, types)
    torch.testing.assert_close(
        output.last_hidden_state, (output.contextual + output.compositional) / 2
    )
    assert not any(True for _ in mean.mixing.parameters()) and isinstance(mean.mixing[0], Mean)
