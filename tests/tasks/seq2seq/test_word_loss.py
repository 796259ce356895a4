"""The loss of the target's words, by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.small_models import decoder_input, make, sentences
from workflow_scripts.tasks.batching import Batch
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss, compute_word_cross_entropy

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
