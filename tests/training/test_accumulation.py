"""Batches that are computed in parts: losses, gradients and weights are those of whole batches."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from tests.models.sections import parse_model
from tests.models.small_models import make
from tests.training.sentence_toy import sentence_spec, write_encoder, write_pairs
from tests.training.toy import assert_one_error, run_main, stopping_at
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file
from workflow_scripts.objectives.compositional import objective as compositional
from workflow_scripts.objectives.structural_quantisation import objective as quantisation
from workflow_scripts.tasks.base import ExampleLoss, Loss, TrainingSetup
from workflow_scripts.tasks.batching import Batch, TensorBatch
from workflow_scripts.tasks.masked_lm import model as pretraining
from workflow_scripts.tasks.masked_lm.batches import IGNORED, MaskedBatch
from workflow_scripts.tasks.masked_lm.model import MaskedLoss
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss
from workflow_scripts.training import loop
from workflow_scripts.training.accumulation import make_gradients

FP32 = torch.autocast("cpu", torch.bfloat16, enabled=False)
BF16 = torch.autocast("cpu", torch.bfloat16)
ENCODER = {
    "family": "bert",
    "layers": 2,
    "heads": 2,
    "width": 16,
    "feed_forward": 24,
    "positions": 20,
    "dropout": 0.0,
}
CAT = ENCODER | {"family": "cat", "codes": 5, "last_codes": 7}


@dataclass(frozen=True)
class Regression(TensorBatch):
    inputs: Tensor
    label: Tensor


def make_masked_batch(seed: int) -> MaskedBatch:
    """Seven pairs of 4 to 9 tokens, of which some have no masked word and no sememes."""
    torch.manual_seed(seed)
    length = torch.tensor([9, 4, 6, 9, 5, 8, 4])
    real = torch.arange(9) < length[:, None]
    ids = torch.randint(5, 20, real.shape) * real
    masked = real & (torch.rand(real.shape) < 0.4)
    masked[1] = False
    share = torch.rand(real.shape) * real
    share[2] = 0
    gold = torch.randint(-1, 7, (7, 9, 2), dtype=torch.int32)
    return MaskedBatch(
        ids,
        (torch.arange(9) > 2).long() * real,
        ids.where(masked, IGNORED),
        real,
        torch.randint(2, (7,)),
        share,
        gold,
    )


def make_sequences(seed: int) -> Batch:
    torch.manual_seed(seed)
    real = torch.arange(6) < torch.tensor([6, 2, 4, 3, 6])[:, None]
    source, target = (torch.randint(4, 12, real.shape) * real for _ in range(2))
    shifted = torch.cat([torch.full((5, 1), 2), target[:, :-1]], 1)
    return Batch(source, shifted * real, target)


def make_regression(seed: int) -> Regression:
    torch.manual_seed(seed)
    return Regression(torch.randn(7, 4), torch.randn(7))


def compute_square(model: nn.Module, batch: Regression) -> tuple[Tensor, dict[str, Tensor]]:
    loss = (model(batch.inputs).squeeze(-1) - batch.label).square().mean()
    return loss, {"square": loss.detach()}


def build_pretraining(settings: dict, name: str) -> nn.Module:
    torch.manual_seed(0)
    return pretraining.build(parse_model({"name": name, **settings}), 20)


def build_cat_loss(**settings: object) -> Loss:
    return compositional.build(compositional.Settings(**settings), MaskedLoss())


CASES: dict[str, tuple[Callable[[], nn.Module], Loss, Callable[[int], TensorBatch]]] = {
    "examples": (lambda: nn.Linear(4, 1), ExampleLoss(compute_square), make_regression),
    "tokens": (lambda: make("relative", dropout=0.0), WordLoss(0.1), make_sequences),
    "masked words and pairs": (
        lambda: build_pretraining(ENCODER, "encoder"), MaskedLoss(), make_masked_batch
    ),
    "masked words": (
        lambda: build_pretraining(ENCODER, "encoder"), MaskedLoss(False), make_masked_batch
    ),
    "cat": (lambda: build_pretraining(CAT, "cat"), build_cat_loss(), make_masked_batch),
    "cat, one nuance term": (
        lambda: build_pretraining(CAT, "cat"), build_cat_loss(nuance_task="sum"), make_masked_batch
    ),
    "cat without nuance": (
        lambda: build_pretraining(CAT, "cat"), build_cat_loss(nuance=0.0), make_masked_batch
    ),
}  # fmt: skip


def make_setup(name: str) -> TrainingSetup:
    build, loss, _ = CASES[name]
    torch.manual_seed(0)
    return TrainingSetup(build().train(), loss, [], None)


def train_steps(name: str, parts: int, steps: int = 4) -> tuple[dict[str, Tensor], list[dict]]:
    """Weights after some steps, and the values that were logged."""
    setup = make_setup(name)
    optimiser = torch.optim.SGD(setup.model.parameters(), lr=0.1, momentum=0.9)
    add_gradients = make_gradients(setup, parts, FP32)
    logged = []
    for step in range(steps):
        batch = CASES[name][2](step)
        logged.append(loop.update_weights(setup, optimiser, 1.0, add_gradients, batch))
    return setup.model.state_dict(), logged


@pytest.mark.parametrize("parts", [2, 3, 100])
@pytest.mark.parametrize("name", CASES)
def test_weights_and_logged_values_are_those_of_whole_batches(name, parts):
    """Parts have unequal numbers of examples and tokens; 100 are one for each example."""
    expected_weights, expected = train_steps(name, 1)
    weights, logged = train_steps(name, parts)
    for values, expected_values in zip(logged, expected, strict=True):
        assert list(values) == list(expected_values)
        for key, value in values.items():
            torch.testing.assert_close(value, expected_values[key], rtol=1e-4, atol=1e-5)
    start = make_setup(name).model.state_dict()
    for key, weight in weights.items():
        torch.testing.assert_close(weight, expected_weights[key], rtol=1e-4, atol=1e-5)
    moved = max(float((weights[key] - start[key]).abs().max()) for key in weights)
    assert moved > 0.01


def test_the_mean_of_parts_would_be_another_loss():
    """So the test above can tell them apart: for tokens, and for CAT's nuance."""
    for name in ("tokens", "cat"):
        setup, batch = make_setup(name), CASES[name][2](0)
        losses = [setup.loss(setup.model, part)[0] for part in batch.split(3)]
        whole = setup.loss(setup.model, batch)[0]
        assert (torch.stack(losses).mean() - whole).abs() > 1e-3


@pytest.mark.parametrize("autocast", [FP32, BF16], ids=["fp32", "bf16"])
def test_a_loss_that_is_no_sum_has_the_same_dropout_in_both_passes(autocast):
    """Oracle: the gradient of the loss of all parts' terms, whose graphs are all kept."""
    loss, batch = build_cat_loss(), make_masked_batch(0)
    expected_model = build_pretraining(CAT | {"dropout": 0.3}, "cat").train()
    model = build_pretraining(CAT | {"dropout": 0.3}, "cat").train()
    torch.manual_seed(7)
    with autocast:
        terms = [loss.compute_terms(expected_model, part, batch) for part in batch.split(3)]
    expected, _ = loss.combine({key: sum(each[key] for each in terms) for key in terms[0]})
    expected.backward()
    generator = torch.get_rng_state()

    torch.manual_seed(7)
    value, _ = make_gradients(TrainingSetup(model, loss, [], None), 3, autocast)(batch)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-5, atol=1e-6)
    assert torch.equal(torch.get_rng_state(), generator)
    gradients = dict(model.named_parameters())
    for name, parameter in expected_model.named_parameters():
        if parameter.grad is not None:
            difference = (gradients[name].grad - parameter.grad).norm()
            assert difference <= (1e-5 if autocast is FP32 else 0.02) * (
                parameter.grad.norm() + 0.01
            ), name


def test_splitting_keeps_the_order_of_the_examples():
    batch = make_masked_batch(0)
    parts = batch.split(3)
    assert [part.count_rows() for part in parts] == [3, 2, 2]
    for name in ("ids", "follows", "gold"):
        joined = torch.cat([getattr(part, name) for part in parts])
        assert torch.equal(joined, getattr(batch, name))


def test_a_loss_with_statistics_of_the_batch_is_refused_in_one_line(capsys, tmp_path):
    """SQ-Transformer's clusters have the entropy of the mean of a batch."""
    losses = (quantisation.build(quantisation.Settings(), WordLoss()), WordLoss())
    for loss in losses:  # the moving average of its codes is over a batch, too
        setup = TrainingSetup(make("sal-code"), loss, [], None)
        with pytest.raises(
            UserError, match=r"training.accumulate is 2, but the loss or .* set it to 1"
        ):
            make_gradients(setup, 2, FP32)
    spec = sentence_spec(training={"accumulate": 0})
    assert run_main("train", spec=spec, data=tmp_path, out=tmp_path / "run") == 1
    assert_one_error(capsys.readouterr().err, "accumulate", "0")


def test_a_run_in_parts_resumes_with_the_same_weights_and_one_part_is_no_setting(
    tmp_path, monkeypatch
):
    data, init = write_pairs(tmp_path / "data"), write_encoder(tmp_path / "init")
    digests = {}
    for name, accumulate in (("default", None), ("whole", 1), ("parts", 3), ("stopped", 3)):
        training = {"validate_every": 6} | ({"accumulate": accumulate} if accumulate else {})
        spec = sentence_spec(steps=12, training=training, model={"dropout": 0.1})
        paths = {"data": data, "init": init, "out": tmp_path / name, "state": tmp_path / "state"}
        if name == "stopped":
            with monkeypatch.context() as patched, pytest.raises(SystemExit):
                patched.setattr(loop, "update_weights", stopping_at(8))
                run_main("train", spec=spec, **paths)
        assert run_main("train", spec=spec, **paths) == 0
        digests[name] = hash_file(tmp_path / name / "checkpoint/model.safetensors")
    assert digests["default"] == digests["whole"] != digests["parts"] == digests["stopped"]
