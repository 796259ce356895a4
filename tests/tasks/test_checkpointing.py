"""Gradient checkpointing changes what is kept between the passes, and no number."""

from functools import partial
from pathlib import Path

import pytest
import torch

from tests.config.as_json import resolve_run
from tests.tasks.prompt.test_training_setup import FAMILIES, train
from tests.training.causal_toy import causal_spec, write_prompts, write_text
from tests.training.sentence_toy import (
    model_name,
    model_settings,
    sentence_spec,
    write_encoder,
    write_pairs,
)
from tests.training.toy import run_main, stopping_at
from workflow_scripts.__main__ import main
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.models.causal_lm.model import Settings, build
from workflow_scripts.models.hugging_face import use_gradient_checkpointing
from workflow_scripts.models.importing import import_model
from workflow_scripts.objectives.carma import objective as carma
from workflow_scripts.tasks.encoders import EncoderWithHeads
from workflow_scripts.tasks.prompt.training_setup import PromptBatch, compute_answer_loss
from workflow_scripts.training import loop

SIZES = {"layers": 4, "heads": 2, "width": 32, "feed_forward": 96, "dropout": 0.1, "positions": 64}
OBJECTIVE = {"last_block_mi": 2, "last_block_stability": 3}
CARMA = {"weight": 0.3, "mi": 0.2, "stability": 0.3}


def compute_carma(model: torch.nn.Module, ids: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    words = (torch.arange(20) // 2).expand(4, 20).where(real, -1)
    batch = PromptBatch(ids, real, words, real.sum(1) - 1, torch.arange(4))
    return carma.build(
        carma.Settings(**(OBJECTIVE | CARMA)), partial(compute_answer_loss, label_smoothing=0.0)
    )(model, batch)[0]


def compute_states(model: torch.nn.Module, ids: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    return (
        sum(EncoderWithHeads(model).compute_states(ids, real, torch.zeros_like(ids)).values())
        .square()
        .mean()
    )


def passes(
    family: str, checkpointed: bool, **more
) -> tuple[torch.Tensor, dict[str, torch.Tensor], torch.Tensor, int]:
    """(loss, gradients, state of the generator after both passes, bytes kept between them), with
    dropout.
    """
    torch.manual_seed(0)
    if family in FAMILIES:
        model, compute = build(Settings(**{**SIZES, "family": family}), 100), compute_carma
    else:
        more |= {"codes": 40} if family == "cat" else {}
        settings = model_settings(family, layers=4, dropout=0.1, **more)
        module = import_model(model_name(family))
        model, compute = module.build(module.Settings(**settings), 100), compute_states
    if checkpointed:
        use_gradient_checkpointing(model)
    ids, real = (
        torch.randint(4, 100, (4, 20)),
        torch.arange(20) < torch.tensor([20, 18, 17, 12])[:, None],
    )
    kept: dict[int, int] = {}  # storage of what autograd saves -> its bytes

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = compute(model, ids, real)
    weights = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    size = sum(count for storage, count in kept.items() if storage not in weights)
    loss.backward()
    return loss, {name: p.grad for name, p in model.named_parameters()}, torch.get_rng_state(), size


@pytest.mark.parametrize(
    ("family", "more"),
    [(family, {}) for family in (*FAMILIES, "bert", "roberta", "distilbert", "cat")]
    + [("cat", {"mixing": "mean"}), ("cat", {"mixing_residual": True})],
)
def test_loss_gradients_and_generators_are_the_same_and_less_is_kept(family, more):
    """With dropout and CARMA's draws: bit by bit."""
    loss, gradients, generator, size = passes(family, checkpointed=False, **more)
    again, others, generator_again, less = passes(family, checkpointed=True, **more)
    assert torch.equal(loss, again) and torch.equal(generator, generator_again)
    for name, gradient in gradients.items():
        assert (gradient is None) == (others[name] is None), name
        assert gradient is None or torch.equal(gradient, others[name]), name
    assert less < 0.6 * size


def test_a_run_on_prompts_has_the_same_weights_also_when_it_was_stopped(tmp_path, monkeypatch):
    write_text(tmp_path / "text")
    write_prompts(tmp_path / "prompts")
    assert train(tmp_path, "pretrain", causal_spec("language_modelling", max_steps=2), "text") == 0
    init = ("--init", tmp_path / "runs/pretrain/checkpoint")
    for name, checkpointed in (("plain", False), ("checkpointed", True), ("stopped", True)):
        given = {"max_steps": 12, "validate_every": 6, "gradient_checkpointing": checkpointed}
        spec = causal_spec("prompt", objective=CARMA, **given)
        if name == "stopped":
            with monkeypatch.context() as patched, pytest.raises(SystemExit) as stopped:
                patched.setattr(loop, "update_weights", stopping_at(8))
                train(tmp_path, name, spec, "prompts", *init)
            assert stopped.value.code == 143
        assert train(tmp_path, name, spec, "prompts", *init) == 0
    runs = [tmp_path / "runs" / name for name in ("plain", "checkpointed", "stopped")]
    assert len({hash_file(run / "checkpoint/model.safetensors") for run in runs}) == 1
    (history,) = {(run / "training.csv").read_text() for run in runs}
    assert all(f",{name}," in history for name in ("answer", "mi", "stability", "pairs"))


def count_weights(place: Path, spec: dict, **paths: Path) -> int:
    """How many files of weights the command writes with and without gradient checkpointing; equal
    ones are one.
    """
    found = set()
    for checkpointed in (False, True):
        spec["training"]["gradient_checkpointing"], out = checkpointed, place / str(checkpointed)
        assert run_main("train", spec=spec, out=out, state=place / "state", **paths) == 0
        found.add(hash_file(out / "checkpoint/model.safetensors"))
    return len(found)


@pytest.mark.parametrize("family", ["bert", "cat"])
def test_fine_tuning_on_sentences_has_the_same_weights(tmp_path, family):
    data, init = write_pairs(tmp_path / "data"), write_encoder(tmp_path / "init", family)
    spec = sentence_spec(family, steps=12, training={"validate_every": 6}, model={"dropout": 0.1})
    assert count_weights(tmp_path, spec, data=data, init=init) == 1


@pytest.mark.parametrize("method", ["bert", "cat"])
def test_pre_training_on_masked_words_has_the_same_weights(tmp_path, method):
    data = tmp_path / "data"
    assert (
        main(["prepare", "--task", "pairs-wordpiece", "--scale", "demo", "--out", str(data)]) == 0
    )
    spec = resolve_run(load_catalogue(), f"pairs-wordpiece/{method}/pretrain/seed-3", "demo")
    spec["training"] |= {"max_steps": 6, "warmup_steps": 2, "validate_every": 3}
    spec["model"]["dropout"] = 0.1
    assert count_weights(tmp_path, spec, data=data) == 1


def test_the_largest_models_have_it_at_the_papers_scale_and_no_other():
    catalogue = load_catalogue()
    for scale in ("small", "full"):
        found = {
            name
            for name in (
                "gpt2-small",
                "gpt2-large",
                "gemma",
                "llama-small",
                "llama-large",
                "qwen-small",
                "qwen-large",
            )
            if resolve_run(catalogue, f"idm/{name}/carma/seed-42", scale)["training"].get(
                "gradient_checkpointing"
            )
        }
        assert found == ({"gemma", "llama-large", "qwen-large"} if scale == "full" else set())


def test_pre_training_on_text_cannot_have_it():
    """Only its fine-tuning may: pre-training refuses the setting at every scale."""
    with pytest.raises(
        UserError, match=r"kind language_modelling, which does not read .*gradient_checkpointing"
    ):
        resolve_run(load_catalogue(), "text-bpe-4k/gemma/pretrain/seed-1", "full")
