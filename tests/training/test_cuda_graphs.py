"""Updates as CUDA graphs, TF32 and compiled layers on a GPU."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from workflow_scripts.common.progress import Reporter
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.tasks.base import TrainingSetup
from workflow_scripts.tasks.batching import Batch
from workflow_scripts.tasks.seq2seq.checkpoint import build_model
from workflow_scripts.tasks.seq2seq.training_setup import list_compilable
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss
from workflow_scripts.training import loop
from workflow_scripts.training.machine import count_gpu_processes, set_precision
from workflow_scripts.training.optimiser import build_optimiser, set_learning_rate
from workflow_scripts.training.run import add_objective, compile_layers
from workflow_scripts.training.settings import Training
from workflow_scripts.training.state import StateFolder, TrainingState

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU here")
GPU = torch.device("cuda")
RUNS = (
    "scan-jump-x2/sq-transformer/sal",
    "cogs/sq-transformer/srl",
    "cognition/lrf/default",
    "scan-jump-x2/transformer/default",
)
VOCABULARY = {"source": ["w"] * 30, "target": ["w"] * 30}


@pytest.fixture(autouse=True)
def exact_products():
    set_precision("fp32", GPU)
    yield
    set_precision("fp32", GPU)


def make_batches(shapes: int = 2, seed: int = 0) -> list[Batch]:
    """Batches with padding: a copy task, so that the loss falls."""
    generator = torch.Generator().manual_seed(seed)
    batches = []
    for number in range(3 * shapes):
        words = torch.randint(4, 30, (32, 6 + number % shapes), generator=generator)
        words[::3, -2:] = 0
        words[torch.arange(32), words.ne(0).sum(1) - 1] = 2
        target_in = torch.cat([torch.full((32, 1), 2), words[:, :-1]], dim=1).masked_fill(
            words.eq(0), 0
        )
        batches.append(Batch(words, target_in, words).to(GPU))
    return batches


def make_small_setup(run: str, dropout: float) -> tuple[TrainingSetup, Training]:
    spec = resolve_training(load_catalogue(), Run.parse(f"{run}/seed-1"), "small")
    torch.manual_seed(1)
    settings = spec.model.settings.model_copy(update={"dropout": dropout})
    model = build_model(replace(spec.model, settings=settings), VOCABULARY).to(GPU).train()
    setup = TrainingSetup(
        model,
        WordLoss(),
        make_batches(),
        lambda _: {"exact_match": 0.0},
        capturable=model.capturable,
        compilable=list_compilable(model),
    )
    return add_objective(setup, spec.objective), spec.training


def train_updates(
    run: str, count: int, graphed: bool, dropout: float = 0.0, precision: str = "fp32"
) -> list[float]:
    """Return the losses of updates in which batches of two shapes take turns."""
    setup, settings = make_small_setup(run, dropout)
    settings = settings.model_copy(update={"precision": precision})
    set_precision(precision, GPU)
    optimiser = build_optimiser(setup.model, settings, capturable=graphed)
    warnings: list[str] = []
    update = loop.make_update(setup, settings, optimiser, GPU, graphed, warnings.append)
    losses = []
    torch.manual_seed(2)
    for step in range(count):
        set_learning_rate(optimiser, 5e-4 * min(1, (step + 1) / 50))
        losses.append(update(setup.batches[step % len(setup.batches)])["loss"])
    assert not warnings
    return torch.stack(losses).tolist()


@pytest.mark.parametrize("run", RUNS)
def test_the_losses_of_graphs_are_those_of_eager_updates(run):
    graphed, eager = train_updates(run, 300, True), train_updates(run, 300, False)
    assert graphed[:5] == pytest.approx(eager[:5], abs=1e-5)
    last = slice(-50, None)
    assert sum(graphed[last]) == pytest.approx(sum(eager[last]), rel=0.01, abs=0.01 * 50)
    assert sum(graphed[last]) < sum(graphed[:50]), "nothing was learnt"


@pytest.mark.parametrize("run", RUNS)
def test_graphs_draw_the_random_numbers_of_eager_updates(run):
    """With dropout: the same losses at first, and the generator ends at the same offset."""
    graphed = train_updates(run, 10, True, dropout=0.1)
    offset = torch.cuda.get_rng_state()
    eager = train_updates(run, 10, False, dropout=0.1)
    assert torch.equal(torch.cuda.get_rng_state(), offset)
    assert graphed == pytest.approx(eager, abs=1e-3)


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
@pytest.mark.parametrize("run", RUNS)
def test_graphs_in_other_precisions(run, precision):
    graphed, eager = (
        train_updates(run, 60, graphed, precision=precision) for graphed in (True, False)
    )
    assert graphed == pytest.approx(eager, rel=0.1, abs=0.1)


def train_run(folder: Path, setup: TrainingSetup, settings: Training) -> TrainingState:
    folder.mkdir(exist_ok=True)
    with Reporter("run", settings.max_steps, "none") as reporter:
        return loop.train(setup, settings, 7, GPU, StateFolder(folder, {}), reporter, 60)


def test_a_run_that_resumes_in_the_middle_of_its_graphs_ends_with_the_same_losses(tmp_path):
    setup, settings = make_small_setup(RUNS[0], 0.0)
    settings = settings.model_copy(update={"max_steps": 60, "log_every": 20, "validation": "none"})
    whole = train_run(tmp_path / "whole", setup, settings)

    setup, _ = make_small_setup(RUNS[0], 0.0)
    calls = 0

    def stop_in_the_middle(model, batch, loss=setup.loss):
        nonlocal calls
        calls += 1
        return loss(model, batch)

    setup = replace(setup, loss=stop_in_the_middle)
    half = settings.model_copy(update={"max_steps": 30})
    train_run(tmp_path / "half", setup, half)
    assert calls == 4, "two shapes: one update each without a graph, one that is captured"
    setup, _ = make_small_setup(RUNS[0], 0.0)
    resumed = train_run(tmp_path / "half", setup, settings)
    losses = {step: value for step, name, value in whole.history if name == "loss"}
    found = {step: value for step, name, value in resumed.history if name == "loss"}
    assert resumed.resumed == 1
    assert found[60] == pytest.approx(losses[60], rel=0.01)
    assert resumed.attempts[-1].gpu_processes == count_gpu_processes()


def waiting(setup: TrainingSetup) -> TrainingSetup:
    """The setup with a loss that waits for the GPU."""

    def waiting_loss(model, batch, loss=setup.loss):
        value, parts = loss(model, batch)
        return value * float(value.detach().gt(-1e9)), parts

    return replace(setup, loss=waiting_loss)


@pytest.mark.parametrize("watches_first", [True, False])
def test_a_loss_that_waits_for_the_data_is_trained_without_graphs(watches_first):
    """Also where only the capture shows it."""
    losses = {}
    for graphed in (True, False):
        setup, settings = make_small_setup(RUNS[0], 0.1)
        setup = waiting(setup)
        optimiser = build_optimiser(setup.model, settings, capturable=True)
        warnings: list[str] = []
        update = loop.make_update(setup, settings, optimiser, GPU, graphed, warnings.append)
        if graphed:
            update.watches_first = watches_first
        set_learning_rate(optimiser, 1e-4)
        losses[graphed] = [float(update(setup.batches[number % 6])["loss"]) for number in range(12)]
        assert len(warnings) == (2 if graphed else 0)
        assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert losses[True] == pytest.approx(losses[False], rel=0.05)


def test_other_shapes_are_still_captured_after_a_capture_that_failed():
    setup, settings = make_small_setup(RUNS[0], 0.1)
    plain, slow = setup.loss, waiting(setup).loss
    longest = max(batch.source.size(1) for batch in setup.batches)

    def loss(model, batch):
        return (slow if batch.source.size(1) == longest else plain)(model, batch)

    setup = replace(setup, loss=loss)
    optimiser = build_optimiser(setup.model, settings, capturable=True)
    warnings: list[str] = []
    update = loop.make_update(setup, settings, optimiser, GPU, True, warnings.append)
    update.watches_first = False
    for number in range(12):
        assert torch.isfinite(update(setup.batches[number % 6])["loss"])
    assert len(warnings) == 1 and len(update.captured) == 1


def test_compiled_layers_train_and_are_validated_as_written():
    setup, settings = make_small_setup(RUNS[0], 0.1)
    compile_layers(setup, GPU)
    optimiser = build_optimiser(setup.model, settings, capturable=True)
    warnings: list[str] = []
    update = loop.make_update(setup, settings, optimiser, GPU, True, warnings.append)
    losses = []
    for step in range(300):
        set_learning_rate(optimiser, 5e-4 * min(1, (step + 1) / 50))
        losses.append(float(update(setup.batches[step % 6])["loss"]))
    eager = train_updates(RUNS[0], 300, False, dropout=0.1)
    assert not warnings and len(update.captured) == 2
    assert sum(losses[-50:]) == pytest.approx(sum(eager[-50:]), rel=0.1, abs=0.1 * 50)


def test_tf32_is_used_and_codes_are_still_scored_exactly():
    setup, _ = make_small_setup(RUNS[0], 0.0)
    quantiser = setup.model.source_quantiser
    torch.manual_seed(0)
    words = torch.randn(4, 512, quantiser.codebook.size(1), device=GPU)
    matrix = torch.randn(512, 512, device=GPU)
    scores, product = quantiser.score_codes(words), matrix @ matrix
    set_precision("tf32", GPU)
    assert torch.equal(quantiser.score_codes(words), scores)
    assert not torch.equal(matrix @ matrix, product)
