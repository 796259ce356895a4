"""The loop against a loop written by hand, and the rules for logging, for the best weights and for
bad losses.
"""

import os
import signal
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.progress import Reporter
from workflow_scripts.tasks.base import TrainingSetup
from workflow_scripts.tasks.batching import ShuffledBatches
from workflow_scripts.tasks.seq2seq.settings import Seq2SeqTraining
from workflow_scripts.training.loop import train
from workflow_scripts.training.optimiser import build_optimiser, compute_learning_rate
from workflow_scripts.training.saver import MAX_SAVE_SHARE
from workflow_scripts.training.settings import CHOSEN, Training
from workflow_scripts.training.state import StateFolder, TrainingState
from workflow_scripts.training.stopping import StopRequested

CPU = torch.device("cpu")
SEED = 11
BATCHES = [
    torch.randn(8, 3, generator=torch.Generator().manual_seed(number)) for number in range(5)
]
SETTINGS = Seq2SeqTraining(
    max_steps=12,
    batch_tokens=1,
    learning_rate=0.1,
    warmup_steps=4,
    betas=(0.9, 0.98),
    adam_epsilon=1e-8,
    weight_decay=0.1,
    clip_norm=0.5,
    validate_every=5,
    log_every=4,
    validation={"split": "valid", "metric": "score"},
    torch_threads=1,
)


class Line(nn.Module):
    """y = w x, which counts the calls of finish_step, and keeps the weight that the last one saw."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(3))
        self.calls = 0

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs @ self.weight

    def finish_step(self) -> None:
        self.calls += 1
        self.seen = self.weight.detach().clone()


def squared_error(
    model: nn.Module, batch: torch.Tensor
) -> tuple[torch.Tensor, dict[str, torch.Tensor | float]]:
    loss = (model(batch) - batch.sum(-1)).square().mean()
    return loss, {"half": loss / 2, "constant": 1.5}


def score_nothing(_model: nn.Module) -> dict[str, float]:
    return {"score": 0.0}


def stopped_at(step: int) -> Callable:
    """The same, but with a SIGTERM in one step."""
    calls = iter(range(1, 100))

    def objective(model: nn.Module, batch: torch.Tensor) -> tuple[torch.Tensor, dict]:
        if next(calls) == step:
            os.kill(os.getpid(), signal.SIGTERM)
        return squared_error(model, batch)

    return objective


def run(
    setup: TrainingSetup, folder: Path, save_every: float = 60, settings: Training = SETTINGS
) -> tuple[TrainingState, StateFolder]:
    """Train in `folder`; returns the final state and where it is kept."""
    torch.set_num_threads(1)
    folder.mkdir(exist_ok=True)
    store = StateFolder(folder, {})
    with Reporter("run", settings.max_steps, "none") as reporter:
        return train(setup, settings, SEED, CPU, store, reporter, save_every), store


@pytest.mark.parametrize(("fraction", "steps"), [(0.0, 0), (0.1, 1), (0.25, 3), (0.5, 6)])
def test_a_warm_up_may_be_a_part_of_the_run(fraction, steps):
    parts, whole = (
        SETTINGS.model_copy(update=change)
        for change in ({"warmup_fraction": fraction}, {"warmup_steps": steps})
    )
    assert [compute_learning_rate(parts, step) for step in range(1, 13)] == [
        compute_learning_rate(whole, step) for step in range(1, 13)
    ]


def chosen(state: TrainingState, name: str = CHOSEN) -> tuple[int, float | None]:
    """(step, value) of the best weights."""
    return state.best[name].step, state.best[name].value


def by_name(state: TrainingState) -> dict[str, list[tuple[int, float]]]:
    """The history as name -> (step, value)."""
    return {
        name: [(s, v) for s, n, v in state.history if n == name] for _, name, _ in state.history
    }


def test_it_makes_the_updates_of_a_loop_written_by_hand(tmp_path):
    model = Line()
    state, _ = run(TrainingSetup(model, squared_error, BATCHES, score_nothing), tmp_path)

    weight = Line().weight.detach().clone()
    first, second, losses, norms = torch.zeros(3), torch.zeros(3), [], []
    order = np.concatenate(
        [np.random.default_rng([SEED, epoch]).permutation(5) for epoch in range(3)]
    )
    for step in range(1, 13):
        x = BATCHES[order[step - 1]]
        error = x @ weight - x.sum(-1)
        gradient = 2 * (x * error[:, None]).mean(0)
        losses.append(error.square().mean().item())
        norms.append(gradient.norm().item())
        gradient *= min(1.0, 0.5 / norms[-1])
        rate = 0.1 * min(step / 4, (4 / step) ** 0.5)
        first, second = 0.9 * first + 0.1 * gradient, 0.98 * second + 0.02 * gradient**2
        weight = weight * (1 - rate * 0.1)
        weight = weight - rate * (first / (1 - 0.9**step)) / (
            (second / (1 - 0.98**step)).sqrt() + 1e-8
        )

    torch.testing.assert_close(model.weight.detach(), weight, rtol=1e-4, atol=1e-6)
    means = {
        n: [statistics.fmean(values[i : i + 4]) for i in (0, 4, 8)]
        for n, values in (("l", losses), ("n", norms))
    }
    logged = by_name(state)
    assert [value for _, value in logged["loss"]] == pytest.approx(means["l"], rel=1e-4)
    assert [value for _, value in logged["half"]] == pytest.approx(
        [value / 2 for value in means["l"]], rel=1e-4
    )
    assert [value for _, value in logged["gradient_norm"]] == pytest.approx(means["n"], rel=1e-4)
    assert logged["constant"] == [(4, 1.5), (8, 1.5), (12, 1.5)]
    assert [step for step, _ in logged["valid_score"]] == [5, 10, 12]
    assert model.calls == 12
    assert torch.equal(model.seen, model.weight), "finish_step comes after the optimiser's step"


def test_a_part_that_only_some_steps_have_is_averaged_over_those(tmp_path):
    calls = iter(range(100))

    def objective(model: nn.Module, batch: torch.Tensor) -> tuple[torch.Tensor, dict]:
        number = next(calls)
        return squared_error(model, batch)[0], {
            "odd": torch.tensor(float(number))
        } if number % 2 else {}

    state, _ = run(TrainingSetup(Line(), objective, BATCHES, score_nothing), tmp_path)
    assert by_name(state)["odd"] == [(4, 2.0), (8, 6.0), (12, 10.0)]


@pytest.mark.parametrize(
    ("values", "best"),
    [([1, 3, 2], 10), ([1, 1, 1], 12), ([2, 1, 2], 12), ([3, 2, 1], 5), ([0, 0, -1], 10)],
)
def test_the_best_weights_are_those_of_the_latest_highest_validation(tmp_path, values, best):
    scores, seen = iter(values), {}
    model = Line()

    def validate(validated: nn.Module) -> dict[str, float]:
        assert not validated.training and not torch.is_grad_enabled()
        seen[(5, 10, 12)[len(seen)]] = validated.weight.detach().clone()
        return {"score": float(next(scores)), "other": 7.0}

    state, store = run(TrainingSetup(model, squared_error, BATCHES, validate), tmp_path)
    assert chosen(state) == (best, max(values))
    assert torch.equal(load_file(store.locate_best(CHOSEN, best))["weight"], seen[best])
    assert model.training


@pytest.mark.parametrize(
    ("values", "losses", "best"),
    [
        ([1, 1, 1], [3, 2, 4], 10),
        ([1, 1, 1], [2, 2, 2], 12),
        ([1, 2, 1], [1, 9, 0], 10),
        ([2, 1, 2], [1, 0, 2], 5),
    ],
)
def test_of_equal_validations_the_lowest_loss_is_the_best(tmp_path, values, losses, best):
    found = iter(zip(values, losses, strict=True))

    def validate(_model: nn.Module) -> dict[str, float]:
        return dict(zip(("score", "loss"), map(float, next(found)), strict=True))

    state, store = run(
        TrainingSetup(Line(), squared_error, BATCHES, validate, tie_break_metric="loss"), tmp_path
    )
    assert chosen(state) == (best, max(values))
    assert store.locate_best(CHOSEN, best).exists()
    resumed = Line()
    assert store.load(resumed, build_optimiser(resumed, SETTINGS)).best == state.best


@pytest.mark.parametrize(
    ("values", "others", "best", "other_best"),
    [([1, 3, 2], [2, 1, 0], 10, 5), ([3, 2, 1], [1, 1, 0], 5, 10), ([0, 0, 1], [5, 5, 5], 12, 12)],
)
def test_the_best_weights_on_a_further_split_are_kept_as_those_of_the_first(
    tmp_path, values, others, best, other_best
):
    """Through a stop in the middle, too: the state has what a resumed run needs, and no more."""
    found, seen = iter(zip(values, others, strict=True)), {}
    settings = SETTINGS.model_copy(update={"also_keep": ["held_out", "last"]})

    def validate(validated: nn.Module) -> dict[str, float]:
        seen[(5, 10, 12)[len(seen)]] = validated.weight.detach().clone()
        return dict(zip(("score", "held_out_score"), map(float, next(found)), strict=True))

    with pytest.raises(StopRequested):
        run(TrainingSetup(Line(), stopped_at(8), BATCHES, validate), tmp_path, settings=settings)
    model = Line()
    state, store = run(
        TrainingSetup(model, squared_error, BATCHES, validate), tmp_path, settings=settings
    )
    assert state.best.keys() == {CHOSEN, "held_out"} and chosen(state) == (best, max(values))
    assert chosen(state, "held_out") == (other_best, max(others))
    assert torch.equal(load_file(store.locate_best(CHOSEN, best))["weight"], seen[best])
    assert torch.equal(
        load_file(store.locate_best("held_out", other_best))["weight"], seen[other_best]
    )
    assert by_name(state)["valid_held_out_score"] == list(zip((5, 10, 12), others, strict=True))
    assert torch.equal(model.weight.detach(), seen[12])
    store.remove()
    assert not tmp_path.exists()


def test_neither_saving_often_nor_stopping_within_an_interval_changes_anything(tmp_path):
    whole = Line()
    expected, _ = run(
        TrainingSetup(whole, squared_error, BATCHES, score_nothing), tmp_path / "whole"
    )
    with pytest.raises(StopRequested) as stop:
        run(
            TrainingSetup(Line(), stopped_at(6), BATCHES, score_nothing),
            tmp_path / "stopped",
            save_every=0,
        )
    assert (stop.value.number, stop.value.step) == (signal.SIGTERM, 6)
    resumed = Line()
    found, _ = run(
        TrainingSetup(resumed, squared_error, BATCHES, score_nothing),
        tmp_path / "stopped",
        save_every=0,
    )
    assert resumed.weight.equal(whole.weight)
    assert found.history == expected.history and found.resumed == 1
    assert len(found.interval_seconds) == len(expected.interval_seconds) == 3


def test_examples_are_shuffled_in_each_epoch_by_seed_and_epoch_alone(tmp_path):
    """An epoch of 10 examples is three updates, of 4, 4 and 2."""
    examples = torch.randn(10, 3, generator=torch.Generator().manual_seed(1))
    made: list[list[int]] = []

    def make(rows: np.ndarray) -> torch.Tensor:
        made.append(rows.tolist())
        return examples[torch.from_numpy(rows)]

    def make_setup(objective: Callable = squared_error, model: Line | None = None) -> TrainingSetup:
        return TrainingSetup(
            model or Line(), objective, ShuffledBatches(10, 4, make), score_nothing
        )

    whole = Line()
    expected, _ = run(make_setup(model=whole), tmp_path / "whole")
    orders = [np.random.default_rng([SEED, epoch]).permutation(10) for epoch in range(4)]
    assert made == [order[first : first + 4].tolist() for order in orders for first in (0, 4, 8)]

    # A run that is stopped within an epoch continues in its middle.
    made.clear()
    with pytest.raises(StopRequested):
        run(make_setup(stopped_at(8)), tmp_path / "stopped", save_every=0)
    resumed = Line()
    found, _ = run(make_setup(model=resumed), tmp_path / "stopped", save_every=0)
    assert made == [order[first : first + 4].tolist() for order in orders for first in (0, 4, 8)]
    assert found.history == expected.history and resumed.weight.equal(whole.weight)


def test_without_validation_the_last_weights_are_kept_also_by_a_run_that_was_stopped(tmp_path):
    settings = SETTINGS.model_copy(update={"validation": "none"})
    whole = Line()
    expected, store = run(
        TrainingSetup(whole, squared_error, BATCHES, score_nothing),
        tmp_path / "whole",
        settings=settings,
    )
    with pytest.raises(StopRequested):
        run(
            TrainingSetup(Line(), stopped_at(6), BATCHES, score_nothing),
            tmp_path / "stopped",
            settings=settings,
        )
    found, other = run(
        TrainingSetup(Line(), squared_error, BATCHES, score_nothing),
        tmp_path / "stopped",
        settings=settings,
    )
    assert (chosen(found), found.history) == ((12, None), expected.history)
    assert torch.equal(load_file(store.locate_best(CHOSEN, 12))["weight"], whole.weight)
    assert other.locate_best(CHOSEN, 12).read_bytes() == store.locate_best(CHOSEN, 12).read_bytes()


def test_a_run_killed_between_its_last_step_and_its_results_has_nothing_left_to_do(tmp_path):
    expected, store = run(TrainingSetup(Line(), squared_error, BATCHES, score_nothing), tmp_path)
    best = store.locate_best(CHOSEN, 12).read_bytes()
    model = Line()
    found, store = run(TrainingSetup(model, squared_error, BATCHES, score_nothing), tmp_path)
    assert (found.step, found.history, found.best) == (12, expected.history, expected.best)
    assert model.calls == 0 and store.locate_best(CHOSEN, 12).read_bytes() == best


@pytest.mark.parametrize("when", ["step", "validation", "save"])
def test_a_signal_in_the_last_step_stops_after_it_with_nothing_left_to_train(tmp_path, when):
    """It is not forgotten, whatever is being done when it comes: the next call only returns what is
    there.
    """
    model, store = Line(), Saves(tmp_path, {})

    def ask(now: str) -> None:
        if now == when and model.calls == (11 if now == "step" else 12):
            os.kill(os.getpid(), signal.SIGTERM)

    def objective(model: nn.Module, batch: torch.Tensor) -> tuple[torch.Tensor, dict]:
        ask("step")
        return squared_error(model, batch)

    def validate(_model: nn.Module) -> dict[str, float]:
        ask("validation")
        return {"score": 0.0}

    store.during = lambda: ask("save")
    setup = TrainingSetup(model, objective, BATCHES, validate)
    with Reporter("run", 12, "none") as reporter, pytest.raises(StopRequested) as stop:
        train(setup, SETTINGS, SEED, CPU, store, reporter, 60)
    assert (stop.value.number, stop.value.step) == (signal.SIGTERM, 12)
    assert (
        (tmp_path / "log.txt")
        .read_text()
        .splitlines()[-1]
        .endswith("stopped by signal 15 at step 12")
    )
    state, _ = run(TrainingSetup(Line(), squared_error, BATCHES, score_nothing), tmp_path)
    assert (state.step, state.resumed, chosen(state)[0]) == (12, 1, 12)
    assert [(attempt.first_step, attempt.last_step) for attempt in state.attempts] == [
        (1, 12),
        (13, 12),
    ]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_names_its_step_and_saves_nothing_after_it(tmp_path, bad):
    calls = iter(range(1, 100))

    def objective(model: nn.Module, batch: torch.Tensor) -> tuple[torch.Tensor, dict]:
        loss, parts = squared_error(model, batch)
        return loss * (bad if next(calls) == 7 else 1), parts

    with pytest.raises(UserError, match=rf"loss is {bad} at step 7 \(before it: [\d., ]+\)"):
        run(TrainingSetup(Line(), objective, BATCHES, score_nothing), tmp_path, save_every=0)
    saved_steps = [
        int(path.name.removeprefix("step-"))
        for path in StateFolder(tmp_path, {}).list_saved_states()
    ]
    assert saved_steps and max(saved_steps) < 7


@pytest.mark.parametrize(
    ("clip_norm", "said"),
    [
        (0.5, r"the norm of the gradients is nan at step 12 \(before it: [\d., e-]+\)"),
        (0.0, "the weight weight is not finite after step 12"),
    ],
)
def test_a_gradient_that_is_not_finite_ends_the_training_even_in_its_last_step(
    clip_norm, said, tmp_path
):
    calls = iter(range(1, 100))

    def objective(model: nn.Module, batch: torch.Tensor) -> tuple[torch.Tensor, dict]:
        loss, parts = squared_error(model, batch)
        if next(calls) == 12:
            loss = loss + (0 * model.weight).sqrt().sum()  # 0, with the gradient 0 * inf
        return loss, parts

    settings = SETTINGS.model_copy(update={"clip_norm": clip_norm})
    setup = TrainingSetup(Line(), objective, BATCHES, score_nothing)
    with pytest.raises(UserError, match=said):
        run(setup, tmp_path, settings=settings)
    saved_steps = [path.name for path in StateFolder(tmp_path, {}).list_saved_states()]
    assert "step-12" not in saved_steps


class Saves(StateFolder):
    """Remembers the steps of its saves; each takes `seconds`, and `during` happens meanwhile."""

    seconds, steps = 0.0, ()

    def during(self) -> None:
        time.sleep(self.seconds)

    def save(self, state: TrainingState, *others) -> None:
        super().save(state, *others)
        self.steps = (*self.steps, state.step)
        self.during()


def save_in(store: Saves, save_every: float, steps: int) -> None:
    settings = SETTINGS.model_copy(update={"max_steps": steps, "validate_every": 1000})
    setup = TrainingSetup(Line(), squared_error, BATCHES, score_nothing)
    with Reporter("run", steps, "none") as reporter:
        train(setup, settings, SEED, CPU, store, reporter, save_every)


def test_the_longer_a_save_takes_the_more_seldom_it_is(tmp_path):
    """Of states that take half a second one is saved at the beginning, and the next ten seconds
    later.
    """
    slow, quick = (Saves(tmp_path / name, {}) for name in ("slow", "quick"))
    for store in (slow, quick):
        store.folder.mkdir()
    slow.seconds = 0.5
    began = time.monotonic()
    save_in(slow, save_every=0, steps=40)
    took = time.monotonic() - began - 2 * slow.seconds
    assert slow.steps == (1, 40) and took < 0.5 / MAX_SAVE_SHARE
    # What is asked for is the least that lies between two.
    began = time.monotonic()
    save_in(quick, save_every=0.05, steps=400)
    took = time.monotonic() - began
    assert 2 <= len(quick.steps) <= took / 0.05 + 1


def test_a_signal_during_a_save_ends_with_that_state(tmp_path):
    """A state of 38 GB is not saved twice before the time limit."""
    store = Saves(tmp_path, {})
    store.during = lambda: os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(StopRequested) as stop:
        save_in(store, save_every=0, steps=40)
    assert (stop.value.step, store.steps) == (1, (1,))
    assert store.list_saved_states()[0].name == "step-1"


def test_validations_between_two_saves_cost_no_state_and_lose_no_best_weights(tmp_path):
    """The state is saved by time: here at the stop and at the end alone, after several validations."""
    settings = SETTINGS.model_copy(update={"validate_every": 2})
    scores = {2: 1.0, 4: 5.0, 6: 2.0, 8: 3.0, 10: 4.0, 12: 0.0}
    seen = {}
    store = Saves(tmp_path, {})

    def train_until(stop: int | None) -> TrainingState:
        model = Line()
        first = (
            store.load(Line(), build_optimiser(Line(), settings)).step
            if store.list_saved_states()
            else 0
        )
        steps = iter(sorted(step for step in scores if step > first))

        def validate(validated: nn.Module) -> dict[str, float]:
            step = next(steps)
            seen[step] = validated.weight.detach().clone()
            return {"score": scores[step]}

        objective = stopped_at(stop - first) if stop else squared_error
        with Reporter("run", 12, "none") as reporter:
            return train(
                TrainingSetup(model, objective, BATCHES, validate),
                settings,
                SEED,
                CPU,
                store,
                reporter,
                60,
            )

    with pytest.raises(StopRequested):
        train_until(7)
    assert store.steps == (7,)
    assert torch.equal(load_file(store.locate_best(CHOSEN, 4))["weight"], seen[4])
    state = train_until(None)
    assert store.steps == (7, 12)
    assert chosen(state) == (4, 5.0)
    assert torch.equal(load_file(store.locate_best(CHOSEN, 4))["weight"], seen[4])


def test_step_times_are_steady_after_the_first_epochs_of_a_process(tmp_path, monkeypatch):
    """Epochs have 5 batches, intervals 4 updates. An update takes 10 s in the first two epochs,
    then 1 s.
    """
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    made = 0

    def objective(model: nn.Module, batch: torch.Tensor) -> tuple[torch.Tensor, dict]:
        nonlocal now, made
        made += 1
        now += 10.0 if made <= 10 else 1.0
        return squared_error(model, batch)

    def validate(_model: nn.Module) -> dict[str, float]:
        nonlocal now
        now += 1000.0
        return {"score": 0.0}

    settings = SETTINGS.model_copy(update={"max_steps": 24})
    state, _ = run(TrainingSetup(Line(), objective, BATCHES, validate), tmp_path, settings=settings)
    assert state.interval_seconds == pytest.approx([10, 10, 5.5, 1, 1, 1])
    assert state.steady_seconds == pytest.approx([1, 1, 1])
