import dataclasses
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.config.copies import ROOT
from tests.config.filled import resolve_run
from tests.models.small_models import decoder_input, make
from tests.models.small_models import sentences as id_sentences
from tests.objectives.carma_cases import (
    FAMILIES,
    count_anchors,
    equation_5,
    equation_6,
    language_model,
    mi_by_hand,
    prompts,
    recorders,
    stability_by_hand,
)
from tests.objectives.carma_cases import last_token_loss as LOSS  # noqa: N812
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.objectives.carma import objective as carma
from workflow_scripts.objectives.carma.objective import (
    compute_mutual_information,
    compute_similarities,
    compute_stability,
    find_terms,
    place_bos,
    sample_negatives,
)
from workflow_scripts.objectives.carma.settings import Settings
from workflow_scripts.tasks.batching import Batch
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss

SENTENCES = [[1, 2, 1, 3, 1], [2, 1, 1], [1, 1, 1, 1], [1, 3, 2, 1]]
LAYERS = {"last_block_mi": 2, "last_block_stability": 2}
spoken = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=4)


def get_random_states(batch, layers=2, d=5, seed=0):
    torch.manual_seed(seed)
    return [torch.randn(*batch.ids.shape, d) for _ in range(layers)]


def mi(
    states,
    words,
    counted,
    negatives=0,
    spans="own",
    positives="pairwise",
    temperature=0.1,
    similarity="cosine",
):
    terms = find_terms(words, counted, spans, positives)
    chosen = sample_negatives(terms.allowed, negatives) if negatives else terms.allowed.float()
    return compute_mutual_information(
        compute_similarities(states, similarity), terms, chosen, temperature
    )


# L_MI


def test_mi_is_small_when_words_lie_apart_and_large_when_they_are_mixed():
    batch = prompts([[2, 2]])
    apart = [torch.eye(2)[[0, 0, 1, 1]][None]]
    mixed = [torch.eye(2)[[0, 1, 0, 1]][None]]
    # One positive at similarity 1 against two negatives at 0; and the other way about, one of the
    # two at 1.
    assert float(mi(apart, batch.words, batch.real)[0]) == pytest.approx(
        math.log1p(2 * math.exp(-10)), rel=1e-3
    )
    assert float(mi(mixed, batch.words, batch.real)[0]) == pytest.approx(
        math.log(2 + math.exp(10)), rel=1e-6
    )


@settings(max_examples=60, deadline=None)
@given(
    words=spoken,
    bos=st.booleans(),
    joined=st.booleans(),
    padding=st.booleans(),
    spans=st.sampled_from(["own", "batch"]),
    positives=st.sampled_from(["pairwise", "logsum"]),
    similarity=st.sampled_from(["cosine", "dot"]),
    seed=st.integers(0, 99),
)
def test_mi_equals_the_loop_over_layers_sentences_words_and_tokens(
    words, bos, joined, padding, spans, positives, similarity, seed
):
    batch = prompts(words, bos=bos)
    states = get_random_states(batch, seed=seed)
    places, counted = place_bos(batch.words, batch.real, joined)
    if padding:
        counted = counted | ~batch.real
    loss, terms = mi(states, places, counted, 0, spans, positives, 0.5, similarity)
    expected, count = mi_by_hand(states, places, counted, spans, positives, 0.5, similarity)
    assert int(terms) == count
    assert float(loss) == pytest.approx(expected, abs=1e-4, rel=1e-4)


@settings(max_examples=30, deadline=None)
@given(
    words=spoken,
    count=st.integers(1, 6),
    spans=st.sampled_from(["own", "batch"]),
    seed=st.integers(0, 99),
)
def test_mi_with_drawn_negatives_term_by_term(words, count, spans, seed):
    batch = prompts(words)
    states = get_random_states(batch, seed=seed)
    terms = find_terms(batch.words, batch.real, spans, "pairwise")
    negatives = sample_negatives(terms.allowed, count)
    assert not negatives[~terms.allowed].any()
    assert torch.equal(negatives.sum(dim=1), count * terms.allowed.any(dim=1).float())
    values = []
    for layer in states:
        near = torch.nn.functional.cosine_similarity(layer[:, :, None], layer[:, None], dim=-1)
        for t in range(len(terms.row)):
            c = near[terms.row[t], terms.anchor[t]].double().div(0.1).exp()
            positive, negative = float(c[terms.positives[t]].sum()), float((c * negatives[t]).sum())
            if negative:
                values.append(-math.log(positive / (positive + negative)))
    loss, pairs = compute_mutual_information(
        compute_similarities(states, "cosine"), terms, negatives, 0.1
    )
    assert int(pairs) * len(states) == len(values)
    assert float(loss) == pytest.approx(sum(values) / max(len(values), 1), abs=1e-4)


def test_draws_are_uniform_over_the_allowed_positions():
    allowed = torch.tensor([[True, False, True, True, False, True]])
    counts = sample_negatives(allowed, 40_000)[0][allowed[0]]
    # Chi-squared with 3 degrees of freedom stays below 16.3 in 999 of 1,000 cases.
    assert float(((counts - 10_000) ** 2 / 10_000).sum()) < 16.3


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("positives", ["pairwise", "logsum"])
@pytest.mark.parametrize("spans", ["own", "batch"])
def test_mi_gradient_against_finite_differences(similarity, positives, spans):
    batch = prompts([[2, 1, 3], [1, 1]])
    terms = find_terms(batch.words, batch.real, spans, positives)
    negatives = sample_negatives(terms.allowed, 2).double()
    states = [state.double().requires_grad_() for state in get_random_states(batch, d=3)]

    def loss(*layers):
        return compute_mutual_information(
            compute_similarities(list(layers), similarity), terms, negatives, 0.5
        )[0]

    assert torch.autograd.gradcheck(loss, states)


def test_states_of_zero_have_a_finite_gradient():
    batch = prompts([[2, 1]])
    states = torch.zeros(*batch.ids.shape, 3, requires_grad=True)
    mi([states], batch.words, batch.real)[0].backward()
    assert torch.isfinite(states.grad).all()


@settings(max_examples=30, deadline=None)
@given(words=spoken, more=st.integers(1, 5), count=st.sampled_from([0, 3]), seed=st.integers(0, 99))
def test_mi_and_stability_do_not_see_padding(words, more, count, seed):
    batch, padded = prompts(words), prompts(words, more_padding=more)
    states = get_random_states(batch, seed=seed)
    wider = [torch.nn.functional.pad(state, (0, 0, 0, more), value=9.0) for state in states]
    torch.manual_seed(seed)
    loss, pairs = mi(states, batch.words, batch.real, count)
    torch.manual_seed(seed)
    loss_padded, pairs_padded = mi(wider, padded.words, padded.real, count)
    assert int(pairs) == int(pairs_padded)
    torch.testing.assert_close(loss, loss_padded, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        compute_stability(states, batch.real), compute_stability(wider, padded.real)
    )


def test_bos_joins_the_first_word_or_counts_nowhere():
    batch = prompts([[2, 1], [1, 2]], bos=True, more_padding=1)
    words, counted = place_bos(batch.words, batch.real, joined=False)
    assert torch.equal(words, batch.words)
    assert counted.tolist() == [[False, True, True, True, False]] * 2
    words, counted = place_bos(batch.words, batch.real, joined=True)
    assert words.tolist() == [[0, 0, 0, 1, -1], [0, 0, 1, 1, -1]]
    assert torch.equal(counted, batch.real)


# L_stability


@settings(max_examples=25, deadline=None)
@given(words=spoken, layers=st.integers(2, 4), seed=st.integers(0, 99))
def test_stability_by_hand(words, layers, seed):
    batch = prompts(words, more_padding=2)
    states = get_random_states(batch, layers, seed=seed)
    expected = stability_by_hand(states, batch.real)
    assert float(compute_stability(states, batch.real)) == pytest.approx(expected, rel=1e-4)


def test_stability_of_equal_opposite_and_growing_layers():
    batch = prompts(SENTENCES)
    state = get_random_states(batch)[0]
    assert float(compute_stability([state] * 4, batch.real)) == 0
    assert float(compute_stability([state, -state, state], batch.real)) == pytest.approx(4)
    assert float(compute_stability([state, 3 * state], batch.real)) == pytest.approx(4 / 10)


def test_stability_gradient_against_finite_differences():
    batch = prompts([[2, 1], [1]])
    states = [state.double().requires_grad_() for state in get_random_states(batch, 3, d=3)]
    assert torch.autograd.gradcheck(
        lambda *layers: compute_stability(list(layers), batch.real), states
    )


# The sum, on models


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("positives", ["pairwise", "logsum"])
def test_loss_on_language_models(family, positives):
    model, batch = (
        language_model(family).eval(),
        prompts(SENTENCES, bos=family in ("llama", "gemma")),
    )
    # the embeddings, then each block
    hidden = model(input_ids=batch.ids, output_hidden_states=True).hidden_states
    for module in model.modules():
        module.training = module is model  # CARMA is on, dropout off
    weights = {"weight": 0.25, "mi": 0.5, "stability": 2.0}
    loss, parts = carma.build(
        carma.Settings(**(LAYERS | weights | {"negatives": 0, "positives": positives})), LOSS
    )(model, batch)
    words, counted = place_bos(batch.words, batch.real, joined=False)
    mi_expected, terms = mi_by_hand(hidden[1:4], words, counted, positives=positives)
    assert int(parts["pairs"]) == terms
    assert float(parts["mi"]) == pytest.approx(mi_expected, rel=1e-4)
    assert float(parts["stability"]) == pytest.approx(
        stability_by_hand(hidden[1:4], counted), rel=1e-4
    )
    assert parts["hooks"] == 3
    expected = 0.75 * parts["task"] + 0.25 * (0.5 * parts["mi"] + 2 * parts["stability"])
    torch.testing.assert_close(loss.detach(), expected)
    assert not any(value.requires_grad for value in parts.values())


@pytest.mark.parametrize("family", ["gpt2", "gemma"])
def test_the_papers_equations_train_a_language_model(family):
    """The catalogue's variant on the blocks of GPT2-S at `small`.

    Each step's loss is equation 8 with 7, 6 and 16, which is 5 divided by the number of anchors.
    """
    run = "idm/gpt2-small/paper-equations/seed-42"
    entry = resolve_run(load_catalogue(ROOT), run, "small")["objective"]
    assert entry.pop("name") == "carma"
    choices = carma.Settings(**entry)
    last = choices.last_block_mi
    assert last == choices.last_block_stability == 1
    model = language_model(family)
    for module in model.modules():
        module.training = module is model  # CARMA is on, dropout off
    batch = prompts(SENTENCES, bos=family == "gemma", more_padding=2)
    words = batch.words.tolist()
    in_words = batch.words.ge(0)
    objective = carma.build(choices, LOSS)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        hidden = model(input_ids=batch.ids, output_hidden_states=True).hidden_states[1:]
        mi_expected = equation_5(hidden[: last + 1], words, 0.1) / count_anchors(words)
        stability_expected = equation_6(hidden[: last + 2], in_words)
        loss, parts = objective(model, batch)
        added = 0.2 * mi_expected + 0.3 * stability_expected
        weight = choices.weight
        expected = (1 - weight) * parts["task"] + weight * added
        assert torch.isfinite(loss)
        assert int(parts["pairs"]) == count_anchors(words)
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[2] < losses[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_gradient_reaches_the_blocks_in_range_and_no_later_one(family):
    model = language_model(family)
    objective = carma.build(carma.Settings(**(LAYERS | {"weight": 0.5, "last_block_mi": 1})), LOSS)
    with_carma = gradients(model, objective)
    task = gradients(model, objective, weights=(0.5, 0.0))
    changed = {
        name for name, gradient in with_carma.items() if not torch.equal(gradient, task[name])
    }
    stem = "transformer.h" if family == "gpt2" else "model.layers"
    for block in range(4):
        assert any(name.startswith(f"{stem}.{block}.") for name in changed) == (block <= 2)


def gradients(model, objective, weights=None):
    """Name -> gradient of the loss, or of its task alone times the first of `weights`."""
    model.zero_grad()
    torch.manual_seed(1)
    batch = prompts(SENTENCES)
    loss = weights[0] * LOSS(model, batch)[0] if weights else objective(model, batch)[0]
    loss.backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def test_weight_zero_is_fine_tuning_bit_for_bit():
    model, batch = language_model("gpt2"), prompts(SENTENCES)
    objective = carma.build(carma.Settings(**{"weight": 0}), LOSS)
    torch.manual_seed(3)
    loss, parts = objective(model, batch)
    torch.manual_seed(3)
    logits = model(input_ids=batch.ids, use_cache=False).logits
    scores = logits[torch.arange(len(batch.ids)), batch.last]
    assert torch.equal(loss, torch.nn.functional.cross_entropy(scores, batch.label))
    assert parts.keys() == {"task", "hooks"} and parts["hooks"] == 0
    # as any weight in evaluation
    loss, parts = carma.build(carma.Settings(**LAYERS), LOSS)(model.eval(), batch)
    assert parts.keys() == {"task", "hooks"} and parts["hooks"] == 0
    assert torch.equal(loss.detach(), parts["task"])


def test_without_a_word_of_several_tokens_the_step_is_fine_tunings_times_one_minus_lambda():
    """With η 0. The equation weighs the task by 1 - λ whatever the other terms are: only the size
    differs from FT.
    """
    model, batch = language_model("gpt2"), prompts([[1, 1, 1], [1, 1]])
    torch.manual_seed(0)
    loss, parts = carma.build(carma.Settings(**(LAYERS | {"stability": 0, "weight": 0.3})), LOSS)(
        model, batch
    )
    assert (float(parts["mi"]), float(parts["pairs"]), float(parts["without_pairs"])) == (0, 0, 1)
    assert torch.equal(loss.detach(), 0.7 * parts["task"])
    torch.manual_seed(0)  # the same dropout
    (wanted, _), parameters = (
        carma.build(carma.Settings(**(LAYERS | {"weight": 0.0})), LOSS)(model, batch),
        list(model.parameters()),
    )
    ours, theirs = (
        torch.autograd.grad(found, parameters, allow_unused=True) for found in (loss, wanted)
    )
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, 0.7 * b, atol=1e-6)
    states = [state.requires_grad_() for state in get_random_states(batch)]
    nothing, _ = mi(states, batch.words, batch.real)
    nothing.backward()
    assert not any(state.grad.any() for state in states)
    _, parts = carma.build(carma.Settings(**LAYERS), LOSS)(model, prompts(SENTENCES))
    assert (float(parts["pairs"]), float(parts["without_pairs"])) == (9, 0)


@pytest.mark.parametrize("only", ["mi", "stability"])
def test_a_loss_of_weight_zero_is_not_computed_and_its_blocks_are_not_asked_for(only):
    other = "stability" if only == "mi" else "mi"
    _, parts = carma.build(
        carma.Settings(**(LAYERS | {other: 0, f"last_block_{other}": 99})), LOSS
    )(language_model("gpt2"), prompts(SENTENCES))
    assert only in parts
    assert other not in parts
    assert parts["hooks"] == 3


def test_hooks_are_gone_after_an_exception():
    model, batch = language_model("gpt2"), prompts(SENTENCES)
    with pytest.raises(ArithmeticError, match="a label below 0"):
        carma.build(carma.Settings(**LAYERS), LOSS)(
            model, dataclasses.replace(batch, label=batch.label - 99)
        )
    assert not recorders(model)
    assert carma.build(carma.Settings(**LAYERS), LOSS)(model, batch)[1]["hooks"] == 3
    assert not recorders(model)


def test_another_composition_of_batches_changes_no_loss_of_a_language_model():
    """Nor does the padding, which is another then."""
    model, objective = (
        language_model("llama"),
        carma.build(carma.Settings(**(LAYERS | {"negatives": 0})), LOSS),
    )
    batch = prompts(SENTENCES, bos=True)
    _, parts = objective(model, batch)
    halves = [objective(model, batch.rows(rows))[1] for rows in ([0, 2], [1, 3])]
    total = sum(half["mi"] * half["pairs"] for half in halves) / sum(
        half["pairs"] for half in halves
    )
    torch.testing.assert_close(total, parts["mi"], atol=1e-5, rtol=1e-4)


def test_the_official_options_change_what_their_names_say():
    model, batch = language_model("llama"), prompts(SENTENCES, bos=True, more_padding=4)

    def parts(**options):
        return carma.build(carma.Settings(**(LAYERS | {"negatives": 0} | options)), LOSS)(
            model, batch
        )[1]

    usual = parts()
    for option in ({"padding": True}, {"bos": True}):
        changed = parts(**option)
        assert not torch.isclose(changed["mi"], usual["mi"])
        assert not torch.isclose(changed["stability"], usual["stability"])
    # BOS makes pairs with the pieces of the first words: 1 + 2 + 1 + 1.
    assert parts(bos=True)["pairs"] == usual["pairs"] + 5
    assert parts(spans="batch")["pairs"] > usual["pairs"]
    assert not torch.isclose(parts(similarity="dot")["mi"], usual["mi"])
    one_more = parts(stability_pairs="paper")["stability"]
    assert torch.isclose(one_more, parts(last_block_stability=3)["stability"])
    assert one_more > usual["stability"]


def test_losses_are_in_full_precision_under_autocast():
    model, batch = (
        language_model("gpt2", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
        prompts(SENTENCES),
    )
    objective = carma.build(carma.Settings(**(LAYERS | {"negatives": 0})), LOSS)
    _, full = objective(model, batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, parts = objective(model, batch)
    assert parts["mi"].dtype == parts["stability"].dtype == loss.dtype == torch.float32
    torch.testing.assert_close(parts["mi"], full["mi"], atol=0.05, rtol=0.02)
    _, parts = objective(model.bfloat16(), batch)
    assert parts["mi"].dtype == torch.float32
    torch.testing.assert_close(parts["mi"], full["mi"], atol=0.05, rtol=0.02)


def test_a_step_can_be_repeated_bit_for_bit_with_deterministic_algorithms():
    torch.use_deterministic_algorithms(True)
    try:
        model = language_model("gpt2")
        objective = carma.build(carma.Settings(**(LAYERS | {"spans": "batch"})), LOSS)
        first, second = gradients(model, objective), gradients(model, objective)
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(first[name], second[name]) for name in first)


# Sequence pairs


@dataclasses.dataclass(frozen=True)
class SpokenBatch(Batch):
    words: torch.Tensor


def pairs_batch(**more):
    source, target = id_sentences([6, 3, 4]), id_sentences([5, 7, 2], seed=1)
    kind = SpokenBatch if more else Batch
    return kind(source, decoder_input(target), target, **more)


SEQ2SEQ = {"last_block_mi": 1, "last_block_stability": 1}


@pytest.mark.parametrize("name", ["relative", "sinusoidal", "sal-word", "sal-code", "srl"])
def test_loss_on_sequence_pairs(name):
    model, batch = make(name, dropout=0.0), pairs_batch()
    outputs = []
    hooks = [
        layer.register_forward_hook(lambda m, i, output: outputs.append(output))
        for layer in model.encoder
    ]
    loss, parts = carma.build(
        carma.Settings(**(SEQ2SEQ | {"weight": 0.4, "stability": 1.0})), WordLoss()
    )(model, batch)
    for hook in hooks:
        hook.remove()
    states = [output[:, :3].transpose(0, 1) for output in outputs[:2]]
    assert float(parts["stability"]) == pytest.approx(
        stability_by_hand(states, batch.source.ne(0)), rel=1e-4
    )
    assert (float(parts["mi"]), float(parts["without_pairs"])) == (0, 1)
    torch.testing.assert_close(loss.detach(), 0.6 * parts["word"] + 0.4 * parts["stability"])
    task, _ = WordLoss()(model, batch)
    torch.testing.assert_close(parts["word"], task.detach())


def test_words_of_sequence_pairs_are_used_where_a_batch_has_them():
    model, plain = make("relative", dropout=0.0), pairs_batch()
    words = torch.tensor([[0, 0, 1, 1, 1, 2], [0, 1, 2, -1, -1, -1], [0, 1, 1, 2, -1, -1]])
    batch = pairs_batch(words=words)
    assert batch.source.shape == words.shape
    _, parts = carma.build(carma.Settings(**(SEQ2SEQ | {"negatives": 0})), WordLoss())(model, batch)
    outputs = model.run_encoder(model.embed_source(plain.source), plain.source.eq(0)[:, None, None])
    states = [output.transpose(0, 1) for output in outputs[:2]]
    expected, pairs = mi_by_hand(states, words, plain.source.ne(0))
    assert (float(parts["mi"]), int(parts["pairs"])) == (pytest.approx(expected, rel=1e-4), pairs)
    assert pairs == 5


# Settings


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weight": 1}, "key 'weight' is 1; input should be less than 1"),
        ({"weight": math.nan}, "key 'weight' is nan; input should be"),
        ({"lambda": 0.2}, "unknown key 'lambda'"),
        ({"mi": 0, "stability": 0}, "mi and stability are both 0; set weight to 0"),
        ({"mi": -1.0}, "key 'mi' is -1.0; input should be greater than or equal to 0"),
        ({"temperature": 0}, "key 'temperature' is 0; input should be greater than 0"),
        ({"first_block": 8}, "last_block_mi is 7; it must be at least first_block"),
        ({"first_block": 7}, "last_block_stability is 7; it must be above first_block"),
        ({"spans": "all"}, "key 'spans' is 'all'; input should be 'own' or 'batch'"),
    ],
)
def test_wrong_settings(given, message):
    with pytest.raises(UserError, match=message) as error:
        parse_as(carma.Settings, given, "objective")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"last_block_mi": 4},
            r"last_block_mi 4 reads block 4, but the model has 4 blocks \(0 to 3\); lower it",
        ),
        (
            {"last_block_stability": 7},
            "last_block_stability 7 reads block 7, but the model has 4 blocks",
        ),
        (
            {"last_block_stability": 3, "stability_pairs": "paper"},
            "last_block_stability 3 reads block 4, but",
        ),
    ],
)
def test_a_block_that_the_model_does_not_have(given, message):
    with pytest.raises(UserError, match=message) as error:
        carma.build(carma.Settings(**(LAYERS | given)), LOSS)(
            language_model("qwen2"), prompts(SENTENCES)
        )
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match="Linear has no list of blocks"):
        carma.build(carma.Settings(**(LAYERS | given)), LOSS)(
            torch.nn.Linear(2, 2), prompts(SENTENCES)
        )


@pytest.mark.parametrize(
    ("third", "of_twelve", "of_eight", "of_four"),
    [
        ("first", [0, 1, 2, 3], [0, 1, 2], [0, 1]),
        ("middle", [4, 5, 6, 7], [2, 3, 4], [1, 2]),
        ("last", [8, 9, 10, 11], [5, 6, 7], [2, 3]),
    ],
)
def test_thirds_of_the_blocks(third, of_twelve, of_eight, of_four):
    settings = Settings(third=third)
    for count, blocks in ((12, of_twelve), (8, of_eight), (4, of_four)):
        assert (
            list(settings.list_mi_blocks(count))
            == list(settings.list_stability_blocks(count))
            == blocks
        )
    assert len(settings.list_mi_blocks(2)) == len(settings.list_mi_blocks(4)) == 2
    with pytest.raises(ValueError, match="third reads at least 2 blocks, but the model has 1"):
        settings.check_blocks(1)
