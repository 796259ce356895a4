"""Gradient checkpointing changes what is kept between the passes, and no number."""

import itertools
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.tasks.prompt.test_problem import FAMILIES, train
from tests.training.causal_toy import causal_spec, write_prompts, write_text
from tests.training.kept import kept_for_backward
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.run_specs import resolve_run
from workflow_scripts.models.causal_lm.model import build
from workflow_scripts.objectives.carma import objective as carma
from workflow_scripts.objectives.hidden_states import find_blocks, record_outputs
from workflow_scripts.tasks.prompt.problem import PromptBatch, compute_answer_loss
from workflow_scripts.training import loop

SIZES = {"layers": 4, "heads": 2, "width": 32, "feed_forward": 96, "dropout": 0.1, "positions": 64}
OBJECTIVE = {"last_block_mi": 2, "last_block_stability": 3}
CARMA = {"weight": 0.3, "mi": 0.2, "stability": 0.3}


def passes(family: str, checkpointed: bool) -> tuple[torch.Tensor, dict[str, torch.Tensor], torch.Tensor, int]:
    """(loss, gradients, state of the generator after both passes, bytes kept between them) of CARMA."""
    torch.manual_seed(0)
    model = build({**SIZES, "family": family}, 100)
    if checkpointed:
        model.activation_checkpointing_enable({"use_reentrant": False, "preserve_rng_state": True})
    ids = torch.randint(4, 100, (4, 20))
    words = (torch.arange(20) // 2).expand(4, 20).contiguous()
    real = torch.arange(20) < torch.tensor([20, 18, 17, 12])[:, None]
    batch = PromptBatch(ids, real, words.where(real, -1), real.sum(1) - 1, torch.arange(4))
    with kept_for_backward(model) as kept:
        loss, _ = carma.build(OBJECTIVE | CARMA, partial(compute_answer_loss, label_smoothing=0.0))(model, batch)
    size = sum(kept.values())
    loss.backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return loss, gradients, torch.get_rng_state(), size


@pytest.mark.parametrize("family", FAMILIES)
def test_loss_gradients_and_generators_are_the_same_and_less_is_kept(family):
    """With dropout in GPT-2 and CARMA's draws: bit by bit."""
    loss, gradients, generator, size = passes(family, checkpointed=False)
    again, others, generator_again, less = passes(family, checkpointed=True)
    assert torch.equal(loss, again) and torch.equal(generator, generator_again)
    assert all(torch.equal(gradient, others[name]) for name, gradient in gradients.items())
    assert less < 0.5 * size


def test_recorded_states_carry_gradients():
    """CARMA's losses reach the first block through the states that hooks record."""
    model = build({**SIZES, "family": "llama"}, 100)
    model.activation_checkpointing_enable({"use_reentrant": False})
    with record_outputs(find_blocks(model), range(2)) as states:
        model.base_model(input_ids=torch.arange(8)[None], use_cache=False)
    states[1].square().sum().backward()
    assert find_blocks(model)[0].mlp.up_proj.weight.grad.any()
    assert find_blocks(model)[2].mlp.up_proj.weight.grad is None


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prompts, and a pre-trained GPT-2, which has dropout."""
    place = tmp_path_factory.mktemp("checkpointing")
    write_text(place / "text")
    write_prompts(place / "prompts")
    assert train(place, "pretrain", causal_spec("language_modelling", max_steps=2), "text") == 0
    return place


def stopping_at(step: int) -> Callable:
    """`loop.update_weights`, but at that step of this process SIGTERM arrives."""
    update, steps = loop.update_weights, itertools.count(1)

    def stopping(*arguments):
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGTERM)
        return update(*arguments)

    return stopping


def test_a_run_has_the_same_weights_also_when_it_was_stopped(place, monkeypatch):
    init = ("--init", place / "runs/pretrain/checkpoint")
    for name, checkpointed in (("plain", False), ("checkpointed", True), ("stopped", True)):
        given = {"max_steps": 12, "validate_every": 6, "gradient_checkpointing": checkpointed}
        spec = causal_spec("prompt", objective=CARMA, **given)
        if name == "stopped":
            with monkeypatch.context() as patched, pytest.raises(SystemExit) as stopped:
                patched.setattr(loop, "update_weights", stopping_at(8))
                train(place, name, spec, "prompts", *init)
            assert stopped.value.code == 143
        assert train(place, name, spec, "prompts", *init) == 0
    names = ("plain", "checkpointed", "stopped")
    assert len({hash_file(place / f"runs/{name}/checkpoint/model.safetensors") for name in names}) == 1
    assert len({(place / f"runs/{name}/training.csv").read_text() for name in names}) == 1


def test_the_largest_models_have_it_at_the_papers_scale_and_no_other():
    catalogue = load_catalogue()
    for scale in ("small", "full"):
        found = {
            name
            for name in ("gpt2-small", "gpt2-large", "gemma", "llama-small", "llama-large", "qwen-small", "qwen-large")
            if resolve_run(catalogue, f"idm/{name}/carma/seed-42", scale)["training"].get("gradient_checkpointing")
        }
        assert found == ({"gemma", "llama-large", "qwen-large"} if scale == "full" else set())


def test_pre_training_on_text_cannot_have_it():
    """That of such a model at `full` would take the same settings."""
    with pytest.raises(UserError, match=r"kind language_modelling, which does not read .*gradient_checkpointing"):
        resolve_run(load_catalogue(), "text-bpe-4k/gemma/pretrain/seed-1", "full")
