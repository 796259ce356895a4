"""The loss by hand, and exact match by one teacher-forced pass against decoding token by token."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.small_models import decoder_input, make, sentences
from workflow_scripts.tasks.batching import Batch, make_bucketed_batches
from workflow_scripts.tasks.seq2seq.batches import read_pairs
from workflow_scripts.tasks.seq2seq.checkpoint import load_run
from workflow_scripts.tasks.seq2seq.training_setup import (
    WordLoss,
    compute_word_cross_entropy,
    find_exact_matches,
    score_teacher_forced,
)

torch.set_num_threads(1)


def by_hand(logits, target, smoothing):
    """(1 - eps) nll - eps mean of log p over vocabulary and words, one word at a time."""
    nll, uniform = [], []
    for row, words in zip(logits.tolist(), target.tolist(), strict=True):
        for scores, word in zip(row, words, strict=True):
            if word == 0:
                continue
            total = math.log(sum(math.exp(x) for x in scores))
            nll.append(total - scores[word])
            uniform.append(sum(total - x for x in scores) / len(scores))
    return (1 - smoothing) * sum(nll) / len(nll) + smoothing * sum(uniform) / len(uniform)


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    smoothing=st.sampled_from([0.0, 0.1, 0.5]),
    seed=st.integers(0, 99),
)
def test_word_cross_entropy_by_hand(lengths, smoothing, seed):
    target = sentences(lengths, vocabulary=7, seed=seed)
    torch.manual_seed(seed)
    logits = torch.randn(*target.shape, 7)
    assert float(compute_word_cross_entropy(logits, target, smoothing)) == pytest.approx(
        by_hand(logits, target, smoothing), abs=1e-5
    )


def test_the_loss_returns_loss_and_part():
    model, target = make("relative").eval(), sentences([5, 2], seed=1)
    batch = Batch(sentences([4, 3]), decoder_input(target), target)
    loss, parts = WordLoss(0.1)(model, batch)
    logits = model(batch.source, batch.target_in).logits
    assert float(loss.detach()) == pytest.approx(by_hand(logits, target, 0.1), abs=1e-5)
    assert list(parts) == ["word"]
    assert not parts["word"].requires_grad
    assert torch.equal(parts["word"], loss.detach())


def decoded_alone(model: torch.nn.Module, source: torch.Tensor, longest: int) -> list[int]:
    """Greedy output for one sentence, recomputing the whole prefix at every step; padding is never
    predicted.
    """
    output: list[int] = []
    while len(output) < longest and (not output or output[-1] != 2):
        logits = model(source[None], torch.tensor([[2, *output]])).logits[0, -1]
        output.append(1 + int(logits[1:].argmax()))
    return output


def read_trained(trained, split, batch_tokens):
    """The trained model, and the batches of a split."""
    model, _, _ = load_run(trained / "out", trained / "data")
    return model, make_bucketed_batches(read_pairs(trained / "data", split), batch_tokens)


@torch.no_grad()
def test_exact_match_equals_decoding_every_sentence_alone(trained):
    model, batches = read_trained(trained, "test", 100)
    right = []
    for batch in batches:
        forced = find_exact_matches(model(batch.source, batch.target_in).logits, batch.target_out)
        for row, source in enumerate(batch.source):
            reference = [token for token in batch.target_out[row].tolist() if token]
            right.append(decoded_alone(model, source[source != 0], len(reference)) == reference)
            assert forced[row] == right[-1]
    assert 10 < sum(right) < 110, "the toy run must be right on some sentences and wrong on others"
    found = score_teacher_forced(model, batches)
    assert found["log_likelihood"] == -found["cross_entropy"]
    assert found["exact_match"] == pytest.approx(100 * sum(right) / 120)


@torch.no_grad()
def test_cross_entropy_is_the_mean_over_the_tokens_of_all_batches(trained):
    model, batches = read_trained(trained, "valid", 64)
    nats = []
    for batch in batches:
        for source, target_in, target_out in zip(
            batch.source, batch.target_in, batch.target_out, strict=True
        ):
            length = int((target_out != 0).sum())
            logits = model(source[None, source != 0], target_in[None, :length]).logits[0].double()
            nats += (
                logits.logsumexp(-1) - logits[torch.arange(length), target_out[:length]]
            ).tolist()
    assert score_teacher_forced(model, batches)["cross_entropy"] == pytest.approx(
        sum(nats) / len(nats), rel=1e-5
    )


def test_one_wrong_token_is_enough_and_padding_counts_for_nothing():
    logits = torch.nn.functional.one_hot(torch.tensor([[5, 2, 4], [5, 2, 4], [5, 4, 2]]), 6).float()
    target = torch.tensor([[5, 2, 0], [4, 2, 0], [5, 4, 2]])
    assert find_exact_matches(logits, target).tolist() == [True, False, True]
