"""Progress of one job on stderr, and for TensorBoard if the user wants that.

It is a bar on a terminal, and occasional lines elsewhere.
"""

import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

BAR_SECONDS = 0.1
# A line each second at first, for users who watch a short job; the pause grows to 10 s in a long
# job.
FIRST_LINE_SECONDS = 1.0
LINE_SECONDS = 10.0
LINES_PER_ELAPSED = 20
UNITS = {"exact_match": "%"}


class LiveCurves:
    """An event file for one training, for TensorBoard.

    It is in the folder RECOMPOSE_TENSORBOARD, if that is set. Nothing here can change a result or
    end a training. The events are written without TensorBoard's own writer, because its thread
    could keep the training waiting when the disk is full.
    """

    def __init__(self, name: str):
        self.name = name
        self.folder = os.environ.get("RECOMPOSE_TENSORBOARD")
        self.writer: Any = None

    def add(self, step: int, values: dict[str, float]) -> str:
        """Write values of a step. Return a warning if that fails; then no more are written."""
        if not self.folder:
            return ""
        try:
            from tensorboard.compat.proto.event_pb2 import Event  # pyright: ignore
            from tensorboard.compat.proto.summary_pb2 import Summary  # pyright: ignore

            if self.writer is None:
                self.writer = self._open_writer(Path(self.folder, self.name))
                version = Event(wall_time=time.time(), file_version="brain.Event:2")
                self.writer.write(version.SerializeToString())
            points = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
            event = Event(wall_time=time.time(), step=step, summary=Summary(value=points))
            self.writer.write(event.SerializeToString())
            self.writer.flush()
        except Exception as error:  # whatever it is, the training continues without curves
            folder = self.folder
            self.folder = None
            return (
                f"warning: no live curves in {folder} ({type(error).__name__}: {error}); "
                "the training continues"
            )
        return ""

    @staticmethod
    def _open_writer(folder: Path) -> Any:
        """Open a new event file in the folder, which is made if needed."""
        from tensorboard.summary.writer.record_writer import RecordWriter  # pyright: ignore

        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"events.out.tfevents.{time.time():.0f}.{os.getpid()}"
        return RecordWriter(file.open("wb", buffering=0))


class Reporter:
    """Context manager that shows stage, steps, steps/s, time left and the last logged values.

    A total of 0 is not known yet: `set_total` gives it before the first step.
    Under Snakemake several jobs print to one place, so every line starts with the run's name and is
    one write.
    """

    def __init__(self, name: str, total: int, style: str = "auto", unit: str = "steps"):
        self.name = name
        self.total = total
        self.unit = unit
        self.style = style
        if style == "auto":
            self.style = "bar" if sys.stderr.isatty() else "lines"
        self.started = time.monotonic()
        self.updated = self.started
        self.done_before = 0  # steps that an earlier process has done
        self.done = 0
        self.values: dict[str, float] = {}
        self.curves = LiveCurves(name)
        self.bar: Progress | None = None
        self.task = TaskID(0)

    def __enter__(self) -> "Reporter":
        if self.style == "bar":
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]:.1f} " + self.unit + "/s"),
                TimeRemainingColumn(compact=True),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )
            self.task = self.bar.add_task(self.name, total=self.total, rate=0.0, note="")
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar:
            self.bar.update(self.task, completed=self.done)
            self.bar.stop()

    def set_total(self, total: int) -> None:
        """Set the number of steps, of which none is done; the time before does not count."""
        self.total = total
        self.started = time.monotonic()
        if self.bar:
            self.bar.update(self.task, total=total)

    def resume(self, done: int) -> None:
        """Start with `done` steps that an earlier process has done."""
        self.started = time.monotonic()
        self.done_before = done
        self.done = done
        if done:
            self.print_line(f"resumes after {done:,} of {self.total:,} {self.unit}")

    def set_stage(self, name: str) -> None:
        """Show the current stage: train, validate, save."""
        if self.bar:
            self.bar.update(self.task, description=f"{self.name}: {name}")

    def update_values(self, values: dict[str, float]) -> None:
        """Store the latest values of the step that ends next, and write them as curves.

        They are `loss` and the validation metric.
        """
        self.values |= values
        warning = self.curves.add(self.done + 1, values)
        if warning:
            self.print_line(warning)

    def advance(self, count: int = 1) -> None:
        """Count `count` more steps; update the display if the last update was long enough ago.

        Without a step that this process has done there is no speed to show.
        """
        self.done += count
        if self.done == self.done_before:
            return
        now = time.monotonic()
        elapsed = now - self.started
        if now - self.updated < self._choose_pause(elapsed):
            return
        self.updated = now
        rate = (self.done - self.done_before) / max(elapsed, 1e-9)
        values = [f"{name} {value:.4g}{UNITS.get(name, '')}" for name, value in self.values.items()]
        note = " ".join(values)
        if self.bar:
            self.bar.update(self.task, completed=self.done, rate=rate, note=note)
        else:
            done = f"{self.done:,}/{self.total:,} {self.unit}"
            left = format_time_left(int((self.total - self.done) / rate))
            self.print_line(f"{done}  {rate:.1f}/s  {left} left  {note}".rstrip())

    def _choose_pause(self, elapsed: float) -> float:
        """Return the seconds between two updates of the display."""
        if self.bar:
            return BAR_SECONDS
        return min(max(elapsed / LINES_PER_ELAPSED, FIRST_LINE_SECONDS), LINE_SECONDS)

    def print_line(self, message: str) -> None:
        """Print one line with the run's name immediately."""
        if self.bar:
            self.bar.console.print(f"{self.name}: {message}", highlight=False, markup=False)
        elif self.style != "none":
            sys.stderr.write(f"{self.name}: {message}\n")
            sys.stderr.flush()


def format_time_left(seconds: int) -> str:
    """Format seconds as minutes and seconds, or from an hour on as hours, minutes and seconds."""
    if seconds < 3600:
        return f"{seconds // 60}:{seconds % 60:02}"
    return str(timedelta(seconds=seconds))
