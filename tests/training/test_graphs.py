"""Updates as graphs, recorded and repeated by the real code on a stand-in for CUDA graphs."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tests.training.graph_stand_in import graphs_on_cpu  # noqa: F401
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.models.roberta_decoder.model import RobertaTransformer
from workflow_scripts.tasks.base import Loss, TrainingSetup
from workflow_scripts.tasks.batching import Batch
from workflow_scripts.tasks.seq2seq.checkpoint import build_model
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss
from workflow_scripts.training import graphs, loop
from workflow_scripts.training.optimiser import build_optimiser, set_learning_rate
from workflow_scripts.training.run import add_objective
from workflow_scripts.training.settings import Training

RUNS = (
    "scan-jump-x2/sq-transformer/sal",
    "scan-jump-x2/sq-transformer/sal-mmi",
    "cogs/sq-transformer/srl",
    "cognition/lrf/default",
    "scan-jump-x2/transformer/default",
)
VOCABULARY = {"source": ["w"] * 9, "target": ["w"] * 9}
UPDATES = 12
CPU = torch.device("cpu")


def make_batches() -> Iterator[Batch]:
    """Batches with padding, of two shapes in turn."""
    torch.manual_seed(0)
    for number in range(UPDATES):
        tables = [torch.randint(4, 9, (4, 5 + number % 2)) for _ in range(3)]
        for table in tables:
            table[0, -2:] = 0
        yield Batch(*tables)


def make_toy_setup(run: str) -> tuple[TrainingSetup, Training]:
    spec = resolve_training(load_catalogue(), Run.parse(f"{run}/seed-1"), "small")
    torch.manual_seed(1)
    model = build_model(spec.model, VOCABULARY).train()
    setup = TrainingSetup(model, WordLoss(0.1), [], dict, capturable=model.capturable)
    return add_objective(setup, spec.objective), spec.training.model_copy(update={"clip_norm": 1.0})


class Trainer:
    """Some updates of a run at `small`, with dropout, clipping and a learning rate that changes."""

    def __init__(self, run: str, graphed: bool, wrap: Callable[[Loss], Loss] | None = None):
        self.setup, settings = make_toy_setup(run)
        if wrap:
            self.setup = replace(self.setup, loss=wrap(self.setup.loss))
        self.optimiser = build_optimiser(self.setup.model, settings, capturable=True)
        self.warnings: list[str] = []
        self.update = loop.make_update(
            self.setup, settings, self.optimiser, CPU, graphed, self.warnings.append
        )

    def train(self) -> list[dict[str, float]]:
        rows = []
        for number, batch in enumerate(make_batches()):
            set_learning_rate(self.optimiser, 1e-3 * number)
            values = self.update(batch)
            rows.append({name: float(value) for name, value in values.items()})
        return rows

    def list_weights(self) -> list[torch.Tensor]:
        return [parameter.detach() for parameter in self.setup.model.parameters()]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.usefixtures("graphs_on_cpu")
def test_a_repeated_update_is_the_update_itself(run):
    graphed, eager = Trainer(run, True), Trainer(run, False)
    assert graphed.setup.capturable
    assert graphed.train() == eager.train()
    assert all(map(torch.equal, graphed.list_weights(), eager.list_weights()))
    assert not graphed.warnings
    captured = graphed.update.captured
    assert len(captured) == 2
    # the first was eager
    assert [update.graph.replays for update in captured.values()] == [UPDATES / 2 - 1] * 2


WAITS = {
    "boolean index": lambda loss, batch: loss[batch.source[:, 0].gt(3)],
    "nonzero": lambda loss, batch: loss.nonzero().float(),
    "item": lambda loss, batch: loss * loss.sum().item(),
    "float": lambda loss, batch: loss * float(loss.sum()),
    "masked_select": lambda loss, batch: loss.masked_select(loss.gt(0)),
}


def train_waiting(
    wait: Callable[[Tensor, Batch], Tensor], graphed: bool, watches_first: bool = True
) -> tuple[Trainer, list]:
    """Train with a loss that waits for the data, and does not change by it."""

    def make_waiting(loss: Loss) -> Loss:
        def waiting_loss(model: torch.nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
            value, parts = loss(model, batch)
            return value + 0 * wait(torch.ones(4), batch).sum(), parts

        return waiting_loss

    trainer = Trainer("scan-jump-x2/transformer/default", graphed, make_waiting)
    if graphed:
        trainer.update.watches_first = watches_first
    return trainer, trainer.train()


@pytest.mark.parametrize("name", WAITS)
@pytest.mark.usefixtures("graphs_on_cpu")
def test_a_shape_whose_update_waits_for_the_data_stays_without_a_graph(name):
    """It is known after the first update: nothing is captured, and the numbers are those of eager
    updates.
    """
    graphed, rows = train_waiting(WAITS[name], graphed=True)
    assert rows == train_waiting(WAITS[name], graphed=False)[1]
    assert not graphed.update.captured
    assert len(graphed.warnings) == 2
    assert "4x5, 4x5, 4x5 run without a CUDA graph, more slowly: " in graphed.warnings[0]
    assert "depends on the data" in graphed.warnings[0]


@pytest.mark.parametrize("name", WAITS)
@pytest.mark.usefixtures("graphs_on_cpu")
def test_a_shape_whose_capture_fails_stays_without_a_graph(name):
    """Without the check. So `test_a_repeated_update` fails for a loss that waits."""
    graphed, rows = train_waiting(WAITS[name], graphed=True, watches_first=False)
    assert all(math.isfinite(row["loss"]) for row in rows)
    assert not graphed.update.captured
    assert len(graphed.warnings) == 2
    assert "is not permitted in a graph" in graphed.warnings[0]


@pytest.mark.usefixtures("graphs_on_cpu")
def test_the_number_of_graphs_and_their_memory_are_limited(monkeypatch):
    monkeypatch.setattr(graphs, "MAX_GRAPHS", 1)
    limited = Trainer(RUNS[-1], True)
    limited.train()
    assert len(limited.update.captured) == 1 and not limited.warnings
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (10**9, 10**10))
    without_memory = Trainer(RUNS[-1], True)
    without_memory.train()
    assert not without_memory.update.captured and not without_memory.warnings


def test_a_loss_that_selects_words_and_a_model_of_another_library_are_not_captured():
    setup, _ = make_toy_setup("scan-jump/transformer-carma/carma")
    assert setup.model.capturable and not setup.capturable
    assert not RobertaTransformer.capturable
