from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.small_models import (
    SMALL,
    STRUCTURED,
    count_parameters,
    decoder_input,
    make,
    sentences,
)
from tests.models.sq_transformer.named_terms import name_terms
from workflow_scripts.models.layers.transformer import make_causal_mask, make_padding_mask
from workflow_scripts.models.sq_transformer import model as sq_transformer
from workflow_scripts.models.sq_transformer.model import make_next_tokens, sample_masked_positions
from workflow_scripts.models.transformer import model as seq2seq


def count(settings):
    return count_parameters(sq_transformer.build(sq_transformer.Settings(**settings), 17, 10))


def test_parameter_counts_of_the_paper_on_scan():
    baseline, encoder_layer, decoder_layer = 5_569_536, 795_264, 1_058_944
    masked = 7 * 256 + 4 * 256 + 7 + 4
    assert count({}) == baseline + 3 * encoder_layer + 2 * decoder_layer + masked == 10_076_043
    assert count({"attention": "srl", "source_predictor": "causal"}) == 10_076_043 - 256 - 1
    assert count({"clustering": "none"}) == baseline + 10 * 256
    assert count({"clustering": "mmi"}) == 10_076_043 - 256 - 1


# Invariance


def same_code_sentences(model, seed, side="source"):
    """Two batches [8, 6] of a side whose words differ and whose codes do not."""
    first = sentences([6, 6, 5, 4, 3, 6, 2, 6], vocabulary=30, seed=seed)
    codes = model.assign_codes(side, torch.arange(30))
    second = first.clone()
    generator = torch.Generator().manual_seed(seed)
    for position in first.ge(4).nonzero():
        own = codes[first[tuple(position)]]
        choices = (codes[4:] == own).nonzero()[:, 0] + 4
        second[tuple(position)] = choices[torch.randint(len(choices), (1,), generator=generator)]
    assert not torch.equal(first, second)
    assert torch.equal(codes[first], codes[second])
    return first, second


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 999),
    name=st.sampled_from(["sal-code", "sal-word", "sal-systematic", "vq", "sal-cosine"]),
)
def test_sal_attends_alike_in_any_two_sentences_of_one_code_sequence(seed, name):
    model = make(name, seed, vocabulary=30, layers=3).eval()
    first, second = same_code_sentences(model, seed)
    assert torch.equal(
        model.compute_encoder_attention(first), model.compute_encoder_attention(second)
    )
    assert not torch.allclose(model.encode(first).states, model.encode(second).states)


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 999),
    name=st.sampled_from(["sal-code", "sal-word", "sal-systematic", "vq", "sal-cosine"]),
)
def test_the_decoder_attends_alike_to_two_targets_of_one_code_sequence_in_its_first_layer(
    seed, name
):
    """Cross-attention brings words into the codes' stream: beyond the first layer nothing is
    promised.
    """
    model = make(name, seed, vocabulary=30, layers=3).eval()
    source = sentences([6] * 8, vocabulary=30, seed=seed)
    targets = same_code_sentences(model, seed, "target")
    attention, asked = model.decoder[0].self_attention, []
    attend = attention.attend
    with mock.patch.object(
        attention, "attend", lambda *given: (asked.append(given), attend(*given))[1]
    ):
        logits = [model(source, target).logits for target in targets]
    weights = [attention.compute_weights(query, key, mask) for query, key, _, mask, *_ in asked]
    assert weights[0].shape[-2:] == (6, 6) and torch.equal(*weights)
    assert not torch.equal(asked[0][2], asked[1][2])  # the values are words
    assert not torch.allclose(*logits)


@pytest.mark.parametrize("name", ["srl", "none"])
def test_other_attention_is_not_invariant(name):
    model = make(name, 0, vocabulary=30).eval()
    first, second = same_code_sentences(model, 0)
    assert (
        model.compute_encoder_attention(first) - model.compute_encoder_attention(second)
    ).abs().max() > 0.01


# The layers, against each stream computed by itself


def reference_encoder(model, words, codes, mask):
    """Each stream by itself, as in section 3.2 (SAL) or 3.3 (SRL). Returns each layer's (x_l, z_l)."""
    outputs = []
    for layer in model.encoder:
        query = codes if model.guided else words
        new_words = layer.norm(words + layer.attention(query, query, words, mask))
        new_codes = layer.norm(codes + layer.attention(codes, codes, codes, mask))
        words, codes = layer.feed_forward(new_words), layer.feed_forward(new_codes)
        outputs.append((words, codes))
    return outputs


def reference_decoder(model, words, codes, memory, memory_mask, mask):
    """Section A.5, with the cross-attention of the setting cross_query; ordinary layers for SRL."""
    x, z, outputs = *memory, []
    for layer in model.decoder:
        query = codes if model.guided else words
        new_words = layer.self_norm(words + layer.self_attention(query, query, words, mask))
        new_codes = layer.self_norm(codes + layer.self_attention(codes, codes, codes, mask))
        words, codes = new_words, new_codes
        if not model.guided or model.settings.cross_query == "word":
            to_words = layer.cross_attention(words, x, x, memory_mask)
            to_codes = layer.cross_attention(codes, z, z, memory_mask)
        elif model.settings.cross_query == "code":
            to_words = to_codes = layer.cross_attention(codes, x, x, memory_mask)
        else:
            to_words = layer.cross_attention(codes, z, x, memory_mask)
            to_codes = layer.cross_attention(codes, z, z, memory_mask)
        words = layer.feed_forward(layer.cross_norm(words + to_words))
        codes = layer.feed_forward(layer.cross_norm(codes + to_codes))
        outputs.append((words, codes))
    return outputs


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "name", ["sal-code", "sal-code-stream", "sal-word", "sal-systematic", "srl", "srl-causal"]
)
def test_joined_streams_equal_streams_by_themselves(name, training):
    model = make(name, dropout=0.0, layers=3).train(training)
    source, target = sentences([6, 3, 4]), sentences([5, 7, 2], seed=1)
    target_in = decoder_input(target)
    source_words, target_words = (
        4 * table.weight[ids].transpose(0, 1)
        for table, ids in ((model.source_embedding, source), (model.target_embedding, target_in))
    )
    source_codes = model.source_quantiser.codebook[model.assign_codes("source", source)].transpose(
        0, 1
    )
    target_codes = model.target_quantiser.codebook[
        model.assign_codes("target", target_in)
    ].transpose(0, 1)
    encoded = reference_encoder(model, source_words, source_codes, make_padding_mask(source))
    mask = make_causal_mask(7, source.device)
    decoded = reference_decoder(
        model, target_words, target_codes, encoded[-1], make_padding_mask(source), mask
    )
    output = model(source, target_in)
    expected = decoded[-1][0].transpose(0, 1) @ model.target_embedding.weight.t()
    torch.testing.assert_close(output.logits, expected, atol=2e-5, rtol=1e-4)
    if not training:
        assert output.terms is None
        return
    kept = 1 if model.settings.next_code_stream == "code" else 0
    torch.testing.assert_close(
        name_terms(output)["source_output"], encoded[-1][kept], atol=2e-5, rtol=1e-4
    )
    torch.testing.assert_close(
        name_terms(output)["target_output"], decoded[-1][kept], atol=2e-5, rtol=1e-4
    )
    assert ("source_layers" in name_terms(output)) == (model.settings.attention == "srl")
    if model.settings.attention == "srl":
        for side, layers in (("source", encoded), ("target", decoded)):
            expected = torch.stack([torch.cat(streams, dim=1) for streams in layers])
            torch.testing.assert_close(
                name_terms(output)[f"{side}_layers"], expected, atol=2e-5, rtol=1e-4
            )


# Inference


@pytest.mark.parametrize("name", ["srl", "srl-causal", "none"])
def test_inference_without_sal_is_that_of_the_plain_transformer(name):
    model = make(name).eval()
    plain = seq2seq.build(seq2seq.Settings(**SMALL), 12, 12).eval()
    plain.load_state_dict(
        {key: value for key, value in model.state_dict().items() if key in plain.state_dict()}
    )

    def refuse(module, *_):
        raise AssertionError(f"{type(module).__name__} was computed at inference")

    for part in (
        model.source_quantiser,
        model.target_quantiser,
        model.source_predictor,
        model.target_predictor,
    ):
        for module in part.modules():
            module.register_forward_pre_hook(refuse)
    source, target_in = sentences([5, 3]), decoder_input(sentences([4, 6], seed=1))
    assert torch.equal(model(source, target_in).logits, plain(source, target_in).logits)
    assert torch.equal(model.encode(source).states, plain.encode(source).states)
    assert torch.equal(
        model.compute_encoder_attention(source), plain.compute_encoder_attention(source)
    )
    tokens = torch.full((2,), 2)
    (logits, cache), (expected, _) = (
        m.decode_step(m.encode(source), None, tokens) for m in (model, plain)
    )
    assert torch.equal(logits, expected)
    assert cache.layers[0].key.shape[1:] == (2, 16)


@pytest.mark.parametrize("name", STRUCTURED)
def test_evaluation_draws_nothing_and_moves_nothing(name):
    model = make(name).eval()
    source, target_in = sentences([5, 3]), decoder_input(sentences([4, 6], seed=1))
    before, state = (
        torch.get_rng_state(),
        {key: value.clone() for key, value in model.state_dict().items()},
    )
    model(source, target_in)
    model.finish_step()
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())


# Training terms


@settings(max_examples=20, deadline=None)
@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_next_tokens_undo_the_shift(lengths, seed):
    target = sentences(lengths, seed=seed)
    assert torch.equal(make_next_tokens(decoder_input(target)), target)


@pytest.mark.parametrize("name", STRUCTURED)
def test_terms_against_their_definition(name):
    model = make(name, dropout=0.0)
    source, target = sentences([6, 3, 4, 2]), sentences([5, 7, 2, 3], seed=1)
    terms = name_terms(model(source, decoder_input(target)))
    for side, ids, quantiser, table in (
        ("source", source, model.source_quantiser, model.source_embedding),
        ("target", target, model.target_quantiser, model.target_embedding),
    ):
        codes, real = model.assign_codes(side, ids).t(), ids.t().ne(0)
        torch.testing.assert_close(terms[f"{side}_embedded"], 4 * table.weight[ids.t()])
        assert torch.equal(terms[f"{side}_codes"], codes)
        assert torch.equal(terms[f"{side}_vectors"], quantiser.codebook[codes])
        assert torch.equal(terms[f"{side}_real"], real)
        output = terms[f"{side}_output"]
        torch.testing.assert_close(terms[f"{side}_output_scores"], quantiser.score_codes(output))
        torch.testing.assert_close(
            terms[f"{side}_output_vectors"], quantiser.codebook[quantiser(output).codes]
        )
    assert torch.equal(terms["target_next_codes"], terms["target_codes"])
    assert torch.equal(terms["source_next_codes"][:-1], terms["source_codes"][1:])
    assert terms["source_next_real"].sum(dim=0).tolist() == [5, 2, 3, 1]
    assert terms["target_next_real"].sum(dim=0).tolist() == [5, 7, 2, 3]
    assert (
        ("source_prior" in terms)
        == ("target_prior" in terms)
        == (model.settings.clustering != "none")
    )
    if model.settings.clustering == "none":
        return
    scores, real = model.target_quantiser.score_codes(terms["target_embedded"]), target.t().ne(0)
    torch.testing.assert_close(terms["target_posterior"], scores)
    torch.testing.assert_close(terms["target_marginal"], scores)
    assert torch.equal(terms["target_predicted"], real) and torch.equal(
        terms["target_averaged"], real
    )
    assert terms["target_prior"].shape == (7, 4, 4)
    scores = model.source_quantiser.score_codes(terms["source_embedded"])
    if model.settings.source_predictor == "causal":
        torch.testing.assert_close(terms["source_posterior"], scores[1:])
        torch.testing.assert_close(terms["source_marginal"], scores)
        assert torch.equal(terms["source_predicted"], source.t()[1:].ne(0))
        assert torch.equal(terms["source_averaged"], source.t().ne(0))
    else:
        assert (
            len(terms["source_prior"])
            == len(terms["source_posterior"])
            == len(terms["source_marginal"])
            == 4
        )
        assert terms["source_predicted"].tolist() == terms["source_averaged"].tolist() == [True] * 4


def test_target_words_enter_three_times_with_their_own_dropout_and_source_words_once():
    model = make("sal-code", dropout=0.5)
    coded, streams = {}, {}
    for side in ("source", "target"):
        layers, coded[side] = {"source": model.encoder, "target": model.decoder}[side], []
        getattr(model, f"{side}_quantiser").register_forward_hook(
            lambda _, inputs, output, seen=coded[side]: seen.append(inputs[0])
        )
        layers[0].register_forward_pre_hook(
            lambda _, inputs, side=side: streams.update({side: inputs[0][:, :2]})
        )
    model(sentences([5, 3]), torch.tensor([[2, 2, 2, 2], [2, 2, 2, 2]]))
    posterior, stream, _ = coded["target"]
    kept = [words.ne(0) for words in (posterior, stream, streams["target"])]
    assert not any(torch.equal(kept[i], kept[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    assert torch.equal(coded["source"][0], streams["source"])


@pytest.mark.parametrize("name", [name for name in STRUCTURED if name != "vq"])
def test_priors_read_what_the_setting_says(name):
    """Codes of the context (words under MMI), one of them masked, or the earlier ones; of the
    target also the words of the encoder's output.
    """
    model = make(name, dropout=0.0)
    source, target = sentences([6, 3, 4, 2]), sentences([5, 7, 2, 3], seed=1)
    target_in, mmi = decoder_input(target), model.settings.clustering == "mmi"
    torch.manual_seed(5)
    terms = name_terms(model(source, target_in))
    words, codes, books = {}, {}, {}
    for side, ids, table, quantiser in (
        ("source", source, model.source_embedding, model.source_quantiser),
        ("target", target_in, model.target_embedding, model.target_quantiser),
    ):
        words[side], codes[side] = 4 * table.weight[ids.t()], model.assign_codes(side, ids).t()
        books[side] = quantiser.codebook
    mask, causal = make_padding_mask(source), make_causal_mask(target.size(1), source.device)
    inputs = words["source"] if mmi else books["source"][codes["source"]]
    if model.settings.source_predictor == "causal":
        expected = model.source_predictor(inputs[:-1], mask[..., :-1], books["source"])
    else:
        torch.manual_seed(5)
        at, rows = sample_masked_positions(torch.tensor([6, 3, 4, 2])), torch.arange(4)
        inputs = inputs.clone()
        unknown = 4 * model.source_embedding.weight[3]
        inputs[at, rows] = unknown if mmi else books["source"][model.source_quantiser.mask_code]
        expected = model.source_predictor(inputs, mask, books["source"])[at, rows]
        scores = model.source_quantiser.score_codes(words["source"][at, rows])
        torch.testing.assert_close(terms["source_posterior"], scores)
    counted = terms["source_predicted"]
    torch.testing.assert_close(
        terms["source_prior"][counted], expected[counted], atol=2e-5, rtol=1e-4
    )
    inputs = words["target"] if mmi else books["target"][codes["target"]]
    if model.settings.target_predictor == "cross":
        # Words come before their codes, if there are both.
        memory = model.eval().encode(source).states[:, :4]
        expected = model.target_predictor(inputs, memory, mask, books["target"])
    else:
        expected = model.target_predictor(inputs, causal, books["target"])
    counted = terms["target_predicted"]
    torch.testing.assert_close(
        terms["target_prior"][counted], expected[counted], atol=2e-5, rtol=1e-4
    )


# Gradients


def gradients(model, value):
    """Which parameters a scalar reaches, by name."""
    model.zero_grad(set_to_none=True)
    value.backward(retain_graph=True)
    return {
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is not None and parameter.grad.any()
    }


def training_output(name, **changes):
    model = make(name, **changes)
    return model, model(sentences([6, 3, 4, 6]), decoder_input(sentences([5, 7, 2, 6], seed=1)))


CODEBOOKS = {"source_quantiser.codebook", "target_quantiser.codebook"}
TABLES = {"source_embedding.weight", "target_embedding.weight"}


@pytest.mark.parametrize("straight_through", [True, False])
def test_straight_through_codes_get_no_gradient_from_the_words(straight_through):
    model, output = training_output("sal-word", straight_through=straight_through)
    reached = gradients(model, output.logits.square().mean())
    assert reached >= TABLES and reached & CODEBOOKS == (set() if straight_through else CODEBOOKS)


def test_codes_that_move_by_their_average_alone_get_no_gradient():
    model, output = training_output("sal-code", codebook_gradient=False, ema_decay=0.9)
    sides = ("source", "target")
    loss = output.logits.square().mean() + sum(
        name_terms(output)[f"{side}_posterior"].softmax(-1).max() for side in sides
    )
    assert gradients(
        model,
        loss + sum(name_terms(output)[f"{side}_output_scores"].square().mean() for side in sides),
    )
    before = {
        name: parameter.detach().clone()
        for name, parameter in model.named_parameters()
        if name in CODEBOOKS
    }
    assert all(model.get_parameter(name).grad is None for name in before)
    model.finish_step()
    assert not any(
        torch.equal(model.get_parameter(name), codebook) for name, codebook in before.items()
    )


def test_brown_objective_reaches_words_codes_and_predictors():
    for name in ("sal-code", "srl-causal", "mmi"):
        model, output = training_output(name)
        for side in ("source", "target"):
            posterior = name_terms(output)[f"{side}_posterior"].softmax(-1)
            reached = gradients(
                model, -(posterior * name_terms(output)[f"{side}_prior"].log_softmax(-1)).sum()
            )
            assert {
                f"{side}_quantiser.codebook",
                f"{side}_embedding.weight",
                f"{side}_predictor.bias",
            } <= reached
            layer = f"{side}_predictor.layers.0"
            assert any(
                name.startswith((f"{layer}.attention", f"{layer}.self_attention"))
                for name in reached
            )


def test_plain_model_is_not_reached_by_the_source_prior():
    model, output = training_output("sal-code")
    reached = gradients(model, name_terms(output)["source_prior"].sum())
    assert all(name.startswith(("source_predictor", "source_quantiser")) for name in reached)


@pytest.mark.parametrize(
    ("name", "words"), [("sal-code", True), ("srl-causal", False), ("mmi-causal", True)]
)
def test_priors_train_the_codes_that_they_read_and_predict(name, words):
    """And the words, if these are read, or if codes hand their gradient to them."""
    model, output = training_output(name)
    for side in ("source", "target"):
        reached = gradients(model, name_terms(output)[f"{side}_prior"].square().sum())
        assert f"{side}_quantiser.codebook" in reached
        # the masked prior of the source reads the codebook itself
        if name != "sal-code" or side == "target":
            assert (f"{side}_embedding.weight" in reached) == words, side


def test_codes_that_priors_read_get_their_gradient():
    """With a codebook that is no output of the prior, what is left comes by way of its input."""
    model = make("srl-causal", dropout=0.0)
    predictor, seen = model.source_predictor, {}
    predictor.register_forward_pre_hook(lambda _, given: seen.update(inputs=given[0]))
    model(sentences([6, 3, 4, 6]), decoder_input(sentences([5, 7, 2, 6], seed=1)))
    assert gradients(model, seen["inputs"].sum()) == {"source_quantiser.codebook"}


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_training_step_moves_codes_towards_the_words_whose_codes_they_are(side):
    """On the target these are the next words."""
    model, output = training_output("sal-code", ema_decay=0.9, dropout=0.5)
    codebook = getattr(model, f"{side}_quantiser").codebook
    before, terms = (
        codebook.detach().clone(),
        {key: name_terms(output)[f"{side}_{key}"] for key in ("embedded", "codes", "real")},
    )
    model.finish_step()
    for code in terms["codes"][terms["real"]].unique().tolist():
        members = terms["embedded"][terms["real"] & (terms["codes"] == code)]
        direction = torch.nn.functional.normalize(
            torch.nn.functional.normalize(members, dim=-1).sum(0), dim=0
        )
        torch.testing.assert_close(codebook[code], 0.9 * before[code] + 0.1 * direction)
