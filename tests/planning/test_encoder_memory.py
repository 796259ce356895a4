"""The memory that `plan` says an encoder's training needs, against what a small model's step holds."""

import pytest
import torch
from torch.nn.attention import SDPBackend

from tests.planning.held import peak_of_a_step
from workflow_scripts.catalogue.loading import load_catalogue, load_config
from workflow_scripts.catalogue.run_specs import resolve_run
from workflow_scripts.catalogue.runs import Run
from workflow_scripts.models import encoder, pretraining, sentence
from workflow_scripts.objectives import compositional_pretraining, masked_language_modelling, sentence_loss
from workflow_scripts.objectives.masked_language_modelling import IGNORED
from workflow_scripts.planning.encoder_memory import (
    MASKED_SHARE,
    estimate,
    head_parameters,
    parameters,
    training_memory,
)
from workflow_scripts.planning.gpu_bytes import Batch
from workflow_scripts.planning.memory import report
from workflow_scripts.training.masked_batches import MaskedBatch
from workflow_scripts.training.sentence_batches import SentenceBatch

WORDS, SENTENCES, LENGTH = 600, 8, 48
SIZES = {"layers": 4, "heads": 4, "width": 64, "feed_forward": 192, "positions": 64, "dropout": 0.0}
CAT = {"family": "cat", "codes": 100, "last_codes": 300}
VARIANTS = {
    "bert": {"family": "bert"},
    "roberta": {"family": "roberta"},
    "distilbert": {"family": "distilbert"},
    "cat": CAT,
    "cat with residuals": CAT | {"mixing_residual": True, "value_bias": True},
    "cat with a mixing a layer": CAT | {"mixing": "per_layer", "output_projection": False, "score": "cosine"},
    "cat without mixing": CAT | {"mixing": "mean"},
}


def masked_batch() -> MaskedBatch:
    ids = torch.randint(4, WORDS, (SENTENCES, LENGTH))
    labels = torch.full_like(ids, IGNORED)
    chosen = torch.randperm(ids.numel())[: round(MASKED_SHARE * ids.numel())]
    labels.view(-1)[chosen] = ids.view(-1)[chosen]
    real, share = torch.ones_like(ids, dtype=torch.bool), torch.ones(ids.shape)
    gold = torch.randint(0, CAT["last_codes"], (*ids.shape, 2), dtype=torch.int32)
    return MaskedBatch(ids, torch.zeros_like(ids), labels, real, torch.ones(SENTENCES, dtype=torch.long), share, gold)


def measured(settings: dict, kind: str, checkpointed: bool, bf16: bool) -> int:
    """Bytes at the peak of a model's second step, with weights and moments."""
    if kind == "masked":
        model, batch = pretraining.build(settings, WORDS), masked_batch()
        loss_of = (compositional_pretraining if settings["family"] == "cat" else masked_language_modelling).build({})
    else:
        inner = encoder.build(settings, WORDS)
        model, loss_of = sentence.build(inner, settings, {}, 2), sentence_loss.build({})
        ids = torch.randint(4, WORDS, (SENTENCES, 1, LENGTH))
        batch = SentenceBatch(ids, torch.zeros_like(ids), torch.ones_like(ids, dtype=torch.bool), torch.ones(SENTENCES))
    if checkpointed:
        encoder.checkpoint_blocks(model.encoder)
    return peak_of_a_step(model, loss_of, batch, bf16, [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH])


CASES = [
    *(("bert", kind, bf16) for kind in ("masked", "sentence") for bf16 in (False, True)),
    *(("cat", kind, bf16) for kind in ("masked", "sentence") for bf16 in (False, True)),
    ("roberta", "masked", False),
    ("distilbert", "sentence", False),
    ("cat with residuals", "masked", True),
    ("cat with a mixing a layer", "masked", False),
    ("cat without mixing", "masked", False),
]


@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize(("variant", "kind", "bf16"), CASES)
def test_the_estimate_is_what_a_step_holds(variant, kind, bf16, checkpointed):
    """Within 10 % of the measured peak: weights, gradients, moments, activations and logits."""
    settings = {**SIZES, **VARIANTS[variant], "readout": "mix" if VARIANTS[variant]["family"] == "cat" else "last"}
    s = encoder.read_encoder_settings(settings)
    counts = parameters(s, WORDS), head_parameters(s, WORDS, kind, {})
    batch = Batch(SENTENCES, LENGTH, SENTENCES * LENGTH)
    found = training_memory(s, kind, WORDS, counts, batch, checkpointed, bf16)
    assert found.peak == pytest.approx(measured(settings, kind, checkpointed, bf16), rel=0.1)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_parameters_are_those_of_the_model(variant, tied):
    settings = {**SIZES, **VARIANTS[variant], "tied": tied}
    settings |= {"readout": "mix"} if settings["family"] == "cat" else {}
    s = encoder.read_encoder_settings(settings)
    found = sum(parameter.numel() for parameter in pretraining.build(settings, WORDS).parameters())
    assert parameters(s, WORDS) + head_parameters(s, WORDS, "masked", {}) == found
    for head in ({}, {"head_layers": 2, "head_width": 20}):
        model = sentence.build(encoder.build(settings, WORDS), settings, head, 2)
        found = sum(parameter.numel() for parameter in model.parameters())
        assert parameters(s, WORDS) + head_parameters(s, WORDS, "sentence", head) == found


def test_a_frozen_encoder_holds_its_weights_and_no_gradients():
    s = encoder.read_encoder_settings({**SIZES, "frozen": True})
    counts = parameters(s, WORDS), head_parameters(s, WORDS, "sentence", {})
    found = training_memory(s, "sentence", WORDS, counts, Batch(SENTENCES, LENGTH, 0), False, False)
    assert found.gradients == 4 * counts[1] and found.moments == 8 * counts[1]
    assert 4 * counts[0] < found.peak < 4 * counts[0] + 4 * SENTENCES * LENGTH * (12 * s.width + 4 * s.feed_forward)


def test_the_papers_runs_and_their_largest_batches():
    """bert-base-uncased's 30,522 words; 480 pairs of 128 tokens in pre-training, the grid's 256 in fine-tuning."""
    catalogue = load_catalogue()
    runs = [
        Run("wikipedia-bookcorpus", "cat", "pretrain", 1),
        Run("paws", "cat", "mix", 2),
        Run("paws", "bert", "ft", 2),
    ]
    found = [estimate(catalogue, run, resolve_run(catalogue, run, "paper"), "paper", "auto") for run in runs]
    # 68.7 million in the encoder, and the head over the vocabulary.
    assert found[0].weights == pytest.approx(4 * (68.7e6 + 30522 * 769), rel=0.01)
    assert found[0].peak > found[1].peak > found[2].peak
    untrained = Run("bird", "cat", "paws-mix", 2)
    assert estimate(catalogue, untrained, resolve_run(catalogue, untrained, "paper"), "paper", "auto") is None
    lines = report(catalogue, load_config({"scale": "paper", "papers": ["cat"]}), runs)
    assert lines[0].startswith("wikipedia-bookcorpus/cat/pretrain: ") and len(lines) == 3
    runs += [Run("sst2", "bert", "ft", 2), Run("stsb", "bert", "ft", 2)]
    lines = report(catalogue, load_config({"scale": "paper", "papers": ["cat"]}), runs)
    assert lines[2].startswith("paws/bert/ft and 2 tasks more: 8.") and len(lines) == 3
