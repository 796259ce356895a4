from pathlib import Path

import pytest
import torch

from tests.models.small_models import count_parameters, decoder_input, sentences
from tests.models.small_roberta import SIZES, write_roberta
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_run
from workflow_scripts.models.roberta_decoder import model as roberta_transformer
from workflow_scripts.tasks.seq2seq.decoding import decode_greedily, decode_with_beam

ROOT = Path(__file__).parents[3]
DECODER = {"layers": 2, "heads": 2, "width": 8, "feed_forward": 12}
TEXTS = ["did M0 direct M1", "who edited a film that M2 wrote"]
KINDS = {
    "both": {},
    "encoder": {"fuse_in": "encoder"},
    "decoder": {"fuse_in": "decoder"},
    "none": {"fuse_in": "none"},
}


def make(name="both", seed=0, vocabulary=30, **changes):
    torch.manual_seed(seed)
    return roberta_transformer.build(
        roberta_transformer.Settings(**(SIZES | DECODER | KINDS[name] | changes)), vocabulary, 12
    )


def trained(model, seed=1):
    """The model with weights as after some training: fuse-attention in the encoder is not silent
    any more.
    """
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def their_ids(source):
    """[B, S] -> RoBERTa's ids, with <s> first."""
    swapped = torch.tensor([1, 0])[source.clamp(max=1)].where(source < 2, source)
    return torch.cat([torch.zeros_like(source[:, :1]), swapped], dim=1)


@pytest.mark.parametrize("name", KINDS)
def test_at_step_0_the_encoder_is_the_pre_trained_model(tmp_path, name):
    original = write_roberta(tmp_path, TEXTS)
    model = make(name, vocabulary=original.config.vocab_size)
    model.read_pretrained(tmp_path)
    source = sentences([6, 3, 1], vocabulary=original.config.vocab_size)
    ids = their_ids(source)
    expected = original.roberta(ids, attention_mask=ids.ne(1)).last_hidden_state
    found = model.eval().encode(source)
    real = ~found.mask[:, 0, 0]
    assert real.sum(dim=1).tolist() == [7, 4, 2]
    torch.testing.assert_close(
        found.states.transpose(0, 1)[real], expected[real], atol=1e-5, rtol=1e-4
    )


@pytest.mark.parametrize(("encoder_width", "gain"), [(768, 1.0), (64, 2**-0.5)])
def test_cross_attention_starts_as_in_fairseq(encoder_width, gain):
    """Xavier-uniform, with the factor 1 / sqrt(2) only where all widths are equal."""
    model = make("none", width=64, encoder_width=encoder_width)
    for layer in model.decoder:
        attention = layer.layer.cross_attention
        for projection, inputs in (
            (attention.query, 64),
            (attention.key, encoder_width),
            (attention.value, encoder_width),
        ):
            assert projection.weight.shape == (64, inputs)
            bound = gain * (6 / (64 + inputs)) ** 0.5
            assert 0.99 * bound < projection.weight.abs().max() <= bound
            assert projection.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.03)
        assert layer.layer.self_attention.query.weight.abs().max() <= 2**-0.5 * (3 / 64) ** 0.5


def test_fuse_attention_of_the_encoder_learns_although_it_starts_at_zero():
    model = make()
    source, target = sentences([6, 3], vocabulary=30), sentences([4, 5], seed=1)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    before = {
        name: parameter.clone() for name, parameter in model.encoder_fuse[1].named_parameters()
    }
    for _ in range(2):  # at the first step the output projection alone has a gradient
        optimiser.zero_grad()
        model(source, decoder_input(target)).logits.square().mean().backward()
        optimiser.step()
    for name, parameter in model.encoder_fuse[1].named_parameters():
        assert torch.equal(parameter, before[name]) == (name == "attention.key.bias"), name


def test_dropout_falls_on_what_the_encoder_and_its_fuse_attention_compute():
    model = make(dropout=0.25)
    inside = [
        module.p for module in model.roberta.modules() if isinstance(module, torch.nn.Dropout)
    ]
    assert len(inside) > len(model.roberta.encoder.layer) and set(inside) == {0.25}
    seen = []
    for fuse in model.encoder_fuse:
        torch.nn.init.ones_(fuse.attention.output.weight)
        fuse.register_forward_hook(
            lambda fuse, inputs, output: seen.append((fuse.attention(*inputs), output))
        )
    model.encode(sentences([36, 36], vocabulary=30))
    for whole, kept in seen:
        torch.testing.assert_close(kept[kept.ne(0)], whole[kept.ne(0)] / 0.75)
        assert kept.eq(0).float().mean() == pytest.approx(0.25, abs=0.05)
    assert len(seen) == len(model.encoder_fuse)


@pytest.mark.parametrize("name", KINDS)
def test_padded_batch_equals_single_sentences_and_decoding_equals_the_whole(name):
    model = trained(make(name))
    source, target_in = (
        sentences([6, 2, 4], vocabulary=30),
        decoder_input(sentences([3, 5, 4], seed=1)),
    )
    logits = model(source, target_in).logits
    for row, (s, t) in enumerate(zip([6, 2, 4], [3, 5, 4], strict=True)):
        alone = model(source[row : row + 1, :s], target_in[row : row + 1, :t]).logits
        torch.testing.assert_close(logits[row : row + 1, :t], alone, atol=2e-5, rtol=1e-4)
    cached = decode_greedily(model, source, 15)
    assert torch.equal(cached, decode_with_beam(model, source, 1, 15))


def test_the_encoder_fuses_its_own_layers():
    model, bare = trained(make("both")), trained(make("decoder"))
    bare.load_state_dict(
        {k: v for k, v in model.state_dict().items() if not k.startswith("encoder_fuse")}
    )
    source = sentences([5], vocabulary=30)
    seen = []
    model.encoder_fuse[1].register_forward_pre_hook(
        lambda module, inputs: seen.append((inputs[0], list(inputs[1])))
    )
    states = model.encode(source).states
    ((attended, earlier),) = seen
    assert len(earlier) == 2 and attended.shape == earlier[0].shape == (1, 6, 16)
    assert not torch.allclose(states, bare.encode(source).states, atol=1e-3)


def test_parameters_at_the_sizes_of_the_paper():
    """The facts' 28.4 million of 12 modules in RoBERTa-base, and 0.53 million of 2 in the decoder."""

    def count(variant):
        spec = resolve_run(
            load_catalogue(ROOT), Run.parse(f"cfq-mcd1/roberta/{variant}/seed-1"), "full"
        )
        with torch.device("meta"):
            return count_parameters(roberta_transformer.build(spec.model.settings, 30, 12))

    assert count("encoder") - count("plain") == 28_348_416
    assert count("decoder") - count("plain") == 527_360
    assert count("lrf") == count("previous") == count("plain") + 28_348_416 + 527_360


def test_output_is_not_tied_to_the_embedding():
    model = make()
    assert (
        model.output.weight.shape == (12, 8)
        and model.output.weight is not model.target_embedding.weight
    )
    assert not hasattr(model, "source_embedding")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder_width": 32}, r"is \[.*\], but the settings need \[.*\]; correct encoder_\*"),
        ({"encoder_layers": 3}, "missing, but the settings need"),
    ],
)
def test_a_model_of_other_sizes_is_refused(tmp_path, changes, message):
    original = write_roberta(tmp_path, TEXTS)
    model = make(vocabulary=original.config.vocab_size, **changes)
    with pytest.raises(UserError, match=message):
        model.read_pretrained(tmp_path)


def test_a_broken_config_and_broken_or_pickled_weights_are_refused(tmp_path):
    original = write_roberta(tmp_path, TEXTS)
    model = make(vocabulary=original.config.vocab_size)
    weights, config = tmp_path / "model.safetensors", tmp_path / "config.json"
    right = config.read_text()
    config.write_text(right.replace('"gelu"', '"gelo"'))
    with pytest.raises(UserError, match="KeyError: 'gelo'"):
        model.read_pretrained(tmp_path)
    config.write_text(right)
    for spoil in (
        lambda: weights.rename(tmp_path / "pytorch_model.bin"),
        lambda: weights.write_bytes(b"no weights"),
    ):
        spoil()
        with pytest.raises(UserError, match="cannot be read as a model"):
            model.read_pretrained(tmp_path)


def test_its_attention_is_not_analysed():
    model = make()
    with pytest.raises(UserError, match="a RoBERTa encoder cannot be analysed; take its runs out"):
        model.compute_encoder_attention(sentences([3]))
    with pytest.raises(UserError, match="a RoBERTa encoder cannot be analysed; take its runs out"):
        model.compute_fusion(sentences([3]), decoder_input(sentences([2])))
