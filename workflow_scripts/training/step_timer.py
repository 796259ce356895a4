"""Measure the seconds of an update."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from workflow_scripts.training.state import TrainingState


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
