"""The losses against the same losses written with the words selected by a boolean index, which has
no fixed size.
"""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from tests.models.sq_transformer.named_terms import name_terms
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.objectives.structural_quantisation.settings import Settings
from workflow_scripts.tasks.base import Loss, TrainingSetup
from workflow_scripts.tasks.batching import Batch
from workflow_scripts.tasks.seq2seq.checkpoint import build_model
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss
from workflow_scripts.training import loop
from workflow_scripts.training.accumulation import make_gradients
from workflow_scripts.training.optimiser import build_optimiser, set_learning_rate
from workflow_scripts.training.run import add_objective

RUNS = (
    "scan-jump-x2/sq-transformer/sal",
    "scan-jump-x2/sq-transformer/sal-mmi",
    "cogs/sq-transformer/srl",
    "cognition/lrf/default",
    "scan-jump-x2/transformer/default",
)
UPDATES = 5
TABLE_SIZES = {"source": ["w"] * 12, "target": ["w"] * 12}


def select_word_loss(logits: Tensor, target: Tensor, label_smoothing: float) -> Tensor:
    real = target.ne(0)
    return cross_entropy(logits[real], target[real], label_smoothing=label_smoothing)


def select_side_parts(terms: dict[str, Tensor], side: str, settings: Settings) -> dict[str, Tensor]:
    """The parts of one side: every mean is the mean of the selected words."""
    own = {
        name.removeprefix(f"{side}_"): term
        for name, term in terms.items()
        if name.startswith(f"{side}_")
    }
    real, next_real = own["real"], own["next_real"]

    def commitment(states: Tensor, vectors: Tensor) -> Tensor:
        return (vectors.detach()[real] - states[real]).square().mean()

    parts = {
        "commitment": commitment(own["embedded"], own["vectors"]),
        "next_code": cross_entropy(own["output_scores"][next_real], own["next_codes"][next_real]),
        "output_commitment": commitment(own["output"], own["output_vectors"]),
    }
    if "prior" in own:
        q = own["posterior"][own["predicted"]].softmax(-1)
        log_p = own["prior"][own["predicted"]].log_softmax(-1)
        parts["cluster"] = -(q * log_p).sum(-1).mean()
        if len(real) >= getattr(settings, f"entropy_min_length_{side}"):
            share = own["marginal"][own["averaged"]].softmax(-1).mean(0)
            parts["entropy"] = -(share * (share + 1e-30).log()).sum()
    if "layers" in own:
        words, codes = own["layers"].chunk(2, dim=2)
        codes = codes.detach() if settings.distance_stops_gradient else codes
        parts["distance"] = sum(
            (x - z)[real].square().mean() for x, z in zip(words, codes, strict=True)
        )
    return {f"{name}_{side}": value for name, value in parts.items()}


def make_selecting_loss(settings: Settings, label_smoothing: float) -> Loss:
    def loss_of(model: torch.nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        output = model(batch.source, batch.target_in)
        loss = select_word_loss(output.logits, batch.target_out, label_smoothing)
        parts = {"word": loss.detach()}
        for side in ("source", "target") if getattr(output, "terms", None) else ():
            for name, value in select_side_parts(name_terms(output), side, settings).items():
                sign = -1 if name.startswith("entropy") else 1
                loss = loss + sign * getattr(settings, name) * value
                parts[name] = value.detach()
        return loss, parts

    return loss_of


def make_padded_batch(number: int) -> Batch:
    """8 sentences of 1 to 12 words, most of the batch padding."""
    torch.manual_seed(number)
    tables = []
    for _ in range(2):
        lengths = torch.randint(1, 13, (8,))
        lengths[0] = 12
        words = torch.randint(4, 12, (8, 13))
        positions = torch.arange(13)
        words[positions > lengths[:, None]] = 0
        words[positions == lengths[:, None]] = 2
        tables.append(words)
    source, target_out = tables
    target_in = torch.cat([torch.full((8, 1), 2), target_out[:, :-1]], dim=1)
    return Batch(source, target_in.masked_fill(target_out.eq(0), 0), target_out)


def compute_gradients(
    setup: TrainingSetup, batch: Batch, seed: int
) -> tuple[float, dict[str, Tensor], Tensor]:
    torch.manual_seed(seed)  # of the positions that are masked
    loss, parts = setup.loss(setup.model, batch)
    loss.backward()
    loss = loss.detach()
    gradients = [
        parameter.grad for parameter in setup.model.parameters() if parameter.grad is not None
    ]
    flat = torch.cat([gradient.flatten() for gradient in gradients]).clone()
    setup.model.zero_grad()
    return float(loss), parts, flat


@pytest.mark.parametrize("run", RUNS)
def test_loss_and_gradients_are_those_of_the_selected_words(run):
    """In each of some updates, from equal weights and without dropout; those of the Transformer in
    all bits.
    """
    spec = resolve_training(load_catalogue(), Run.parse(f"{run}/seed-1"), "small")
    torch.manual_seed(1)
    without_dropout = replace(
        spec.model, settings=spec.model.settings.model_copy(update={"dropout": 0.0})
    )
    model = build_model(without_dropout, TABLE_SIZES).train()
    label_smoothing = spec.problem.label_smoothing
    setup = add_objective(TrainingSetup(model, WordLoss(label_smoothing), [], dict), spec.objective)
    weights = spec.objective.settings if spec.objective else Settings()
    selecting = TrainingSetup(model, make_selecting_loss(weights, label_smoothing), [], dict)
    optimiser = build_optimiser(model, spec.training)
    set_learning_rate(optimiser, 1e-3)
    no_autocast = torch.autocast("cpu", enabled=False)
    for number in range(UPDATES):
        batch = make_padded_batch(number)
        loss, parts, gradients = compute_gradients(setup, batch, seed=number)
        expected_loss, expected_parts, expected_gradients = compute_gradients(
            selecting, batch, seed=number
        )
        assert loss == pytest.approx(expected_loss, abs=1e-5)
        assert parts.keys() == expected_parts.keys()
        for name, value in parts.items():
            assert float(value) == pytest.approx(float(expected_parts[name]), abs=1e-5), name
        difference = (gradients - expected_gradients).norm() / expected_gradients.norm()
        assert difference < 1e-6
        if "/transformer/" in run:
            assert torch.equal(gradients, expected_gradients)
        torch.manual_seed(number)
        gradients_of = make_gradients(setup, 1, no_autocast)
        loop.update_weights(setup, optimiser, 1.0, gradients_of, batch)
