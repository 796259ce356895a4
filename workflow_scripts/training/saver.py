"""Save the state of a training from time to time."""

import time

import torch
from torch import nn

from workflow_scripts.common.system import measure_cpu_seconds, measure_peak_memory
from workflow_scripts.training.machine import Attempt, count_gpu_processes, measure_gpu_memory
from workflow_scripts.training.state import StateFolder, TrainingState

MAX_SAVE_SHARE = 1 / 20  # of the time: the state of a large model is saved less often


class Saver:
    """Saves the state every `seconds`, or less often.

    Saving takes no more than MAX_SAVE_SHARE of the time. `attempt` is this process in the attempts
    of the state, where each save brings it up to date.
    """

    def __init__(self, folder: StateFolder, state: TrainingState, attempt: Attempt, seconds: float):
        self.folder = folder
        self.state = state
        self.attempt = attempt
        self.min_pause = seconds
        self.pause = seconds
        self.started = time.monotonic()
        self.saved_at = self.started
        self.earlier_seconds = state.seconds
        self.cpu_start = measure_cpu_seconds()
        self.saved_step: int | None = None  # none by this process

    def is_due(self) -> bool:
        """Whether the last save was long enough ago."""
        return time.monotonic() - self.saved_at >= self.pause

    def is_saved(self) -> bool:
        """Whether this process has saved the state as it is now."""
        return self.saved_step == self.state.step

    def update_attempt(self) -> None:
        """Bring the record of this process up to date: its last step, seconds and memory."""
        attempt = self.attempt
        attempt.last_step = self.state.step
        attempt.seconds = time.monotonic() - self.started
        attempt.cpu_seconds = measure_cpu_seconds() - self.cpu_start
        attempt.peak_memory_bytes = measure_peak_memory()
        attempt.peak_gpu_memory_bytes = measure_gpu_memory()
        if self.saved_step is None:  # counted once
            attempt.gpu_processes = count_gpu_processes()
        self.state.seconds = self.earlier_seconds + attempt.seconds

    def save(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        """Save the state."""
        began = time.monotonic()
        self.update_attempt()
        self.folder.save(self.state, model, optimiser)
        self.saved_step = self.state.step
        self.saved_at = time.monotonic()
        self.pause = max(self.min_pause, (self.saved_at - began) / MAX_SAVE_SHARE)
