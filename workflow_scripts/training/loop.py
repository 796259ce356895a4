"""The training loop of all papers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from workflow_scripts.common.progress import Reporter
from workflow_scripts.tasks.base import FinishesSteps, TrainingSetup
from workflow_scripts.tasks.batching import LazySequence, ShuffledBatches
from workflow_scripts.training.accumulation import AddGradients, make_gradients
from workflow_scripts.training.graphs import GraphedUpdates
from workflow_scripts.training.history import LoggedValue
from workflow_scripts.training.machine import compute_in_fp32, start_attempt
from workflow_scripts.training.optimiser import (
    build_optimiser,
    compute_learning_rate,
    set_learning_rate,
)
from workflow_scripts.training.saver import Saver
from workflow_scripts.training.settings import CHOSEN, Training
from workflow_scripts.training.state import StateFolder, TrainingState
from workflow_scripts.training.step_timer import StepTimer
from workflow_scripts.training.stopping import StopRequested, StopSignals
from workflow_scripts.training.update_log import UpdateLog, check_weights

WARM_UP_EPOCHS = 2  # in the first a GPU allocates memory, in the second it captures graphs


def train(
    setup: TrainingSetup,
    settings: Training,
    seed: int,
    device: torch.device,
    folder: StateFolder,
    reporter: Reporter,
    save_every_seconds: float,
) -> TrainingState:
    """Train from the saved state, or from the start, to `max_steps`, and return the final state.

    `settings` count steps (`Training.count_steps`), not epochs. Update k, from 1, uses the k-th
    batch of the epochs in a row; each epoch has another order. The state is saved every
    `save_every_seconds`, or less often if saving takes long, and at the end. At the end the model
    has the last weights; for the best see `folder.locate_best`. Raises StopRequested after SIGTERM
    or SIGINT, also in the last step, and UserError for a loss, a gradient or a weight that is not
    finite. Both leave a state to resume from.
    """
    model = setup.model
    graphed = device.type == "cuda" and setup.capturable
    optimiser = build_optimiser(model, settings, capturable=graphed)
    state = folder.load(model, optimiser)
    reporter.resume(state.step)
    attempt = start_attempt(device, state.step)
    state.attempts.append(attempt)
    update = make_update(setup, settings, optimiser, device, graphed, reporter.print_line)
    order = EpochOrder(setup.batches, seed)
    log = UpdateLog(state)
    model.train()
    with StopSignals() as signals:
        timer = StepTimer(state, WARM_UP_EPOCHS * len(setup.batches))
        saver = Saver(folder, state, attempt, save_every_seconds)
        while state.step < settings.n_updates:
            if signals.first and saver.is_saved():  # by this process, at this step
                break
            state.step += 1
            is_last = state.step == settings.n_updates
            rate = compute_learning_rate(settings, state.step)
            set_learning_rate(optimiser, rate)
            log.add(update(order.find_batch(state.step)))

            if is_last or state.step % settings.log_every == 0:
                log.collect()
                timer.finish_interval()
                reporter.update_values(log.log_means(rate))
            if is_last or is_validation_due(settings, state.step):
                log.collect()
                check_weights(model, state.step)
                with enter_stage("validate", reporter, timer):
                    reporter.update_values(validate(setup, settings, folder, state))
            if is_last or signals.first or saver.is_due():
                log.collect()
                check_weights(model, state.step)
                with enter_stage("save", reporter, timer):
                    saver.save(model, optimiser)
            reporter.advance()
        if not saver.is_saved():  # the state that was loaded is at its last step
            saver.update_attempt()
    # After the last step, too: the signal must also end a search that this training is a part of.
    # And Snakemake deletes the results of a job that ends after its time limit, so the state must
    # stay.
    if signals.first:
        folder.log(f"stopped by signal {signals.first} at step {state.step}")
        raise StopRequested(signals.first, state.step)
    return state


@contextmanager
def enter_stage(name: str, reporter: Reporter, timer: StepTimer) -> Iterator[None]:
    """Show another stage than training. Its time is no part of that of the updates."""
    reporter.set_stage(name)
    with timer.pause():
        yield
    reporter.set_stage("train")


class EpochOrder:
    """The batches in the order of the updates, which seed and epoch alone decide.

    Batches that are a sequence keep their examples; only their order is another in each epoch.
    `ShuffledBatches` also have other examples in each epoch.
    """

    def __init__(self, batches: Sequence[Any] | ShuffledBatches, seed: int):
        self.batches = batches
        self.seed = seed
        self.epoch = -1
        self.order: Sequence[Any] = []

    def find_batch(self, step: int) -> Any:
        """Return the batch of update `step`, from 1."""
        epoch, position = divmod(step - 1, len(self.batches))
        if epoch != self.epoch:
            self.epoch = epoch
            self.order = self._draw_epoch(np.random.default_rng([self.seed, epoch]))
        return self.order[position]

    def _draw_epoch(self, rng: np.random.Generator) -> Sequence[Any]:
        if isinstance(self.batches, ShuffledBatches):
            return self.batches.draw_epoch(rng)
        numbers = rng.permutation(len(self.batches)).tolist()
        return LazySequence(numbers, self.batches.__getitem__)


def is_validation_due(settings: Training, step: int) -> bool:
    """Return whether the settings have a validation after a step."""
    return settings.selection is not None and step % settings.validation_interval == 0


def make_update(
    setup: TrainingSetup,
    settings: Training,
    optimiser: torch.optim.Optimizer,
    device: torch.device,
    graphed: bool,
    warn: Callable[[str], None],
) -> Callable[[Any], dict[str, Tensor]]:
    """Return update(batch) -> logged values, in the precision of the settings.

    With `graphed` the updates are CUDA graphs.
    """
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=settings.precision == "bf16")
    add_gradients = make_gradients(setup, settings.accumulate, autocast)
    update = partial(update_weights, setup, optimiser, settings.clip_norm, add_gradients)
    if not graphed:
        return update
    # Compiled layers cannot be watched.
    watches_first = not settings.is_compiled()
    return GraphedUpdates(update, optimiser.zero_grad, warn, watches_first)


def update_weights(
    setup: TrainingSetup,
    optimiser: torch.optim.Optimizer,
    clip_norm: float,
    add_gradients: AddGradients,
    batch: Any,
) -> dict[str, Tensor]:
    """Make one optimiser step. Return loss, parts and, if clipped, gradient norm.

    They are tensors, to not wait for a GPU.
    """
    loss, parts = add_gradients(batch)
    values = {"loss": loss, **parts}
    if clip_norm:
        values["gradient_norm"] = nn.utils.clip_grad_norm_(setup.model.parameters(), clip_norm)
    optimiser.step()
    optimiser.zero_grad()
    if isinstance(setup.model, FinishesSteps):
        setup.model.finish_step()
    return {name: torch.as_tensor(value).detach() for name, value in values.items()}


def stop_compiling(settings: Training) -> AbstractContextManager[Any]:
    """Return a context in which compiled layers run as they are written.

    Decoding has too many shapes to compile.
    """
    if settings.is_compiled():
        return torch.compiler.set_stance("force_eager")
    return nullcontext()


def validate(
    setup: TrainingSetup, settings: Training, folder: StateFolder, state: TrainingState
) -> dict[str, float]:
    """Validate, keep the weights that are the best on a split, and return the metric.

    The values are added to the history. Of equal values without a tie-break the latest wins, as in
    fairseq: early on, the metric may be 0 for long. With validation none the present weights are
    kept.
    """
    if not settings.selection:
        folder.replace_best(state, setup.model, CHOSEN, None)
        return {}
    assert setup.validate is not None, "a validation needs a split"
    metric = settings.selection.metric
    setup.model.eval()
    with torch.no_grad(), compute_in_fp32(), stop_compiling(settings):
        values = setup.validate(setup.model)
    setup.model.train()
    for name, value in values.items():
        state.history.append(LoggedValue(state.step, f"valid_{name}", value))
    prefixes = {CHOSEN: ""}  # of the values by which each of the kept weights is chosen
    for split in settings.kept_splits:
        prefixes[split] = f"{split}_"
    for name, prefix in prefixes.items():
        value = values[prefix + metric]
        tie = 0.0
        if setup.tie_break_metric:
            tie = values[prefix + setup.tie_break_metric]
        best = state.best.get(name)
        if best is None or (value, -tie) >= (best.value, -best.tie):
            folder.replace_best(state, setup.model, name, value, tie)
    return {metric: values[metric]}
