"""Exact match by one teacher-forced pass against decoding token by token."""

import pytest
import torch

from workflow_scripts.tasks.batching import make_bucketed_batches
from workflow_scripts.tasks.seq2seq.batches import read_pairs
from workflow_scripts.tasks.seq2seq.checkpoint import load_run
from workflow_scripts.tasks.seq2seq.training_setup import find_exact_matches, score_teacher_forced

torch.set_num_threads(1)


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
