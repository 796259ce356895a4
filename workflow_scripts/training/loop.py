"""The training loop of all papers."""

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.progress import Reporter
from workflow_scripts.common.system import measure_cpu_seconds
from workflow_scripts.tasks.base import Problem
from workflow_scripts.tasks.settings import CHOSEN, Training
from workflow_scripts.training.machine import describe_attempt, measure_usage
from workflow_scripts.training.state import StateFolder, TrainingState

SAVE_SHARE = 1 / 20  # of the time, at most: the state of a large model is saved less often


class StopRequested(Exception):  # noqa: N818
    """Raised when the state is saved after signal `number`. `step` is the last finished one."""

    def __init__(self, number: int, step: int):
        super().__init__(number, step)
        self.number, self.step = number, step


@contextmanager
def record_stop_signals() -> Iterator[list[int]]:
    """Yield a list that receives the number of each SIGTERM or SIGINT that arrives in the block."""
    received: list[int] = []
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda arrived, _frame: received.append(arrived)) for number in numbers]
    try:
        yield received
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def build_optimiser(model: nn.Module, settings: Training) -> torch.optim.AdamW:
    """Return AdamW with decoupled weight decay on all parameters, as fairseq's `adam`."""
    rates = {"lr": settings.learning_rate, "betas": settings.betas, "weight_decay": settings.weight_decay}
    return torch.optim.AdamW(model.parameters(), eps=settings.adam_epsilon, fused=True, **rates)


def compute_learning_rate(settings: Training, step: int) -> float:
    """Return the learning rate of update `step`, from 1, so that resuming needs no scheduler state.

    It rises linearly to the peak during the warm-up. Then `inverse_square_root` is peak * sqrt(warm-up / step), and
    `linear` falls to 0 after `max_steps`, `constant_then_linear` only during the last `decay_steps`. As in Hugging
    Face's schedule, `linear` has the rate 0 at the first update of a warm-up; the others reach the peak at its last.
    """
    peak, warmup, max_steps = settings.learning_rate, settings.warmup, settings.max_steps
    if settings.schedule == "linear":
        done = step - 1
        return peak * done / warmup if done < warmup else peak * (max_steps - done) / max(max_steps - warmup, 1)
    warmup = max(warmup, 1)
    if settings.schedule == "inverse_square_root":
        return peak * min(step / warmup, (warmup / step) ** 0.5)
    rate = peak * min(step / warmup, 1.0)
    if settings.schedule == "constant_then_linear":
        rate *= min((max_steps - step + 1) / settings.decay_steps, 1.0)
    return rate


def train(
    problem: Problem,
    settings: Training,
    seed: int,
    device: torch.device,
    folder: StateFolder,
    reporter: Reporter,
    save_every_seconds: float,
) -> TrainingState:
    """Train from the saved state, or from the start, to `max_steps`, and return the final state.

    Update k, from 1, uses the k-th batch of the epochs' orders, one epoch after the other. The state is saved at each
    validation and every `save_every_seconds`, or less often if saving takes long. At the end the model has the last
    weights; for the best see `folder.locate_best`. Raises StopRequested after SIGTERM or SIGINT, also in the last step,
    and UserError for a non-finite loss. Both leave a state to resume from.
    """
    model, batches = problem.model, problem.batches
    optimiser = build_optimiser(model, settings)
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=settings.precision == "bf16")
    state = folder.load(model, optimiser)
    reporter.resume(state.step)
    call = describe_attempt(device, state.step)
    state.attempts.append(call)
    rows: list[dict[str, Tensor]] = []  # values of the steps since `collect_logged_values`
    epoch, order = -1, np.empty(0, np.int64)
    model.train()
    with record_stop_signals() as received:
        saved = timed = time.monotonic()
        wait = save_every_seconds
        timed_step, seconds_before = state.step, state.seconds - saved
        seconds_start, cpu_start = state.seconds, measure_cpu_seconds()
        stop = 0
        while state.step < settings.max_steps and not stop:
            if epoch != state.step // len(batches):
                epoch = state.step // len(batches)
                order = np.random.default_rng([seed, epoch]).permutation(len(batches))
            batch = batches[order[state.step % len(batches)]]
            state.step += 1
            rate = compute_learning_rate(settings, state.step)
            rows.append(update_weights(problem, batch, optimiser, rate, settings.clip_norm, autocast))

            last = state.step == settings.max_steps
            validates = last or (settings.selection and state.step % settings.validate_every == 0)
            if last or state.step % settings.log_every == 0:
                collect_logged_values(rows, state)
                now = time.monotonic()
                state.interval_seconds.append((now - timed) / (state.step - timed_step))
                timed, timed_step = now, state.step
                reporter.update_values(log_means(state, rate))
            began = time.monotonic()
            if validates:
                collect_logged_values(rows, state)
                reporter.set_stage("validate")
                reporter.update_values(validate(problem, settings, folder, state))
            stop = received[0] if received else 0
            if validates or stop or began - saved >= wait:
                collect_logged_values(rows, state)
                reporter.set_stage("save")
                saving = time.monotonic()
                state.seconds = seconds_before + time.monotonic()
                call |= {"last_step": state.step, "seconds": state.seconds - seconds_start, **measure_usage(cpu_start)}
                folder.save(state, model, optimiser)
                reporter.set_stage("train")
                saved = time.monotonic()
                wait = max(save_every_seconds, (saved - saving) / SAVE_SHARE)
                timed += saved - began  # the step time counts neither validating nor saving
                stop = received[0] if received else 0  # a signal may have arrived meanwhile
            reporter.advance()
    # After the last step, too: the signal must also end a search that this training is a part of. And Snakemake deletes
    # the results of a job that ends after its time limit, so the state must stay.
    if stop := stop or (received[0] if received else 0):
        folder.log(f"stopped by signal {stop} at step {state.step}")
        raise StopRequested(stop, state.step)
    if "last_step" not in call:  # no step was left to make
        call |= {"last_step": state.step, "seconds": 0.0, **measure_usage(cpu_start)}
    return state


def update_weights(
    problem: Problem, batch: Any, optimiser: torch.optim.Optimizer, rate: float, clip: float, autocast: torch.autocast
) -> dict[str, Tensor]:
    """Make one optimiser step. Return loss, parts and, if clipped, gradient norm: tensors, to not wait for a GPU."""
    with autocast:
        loss, parts = problem.loss(problem.model, batch)
    loss.backward()
    if clip:
        parts = {**parts, "gradient_norm": nn.utils.clip_grad_norm_(problem.model.parameters(), clip)}
    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.step()
    optimiser.zero_grad()
    if hasattr(problem.model, "finish_step"):
        problem.model.finish_step()
    return {"loss": loss.detach(), **{name: torch.as_tensor(part).detach() for name, part in parts.items()}}


def collect_logged_values(rows: list[dict[str, Tensor]], state: TrainingState) -> None:
    """Move the values of `rows`, one per step, to `state.pending` as floats. Raises UserError for a non-finite loss."""
    for name in dict.fromkeys(name for row in rows for name in row):
        values = torch.stack([row[name] for row in rows if name in row]).tolist()
        state.pending.setdefault(name, []).extend(values)
    rows.clear()
    losses = state.pending.get("loss", [])
    for index, loss in enumerate(losses):
        if not math.isfinite(loss):
            step = state.step - len(losses) + index + 1
            before = ", ".join(f"{value:.4g}" for value in losses[max(index - 3, 0) : index]) or "none in this interval"
            raise UserError(
                f"the loss is {loss} at step {step} (losses before it: {before}); the state saved before it is kept: "
                "lower training.learning_rate, raise training.warmup_steps or set training.clip_norm"
            )


def log_means(state: TrainingState, rate: float) -> dict[str, float]:
    """Append the mean of each pending value and the learning rate to the history. Return the means."""
    means = {name: math.fsum(values) / len(values) for name, values in state.pending.items()}
    state.history += [(state.step, name, value) for name, value in (means | {"learning_rate": rate}).items()]
    state.pending = {}
    return {"loss": means["loss"]}


def validate(problem: Problem, settings: Training, folder: StateFolder, state: TrainingState) -> dict[str, float]:
    """Validate, add the values to the history, keep the weights if they are the best on a split, and return the metric.

    Of equal values without a tie-break the latest wins, as in fairseq: early on, the metric may be 0 for long. With
    validation none the present weights are kept.
    """
    if not settings.selection:
        folder.keep_best(state, problem.model, CHOSEN, None)
        return {}
    metric, tie_break = settings.selection["metric"], problem.tie_break_metric
    problem.model.eval()
    with torch.no_grad():
        values = problem.validate(problem.model)
    problem.model.train()
    state.history += [(state.step, f"valid_{name}", value) for name, value in values.items()]
    for name, prefix in {CHOSEN: "", **{split: f"{split}_" for split in settings.kept_splits}}.items():
        value, tie = values[prefix + metric], values[prefix + tie_break] if tie_break else 0.0
        before = state.best.get(name)
        if before is None or (value, -tie) >= (before["value"], -before["tie"]):
            folder.keep_best(state, problem.model, name, value, tie)
    return {metric: values[metric]}
