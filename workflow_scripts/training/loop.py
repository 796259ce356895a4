"""The training loop of all papers."""

import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.progress import Reporter
from workflow_scripts.common.system import measure_cpu_seconds
from workflow_scripts.tasks.base import TrainingSetup
from workflow_scripts.tasks.batching import LazySequence, ShuffledBatches
from workflow_scripts.training.graphs import GraphedUpdates
from workflow_scripts.training.history import LoggedValue
from workflow_scripts.training.machine import (
    compute_in_fp32,
    count_gpu_processes,
    describe_attempt,
    measure_usage,
)
from workflow_scripts.training.settings import CHOSEN, Training
from workflow_scripts.training.state import StateFolder, TrainingState

MAX_SAVE_SHARE = 1 / 20  # of the time: the state of a large model is saved less often
WARM_UP_EPOCHS = 2  # in the first a GPU allocates memory, in the second it captures graphs


class StopRequested(Exception):  # noqa: N818
    """Raised when the state is saved after signal `number`. `step` is the last finished one."""

    def __init__(self, number: int, step: int):
        super().__init__(number, step)
        self.number = number
        self.step = step


class StopSignals:
    """Context manager in which SIGTERM and SIGINT do not end the process. Remembers the first."""

    def __init__(self) -> None:
        self.first: int | None = None

    def __enter__(self) -> "StopSignals":
        self.handlers = {}
        for number in (signal.SIGTERM, signal.SIGINT):
            self.handlers[number] = signal.signal(number, self._remember)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def _remember(self, number: int, _frame: object) -> None:
        if self.first is None:
            self.first = number


class StepTimer:
    """Measures seconds per update of each logging interval.

    The time of validating and saving is not part of it. An interval is steady if it begins after
    `warm_up` updates of this process.
    """

    def __init__(self, state: TrainingState, warm_up: int):
        self.state = state
        self.first_steady_step = state.step + warm_up
        self.interval_step = state.step
        self.interval_start = time.monotonic()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Leave the time of a block out."""
        paused_at = time.monotonic()
        yield
        self.interval_start += time.monotonic() - paused_at

    def finish_interval(self) -> None:
        """Append the seconds per update since the last call to the state."""
        now = time.monotonic()
        seconds_per_step = (now - self.interval_start) / (self.state.step - self.interval_step)
        self.state.interval_seconds.append(seconds_per_step)
        if self.interval_step >= self.first_steady_step:
            self.state.steady_seconds.append(seconds_per_step)
        self.interval_step = self.state.step
        self.interval_start = now


class Saver:
    """Saves the state every `seconds`, or less often.

    Saving takes no more than MAX_SAVE_SHARE of the time.
    """

    def __init__(
        self, folder: StateFolder, state: TrainingState, attempt: dict[str, Any], seconds: float
    ):
        self.folder = folder
        self.state = state
        self.attempt = attempt
        self.min_pause = seconds
        self.pause = seconds
        self.started = time.monotonic()
        self.saved_at = self.started
        self.earlier_seconds = state.seconds
        self.cpu_start = measure_cpu_seconds()

    def is_due(self) -> bool:
        """Whether the last save was long enough ago."""
        return time.monotonic() - self.saved_at >= self.pause

    def describe_attempt(self) -> None:
        """Bring the record of this process up to date: its last step, seconds and memory."""
        seconds = time.monotonic() - self.started
        self.state.seconds = self.earlier_seconds + seconds
        self.attempt |= {
            "last_step": self.state.step,
            "seconds": seconds,
            **measure_usage(self.cpu_start),
        }
        if "gpu_processes" not in self.attempt:
            self.attempt["gpu_processes"] = count_gpu_processes()

    def save(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        """Save the state."""
        began = time.monotonic()
        self.describe_attempt()
        self.folder.save(self.state, model, optimiser)
        self.saved_at = time.monotonic()
        self.pause = max(self.min_pause, (self.saved_at - began) / MAX_SAVE_SHARE)


class EpochOrder:
    """The batches in the order of the updates: that of an epoch depends on seed and epoch alone.

    Batches that are a sequence stay as they are, and are permuted; shuffled ones have other
    examples in each epoch.
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


def build_optimiser(
    model: nn.Module, settings: Training, capturable: bool = False
) -> torch.optim.AdamW:
    """Return AdamW with decoupled weight decay on all parameters, as fairseq's `adam`.

    capturable: whether its step can be part of a CUDA graph, which reads the learning rate from a
    tensor.
    """
    parameters = list(model.parameters())
    rate: float | Tensor = settings.learning_rate
    if capturable:
        rate = torch.tensor(settings.learning_rate, device=parameters[0].device)
    return torch.optim.AdamW(
        parameters,
        lr=rate,
        betas=settings.betas,
        eps=settings.adam_epsilon,
        weight_decay=settings.weight_decay,
        fused=True,
        capturable=capturable,
    )


def set_learning_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of the next update.

    That is in place if it is a tensor, which a CUDA graph reads.
    """
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def compute_learning_rate(settings: Training, step: int) -> float:
    """Return the learning rate of update `step`, from 1, so that resuming needs no scheduler state.

    It rises linearly to the peak during the warm-up. Then `inverse_square_root` is peak *
    sqrt(warm-up / step), and `linear` falls to 0 after `max_steps`, `constant_then_linear` only
    during the last `decay_steps`. As in Hugging Face's schedule, `linear` has the rate 0 at the
    first update of a warm-up; the others reach the peak at its last.
    """
    peak = settings.learning_rate
    warmup = settings.warmup
    max_steps = settings.max_steps
    if settings.schedule == "linear":
        done = step - 1
        if done < warmup:
            return peak * done / warmup
        return peak * (max_steps - done) / max(max_steps - warmup, 1)
    warmup = max(warmup, 1)
    if settings.schedule == "inverse_square_root":
        return peak * min(step / warmup, (warmup / step) ** 0.5)
    rate = peak * min(step / warmup, 1.0)
    if settings.schedule == "constant_then_linear":
        rate *= min((max_steps - step + 1) / settings.decay_steps, 1.0)
    return rate


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
    batch of the epochs' orders, one epoch after the other. The state is saved every
    `save_every_seconds`, or less often if saving takes long, and at the end. At the end the model
    has the last weights; for the best see `folder.locate_best`. Raises StopRequested after SIGTERM
    or SIGINT, also in the last step, and UserError for a non-finite loss. Both leave a state to
    resume from.
    """
    model = setup.model
    graphed = device.type == "cuda" and setup.capturable
    optimiser = build_optimiser(model, settings, capturable=graphed)
    state = folder.load(model, optimiser)
    reporter.resume(state.step)
    attempt = describe_attempt(device, state.step)
    state.attempts.append(attempt)
    update = make_update(setup, settings, optimiser, device, graphed, reporter.print_line)
    rows: list[dict[str, Tensor]] = []  # values of the steps since `collect_logged_values`
    order = EpochOrder(setup.batches, seed)
    model.train()
    stop: int | None = None
    with StopSignals() as signals:
        timer = StepTimer(state, WARM_UP_EPOCHS * len(setup.batches))
        saver = Saver(folder, state, attempt, save_every_seconds)
        while state.step < settings.max_steps and not stop:
            state.step += 1
            rate = compute_learning_rate(settings, state.step)
            set_learning_rate(optimiser, rate)
            rows.append(update(order.find_batch(state.step)))

            is_last = state.step == settings.max_steps
            if is_last or state.step % settings.log_every == 0:
                collect_logged_values(rows, state)
                timer.finish_interval()
                reporter.update_values(log_means(state, rate))
            if is_last or is_validation_due(settings, state.step):
                collect_logged_values(rows, state)
                reporter.set_stage("validate")
                with timer.pause():
                    reporter.update_values(validate(setup, settings, folder, state))
                reporter.set_stage("train")
            stop = signals.first
            if is_last or stop or saver.is_due():
                collect_logged_values(rows, state)
                reporter.set_stage("save")
                with timer.pause():
                    saver.save(model, optimiser)
                reporter.set_stage("train")
                stop = signals.first  # it may have arrived meanwhile
            reporter.advance()
        if "last_step" not in attempt:  # no step was left to make
            saver.describe_attempt()
    # After the last step, too: the signal must also end a search that this training is a part of.
    # And Snakemake deletes the results of a job that ends after its time limit, so the state must
    # stay.
    if signals.first:
        folder.log(f"stopped by signal {signals.first} at step {state.step}")
        raise StopRequested(signals.first, state.step)
    return state


def is_validation_due(settings: Training, step: int) -> bool:
    """Return whether the settings have a validation after a step."""
    return settings.selection is not None and step % settings.validate_every == 0


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
    update = partial(update_weights, setup, optimiser, settings.clip_norm, autocast)
    if not graphed:
        return update
    return GraphedUpdates(update, optimiser.zero_grad, warn, checked=not settings.is_compiled())


def update_weights(
    setup: TrainingSetup,
    optimiser: torch.optim.Optimizer,
    clip_norm: float,
    autocast: torch.autocast,
    batch: Any,
) -> dict[str, Tensor]:
    """Make one optimiser step. Return loss, parts and, if clipped, gradient norm.

    They are tensors, to not wait for a GPU.
    """
    with autocast:
        loss, parts = setup.loss(setup.model, batch)
    loss.backward()
    values = {"loss": loss, **parts}
    if clip_norm:
        values["gradient_norm"] = nn.utils.clip_grad_norm_(setup.model.parameters(), clip_norm)
    optimiser.step()
    optimiser.zero_grad()
    if hasattr(setup.model, "finish_step"):
        setup.model.finish_step()
    return {name: torch.as_tensor(value).detach() for name, value in values.items()}


def collect_logged_values(rows: list[dict[str, Tensor]], state: TrainingState) -> None:
    """Move the values of `rows`, one per step, to `state.pending` as floats.

    Raises UserError for a non-finite loss.
    """
    names: dict[str, None] = {}
    for row in rows:
        names |= dict.fromkeys(row)
    for name in names:
        values = torch.stack([row[name] for row in rows if name in row]).tolist()
        state.pending.setdefault(name, []).extend(values)
    rows.clear()
    check_losses(state.pending.get("loss", []), state.step)


def check_losses(losses: list[float], last_step: int) -> None:
    """Raise UserError for a loss that is not finite. `losses` are those up to `last_step`."""
    for index, loss in enumerate(losses):
        if math.isfinite(loss):
            continue
        step = last_step - len(losses) + index + 1
        before = ", ".join(f"{value:.4g}" for value in losses[max(index - 3, 0) : index])
        raise UserError(
            f"the loss is {loss} at step {step} "
            f"(losses before it: {before or 'none in this interval'}); "
            "the state saved before it is kept: lower training.learning_rate, "
            "raise training.warmup_steps or set training.clip_norm"
        )


def log_means(state: TrainingState, rate: float) -> dict[str, float]:
    """Append the mean of each pending value and the learning rate to the history.

    Return the mean loss.
    """
    means = {name: math.fsum(values) / len(values) for name, values in state.pending.items()}
    for name, value in means.items():
        state.history.append(LoggedValue(state.step, name, value))
    state.history.append(LoggedValue(state.step, "learning_rate", rate))
    state.pending = {}
    return {"loss": means["loss"]}


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
        folder.keep_best(state, setup.model, CHOSEN, None)
        return {}
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
        if best is None or (value, -tie) >= (best["value"], -best["tie"]):
            folder.keep_best(state, setup.model, name, value, tie)
    return {metric: values[metric]}
