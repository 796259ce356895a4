"""FLOPs of an update without running it, against formulas by hand and against a real update."""

from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.tasks.base import TrainingSetup
from workflow_scripts.tasks.batching import Batch
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.tasks.seq2seq.checkpoint import build_model
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss
from workflow_scripts.training.run import add_objective
from workflow_scripts.training.update_count import BatchSizes
from workflow_scripts.training.update_flops import count_update

B, S, T, V, W = 6, 20, 14, 500, 300
LAYERS, WIDTH, FEED_FORWARD = 2, 32, 96


def make_spec(name: str, **settings) -> RunSpec:
    """The spec of a run of the scale `full` with a smaller model."""
    spec = resolve_training(load_catalogue(), Run.parse(f"{name}/seed-1"), "full")
    changed = spec.model.settings.model_copy(update=settings)
    return replace(spec, model=replace(spec.model, settings=changed))


def multiply(rows: int, inner: int, columns: int) -> int:
    """Operations of a product of matrices: a multiplication and an addition each."""
    return 2 * rows * inner * columns


def test_bert_costs_what_its_matrix_products_cost():
    """Forward, and twice as much backward: for the inputs and for the weights."""
    spec = make_spec(
        "wikipedia-bookcorpus/bert/pretrain",
        layers=LAYERS,
        heads=4,
        width=WIDTH,
        feed_forward=FEED_FORWARD,
    )
    tokens = B * S
    projections = 4 * multiply(tokens, WIDTH, WIDTH)
    feed_forward = 2 * multiply(tokens, WIDTH, FEED_FORWARD)
    attention = 2 * B * multiply(S, WIDTH, S)
    masked = round(0.15 * tokens)
    heads = multiply(masked, WIDTH, V) + multiply(B, WIDTH, 2)
    by_hand = 3 * (LAYERS * (projections + feed_forward + attention) + heads)
    count = count_update(spec, BatchSizes(B, (S,), (V,)))
    assert (count.flops, count.how) == (by_hand, "counted")
    # Embeddings of words, positions and types, with a norm; 4 projections and 2 layers of the
    # feed-forward part with biases and 2 norms; the heads, whose weights are their own.
    d, ff = WIDTH, FEED_FORWARD
    of_layer = 4 * (d * d + d) + (d * ff + ff) + (ff * d + d) + 2 * 2 * d
    embeddings = (V + 512 + 2) * d + 2 * d
    assert count.parameters == embeddings + LAYERS * of_layer + (V * d + V) + (2 * d + 2)
    assert count.memory > 16 * count.parameters


def test_a_transformer_costs_what_its_matrix_products_cost():
    """With gated feed-forward parts, and relative positions in self-attention.

    These have a product with the queries and one with the weights, of the size of the others.
    """
    spec = make_spec(
        "scan-jump-x2/transformer/default",
        layers=LAYERS,
        heads=4,
        width=WIDTH,
        feed_forward=FEED_FORWARD,
    )

    def project(tokens: int, count: int) -> int:
        return count * multiply(tokens, WIDTH, WIDTH)

    def feed_forward(tokens: int) -> int:
        return 4 * multiply(tokens, WIDTH, FEED_FORWARD)

    def attend(queries: int, keys: int, products: int) -> int:
        return products * B * multiply(queries, WIDTH, keys)

    encoder = project(B * S, 4) + attend(S, S, 4) + feed_forward(B * S)
    cross_attention = project(B * T, 2) + project(B * S, 2) + attend(T, S, 2)
    decoder = project(B * T, 4) + attend(T, T, 4) + cross_attention + feed_forward(B * T)
    scores = multiply(B * T, WIDTH, W)
    by_hand = 3 * (LAYERS * (encoder + decoder) + scores)
    count = count_update(spec, BatchSizes(B, (S, T), (V, W)))
    assert count.flops == by_hand


@pytest.mark.parametrize(
    "name",
    ["scan-jump-x2/sq-transformer/sal", "cogs/lrf/default", "cogs/transformer-carma/carma"],
)
def test_a_real_update_has_the_same_products_but_for_selected_positions(name: str):
    small = {"layers": 2, "heads": 4, "width": 32, "feed_forward": 64}
    spec = make_spec(name, **small)
    count = count_update(spec, BatchSizes(B, (S, T), (V, W)))
    torch.manual_seed(0)
    vocabulary = {"source": ["w"] * V, "target": ["w"] * W}
    model = build_model(spec.model, vocabulary).train()
    setup = add_objective(TrainingSetup(model, WordLoss(), [], None), spec.objective)
    source, target = torch.randint(4, V, (B, S)), torch.randint(4, W, (B, T))
    with FlopCounterMode(display=False) as counter:
        loss, _ = setup.loss(model, Batch(source, target, target))
        loss.backward()
    assert count.flops == pytest.approx(counter.get_total_flops(), rel=0.02)
    assert count.parameters == sum(weight.numel() for weight in model.parameters())


def test_a_text_costs_its_matrix_products_with_the_scores_of_every_next_token():
    """The default is GPT-2's architecture at `full`, whose position embeddings cost nothing."""
    spec = make_spec("text-bpe-4k/gpt2-small/pretrain", layers=LAYERS, heads=4, width=WIDTH)
    count = count_update(spec, BatchSizes(B, (S,), (V,)))
    inner = spec.model.settings.feed_forward
    projections = 4 * multiply(B * S, WIDTH, WIDTH)
    attention = 2 * B * multiply(S, WIDTH, S)
    feed_forward = 2 * multiply(B * S, WIDTH, inner)
    scores = multiply(B * (S - 1), WIDTH, V)
    forward = LAYERS * (projections + attention + feed_forward) + scores
    assert count.flops == pytest.approx(3 * forward, rel=0.02) and count.how == "counted"


def test_no_numbers_are_needed_for_a_model_of_three_billion_parameters():
    spec = make_spec("idm/llama-large/carma")
    count = count_update(spec, BatchSizes(32, (20,), (128_256,)))
    assert count.parameters == 3_212_749_824
    # A forward pass, a backward pass of twice as much, and most of the forward pass again
    # (gradient checkpointing); scores of the vocabulary for one token of each prompt alone.
    forward = 2 * (count.parameters - 128_256 * 3072) * 32 * 20
    assert 3 * forward < count.flops < 4 * forward
    assert 16 * count.parameters < count.memory < 54e9


def test_a_kind_of_task_of_your_own_has_no_count_and_says_what_to_do():
    spec = replace(make_spec("cogs/transformer/default"), kind="mine")
    with pytest.raises(UserError, match=r"kind 'mine' cannot be counted .* `plan --record`"):
        count_update(spec, BatchSizes(B, (S, T), (V, W)))
