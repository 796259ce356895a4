import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.small_models import STRUCTURED, decoder_input, make, sentences
from tests.models.sq_transformer.named_terms import name_terms
from workflow_scripts.objectives.structural_quantisation.objective import (
    Settings,
    build,
    compute_cluster_cross_entropy,
    compute_cluster_entropy,
    compute_commitment,
    compute_next_code_cross_entropy,
    compute_stream_distance,
)
from workflow_scripts.tasks.batching import Batch
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss, compute_word_cross_entropy


def batch(source_lengths=(6, 3, 4, 2), target_lengths=(5, 7, 2, 3), more_padding=0):
    source, target = sentences(list(source_lengths)), sentences(list(target_lengths), seed=1)
    source, target = (torch.nn.functional.pad(ids, (0, more_padding)) for ids in (source, target))
    return Batch(source, decoder_input(target), target)


# The Brown objective


def brown_clustering(bigrams):
    """Equation 2: sum over class pairs of #(z, z')/N log(#(z, z') N / (#(z) #(z')))."""
    N = sum(map(sum, bigrams))
    first = [sum(row) for row in bigrams]
    second = [sum(column) for column in zip(*bigrams, strict=True)]
    return sum(
        count / N * math.log(count * N / (first[i] * second[j]))
        for i, row in enumerate(bigrams)
        for j, count in enumerate(row)
        if count
    )


def hard(codes, K):
    """Scores of a posterior that is all on one code."""
    return torch.full((len(codes), K), -torch.inf).scatter(1, torch.tensor(codes)[:, None], 0.0)


def everywhere(scores):
    """All positions of scores [..., K] count."""
    return torch.ones(scores.shape[:-1], dtype=torch.bool)


def test_objective_is_the_exact_mutual_information_worked_by_hand():
    # Eight bigrams of classes (context, word): AA AA AA AB BA BB BB BB. H(Z) = log 2, and given the
    # context the word's class is 3 to 1: H(Z | context) = log 4 - 3/4 log 3.
    pairs = [(0, 0)] * 3 + [(0, 1)] + [(1, 0)] + [(1, 1)] * 3
    posterior = hard([word for _, word in pairs], 2)
    prior = torch.tensor([[3.0, 1.0], [1.0, 3.0]]).log()[[context for context, _ in pairs]]
    assert float(compute_cluster_entropy(posterior, everywhere(posterior))) == pytest.approx(
        math.log(2)
    )
    assert float(
        compute_cluster_cross_entropy(posterior, prior, everywhere(posterior))
    ) == pytest.approx(math.log(4) - 0.75 * math.log(3))
    objective = float(
        compute_cluster_entropy(posterior, everywhere(posterior))
        - compute_cluster_cross_entropy(posterior, prior, everywhere(posterior))
    )
    assert objective == pytest.approx(0.75 * math.log(3) - math.log(2))
    assert objective == pytest.approx(brown_clustering([[3, 1], [1, 3]]))


@settings(max_examples=40, deadline=None)
@given(
    table=st.lists(
        st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=2, max_size=4
    ).filter(lambda rows: all(map(any, rows))),
    seed=st.integers(0, 99),
)
def test_objective_is_a_lower_bound_reached_by_the_true_prior(table, seed):
    pairs = [(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    posterior, context = hard([j for _, j in pairs], 3), [i for i, _ in pairs]
    counts = torch.tensor(table, dtype=torch.float)
    torch.manual_seed(seed)
    information = brown_clustering(table)
    entropy = float(compute_cluster_entropy(posterior, everywhere(posterior)))
    true = (counts / counts.sum(dim=1, keepdim=True) + 1e-12).log()
    reached = entropy - float(
        compute_cluster_cross_entropy(posterior, true[context], everywhere(posterior))
    )
    assert reached == pytest.approx(information, abs=1e-4)
    other = true + torch.randn_like(true)
    assert (
        entropy
        - float(compute_cluster_cross_entropy(posterior, other[context], everywhere(posterior)))
        <= information + 1e-4
    )


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 6), K=st.integers(1, 5), seed=st.integers(0, 99))
def test_soft_clusters_by_hand(n, K, seed):
    torch.manual_seed(seed)
    scores, logits = 2 * torch.randn(n, K), 2 * torch.randn(n, K)
    q = [[math.exp(x) / sum(map(math.exp, row)) for x in row] for row in scores.tolist()]
    p = [[math.exp(x) / sum(map(math.exp, row)) for x in row] for row in logits.tolist()]
    expected = (
        -sum(a * math.log(b) for x, y in zip(q, p, strict=True) for a, b in zip(x, y, strict=True))
        / n
    )
    assert float(
        compute_cluster_cross_entropy(scores, logits, everywhere(scores))
    ) == pytest.approx(expected, abs=1e-5)
    marginal = [sum(row[k] for row in q) / n for k in range(K)]
    assert float(compute_cluster_entropy(scores, everywhere(scores))) == pytest.approx(
        -sum(x * math.log(x) for x in marginal), abs=1e-5
    )


def test_a_code_that_cannot_be_assigned_leaves_gradients_finite():
    scores = torch.randn(5, 4, requires_grad=True)
    hidden = scores.masked_fill(torch.tensor([False, False, False, True]), -torch.inf)
    prior = torch.randn(5, 4, requires_grad=True)
    (
        compute_cluster_cross_entropy(hidden, prior, everywhere(hidden))
        - compute_cluster_entropy(hidden, everywhere(hidden))
    ).backward()
    assert torch.isfinite(scores.grad).all() and torch.isfinite(prior.grad).all()
    gradients = torch.autograd.grad(
        compute_cluster_cross_entropy(scores, prior, everywhere(scores)), (scores, prior)
    )
    assert all(gradient.any() for gradient in gradients)


# The other terms


@settings(max_examples=25, deadline=None)
@given(
    S=st.integers(1, 4),
    B=st.integers(1, 3),
    d=st.integers(1, 4),
    L=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_distances_by_hand(S, B, d, L, seed):
    torch.manual_seed(seed)
    real = torch.rand(S, B) < 0.7
    real[0, 0] = True
    states, vectors, layers = (
        torch.randn(S, B, d),
        torch.randn(S, B, d),
        torch.randn(L, S, 2 * B, d),
    )
    places = [(s, b) for s in range(S) for b in range(B) if real[s, b]]
    squares = [(vectors[s, b, c] - states[s, b, c]) ** 2 for s, b in places for c in range(d)]
    expected = float(sum(squares)) / len(squares)
    assert float(compute_commitment(states, vectors, real)) == pytest.approx(expected, abs=1e-5)
    expected = 0.0
    for layer in layers:
        squares = [(layer[s, b, c] - layer[s, B + b, c]) ** 2 for s, b in places for c in range(d)]
        expected += float(sum(squares)) / len(squares)
    assert float(compute_stream_distance(layers, real)) == pytest.approx(expected, abs=1e-5)


def test_next_code_by_hand():
    scores = torch.tensor([[[0.0, math.log(3)]], [[5.0, 5.0]], [[0.0, 9.0]]])
    codes, counted = torch.tensor([[1], [0], [0]]), torch.tensor([[True], [True], [False]])
    expected = (math.log(4 / 3) + math.log(2)) / 2
    assert float(compute_next_code_cross_entropy(scores, codes, counted)) == pytest.approx(expected)


def test_distances_stop_the_gradient_at_the_codes():
    states, vectors = (
        torch.randn(3, 2, 4, requires_grad=True),
        torch.randn(3, 2, 4, requires_grad=True),
    )
    compute_commitment(states, vectors, torch.ones(3, 2, dtype=torch.bool)).backward()
    assert states.grad.all()
    assert vectors.grad is None
    layers = torch.randn(2, 3, 4, 5, requires_grad=True)
    compute_stream_distance(layers, torch.ones(3, 2, dtype=torch.bool)).backward()
    assert layers.grad[:, :, :2].all()
    assert not layers.grad[:, :, 2:].any()
    layers.grad = None
    compute_stream_distance(
        layers, torch.ones(3, 2, dtype=torch.bool), stop_gradient=False
    ).backward()
    torch.testing.assert_close(layers.grad[:, :, 2:], -layers.grad[:, :, :2])


def test_in_the_model_the_distance_does_not_pull_the_codes():
    model = make("srl", dropout=0.0)
    terms = name_terms(model(batch().source, batch().target_in))
    compute_stream_distance(terms["source_layers"], terms["source_real"]).backward()
    assert model.source_embedding.weight.grad.any()
    assert (
        model.source_quantiser.codebook.grad is None
        or not model.source_quantiser.codebook.grad.any()
    )


# The sum


@pytest.mark.parametrize("name", STRUCTURED)
def test_loss_is_the_weighted_sum_of_its_parts(name):
    model = make(name, dropout=0.0)
    sides, terms = ("source", "target"), ["commitment", "next_code", "output_commitment"]
    terms += ["cluster", "entropy"] if model.settings.clustering != "none" else []
    terms += ["distance"] if model.settings.attention == "srl" else []
    weights = {f"{term}_{side}": 0.1 + 0.07 * i for i, term in enumerate(terms) for side in sides}
    torch.manual_seed(0)
    loss, parts = build(Settings(**weights), WordLoss(0.1))(model, batch())
    assert parts.keys() == {"word", *weights}
    expected = parts["word"] + sum(
        (-1 if part.startswith("entropy") else 1) * weight * parts[part]
        for part, weight in weights.items()
    )
    torch.testing.assert_close(loss.detach(), expected)
    logits = model.eval()(batch().source, batch().target_in).logits
    torch.testing.assert_close(
        parts["word"], compute_word_cross_entropy(logits, batch().target_out, 0.1).detach()
    )
    for weight in weights:
        model.train()
        torch.manual_seed(0)
        without, _ = build(Settings(**(weights | {weight: 0.0})), WordLoss(0.1))(model, batch())
        sign = -1 if weight.startswith("entropy") else 1
        torch.testing.assert_close(
            loss - without, sign * weights[weight] * parts[weight], atol=1e-5, rtol=1e-4
        )


@pytest.mark.parametrize(("lengths", "has_entropy"), [((2, 2, 2), False), ((2, 3, 2), True)])
def test_a_batch_of_lone_words_has_no_entropy_of_the_target(lengths, has_entropy):
    """`sal-entropy-3`: a word and the end symbol are two tokens. The source, of three, has its entropy."""
    names = [name for name in STRUCTURED if make(name).settings.clustering != "none"]
    assert names
    for name in names:
        model, weights = make(name, dropout=0.0), {"entropy_source": 0.5, "entropy_target": 2.0}
        short = batch(source_lengths=(2, 2, 3), target_lengths=lengths)
        settings = Settings(**weights, entropy_min_length_target=3)
        loss, parts = build(settings, WordLoss())(model, short)
        assert ("entropy_target" in parts) == has_entropy
        expected = sum(
            getattr(settings, part) * value
            for part, value in parts.items()
            if not part.startswith("entropy") and part != "word"
        )
        expected += parts["word"] - 0.5 * parts["entropy_source"]
        if has_entropy:
            expected -= 2.0 * parts["entropy_target"]
        torch.testing.assert_close(loss.detach(), expected)


@pytest.mark.parametrize("name", STRUCTURED)
def test_more_padding_changes_no_part(name):
    model, objective = make(name, dropout=0.0), build(Settings(), WordLoss())
    torch.manual_seed(0)
    _, parts = objective(model, batch())
    torch.manual_seed(0)
    _, padded = objective(model, batch(more_padding=3))
    assert parts.keys() == padded.keys()
    for part, value in parts.items():
        torch.testing.assert_close(padded[part], value, atol=2e-5, rtol=1e-4, msg=part)


def test_evaluation_gives_the_word_cross_entropy_alone():
    loss, parts = build(Settings(), WordLoss())(make("sal-code").eval(), batch())
    assert list(parts) == ["word"]
    assert torch.equal(loss.detach(), parts["word"])
