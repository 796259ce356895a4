"""Gradient checkpointing of encoders changes what is kept between the passes, and no number."""

from pathlib import Path

import pytest
import torch

from tests.training.kept import kept_for_backward
from tests.training.sentence_toy import model_name, model_settings, sentence_spec, write_encoder, write_pairs
from tests.training.toy import run_main
from workflow_scripts.__main__ import main
from workflow_scripts.common.files import hash_file
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.run_specs import resolve_run
from workflow_scripts.models.hugging_face import use_gradient_checkpointing
from workflow_scripts.models.importing import import_model
from workflow_scripts.tasks.encoders import EncoderWithHeads

FAMILIES = ("bert", "roberta", "distilbert", "cat")


def passes(family: str, checkpointed: bool, **more) -> tuple[torch.Tensor, dict[str, torch.Tensor], torch.Tensor, int]:
    """(states, gradients, state of the generator after both passes, bytes kept between them), with dropout."""
    torch.manual_seed(0)
    codes = {"codes": 40, **more} if family == "cat" else {}
    model = import_model({"name": model_name(family)}).build(model_settings(family, layers=4, dropout=0.1, **codes), 50)
    if checkpointed:
        use_gradient_checkpointing(model)
    ids = torch.randint(4, 50, (4, 20))
    real = torch.arange(20) < torch.tensor([20, 18, 17, 12])[:, None]
    with kept_for_backward(model) as kept:
        states = sum(EncoderWithHeads(model).compute_states(ids, real, torch.zeros_like(ids)).values())
    size = sum(kept.values())
    states.square().mean().backward()
    return states, {n: p.grad for n, p in model.named_parameters()}, torch.get_rng_state(), size


@pytest.mark.parametrize(
    ("family", "more"),
    [(family, {}) for family in FAMILIES]
    + [("cat", {"mixing": "mean"}), ("cat", {"mixing_residual": True, "code_dropout": 0.1})],
)
def test_states_gradients_and_generators_are_the_same_and_less_is_kept(family, more):
    states, gradients, generator, size = passes(family, checkpointed=False, **more)
    again, others, generator_again, less = passes(family, checkpointed=True, **more)
    assert torch.equal(states, again) and torch.equal(generator, generator_again)
    for name, gradient in gradients.items():
        assert (gradient is None) == (others[name] is None), name
        assert gradient is None or torch.equal(gradient, others[name]), name
    assert less < 0.6 * size


def count_weights(place: Path, spec: dict, **paths: Path) -> int:
    """How many files of weights the command writes with and without gradient checkpointing; equal ones are one."""
    found = set()
    for checkpointed in (False, True):
        spec["training"]["gradient_checkpointing"], out = checkpointed, place / str(checkpointed)
        assert run_main("train", spec=spec, out=out, state=place / "state", **paths) == 0
        found.add(hash_file(out / "checkpoint/model.safetensors"))
    return len(found)


@pytest.mark.parametrize("family", ["bert", "cat"])
def test_fine_tuning_has_the_same_weights(tmp_path, family):
    data, init = write_pairs(tmp_path / "data"), write_encoder(tmp_path / "init", family)
    spec = sentence_spec(family, steps=12, training={"validate_every": 6}, model={"dropout": 0.1})
    assert count_weights(tmp_path, spec, data=data, init=init) == 1


@pytest.mark.parametrize("method", ["bert", "cat"])
def test_pre_training_has_the_same_weights(tmp_path, method):
    data = tmp_path / "data"
    assert main(["prepare", "--task", "pairs-wordpiece", "--scale", "demo", "--out", str(data)]) == 0
    spec = resolve_run(load_catalogue(), f"pairs-wordpiece/{method}/pretrain/seed-3", "demo")
    spec["training"] |= {"max_steps": 6, "warmup_steps": 2, "validate_every": 3}
    spec["model"]["dropout"] = 0.1
    assert count_weights(tmp_path, spec, data=data) == 1
