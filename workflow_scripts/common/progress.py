"""Progress of one job on stderr, a bar on a terminal, occasional lines elsewhere, and for TensorBoard if asked."""

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
# A line each second at first, for users who watch a short job; the pause grows to 10 s in a long job.
FIRST_LINE_SECONDS, LINE_SECONDS, LINES_PER_ELAPSED = 1.0, 10.0, 20
UNITS = {"exact_match": "%"}


class LiveCurves:
    """An event file for one training, for TensorBoard, in the folder RECOMPOSE_TENSORBOARD if that is set.

    Nothing here can change a result or end a training. The events are written without TensorBoard's own writer, because
    its thread could keep the training waiting when the disk is full.
    """

    def __init__(self, name: str):
        self.name, self.folder = name, os.environ.get("RECOMPOSE_TENSORBOARD")
        self.record: Any = None

    def add(self, step: int, values: dict[str, float]) -> str:
        """Write values of a step. Return a warning if that fails; then no more are written."""
        if not self.folder:
            return ""
        try:
            from tensorboard.compat.proto.event_pb2 import Event  # pyright: ignore[reportMissingImports]
            from tensorboard.compat.proto.summary_pb2 import Summary  # pyright: ignore[reportMissingImports]
            from tensorboard.summary.writer.record_writer import RecordWriter  # pyright: ignore[reportMissingImports]

            if self.record is None:
                folder = Path(self.folder, self.name)
                folder.mkdir(parents=True, exist_ok=True)
                file = folder / f"events.out.tfevents.{time.time():.0f}.{os.getpid()}"
                self.record = RecordWriter(file.open("wb", buffering=0))
                self.record.write(
                    Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString()
                )
            summary = Summary(
                value=[
                    Summary.Value(tag=name, simple_value=value) for name, value in values.items()
                ]
            )
            self.record.write(
                Event(wall_time=time.time(), step=step, summary=summary).SerializeToString()
            )
            self.record.flush()
        except Exception as error:  # whatever it is, the training continues without curves
            folder, self.folder = self.folder, None
            return f"warning: no live curves in {folder} ({type(error).__name__}: {error}); the training continues"
        return ""


class Reporter:
    """Context manager that shows stage, steps, steps/s, time left and the last logged values.

    A total of 0 is not known yet: `set_total` gives it before the first step.
    Under Snakemake several jobs print to one place, so every line starts with the run's name and is one write.
    """

    def __init__(self, name: str, total: int, style: str = "auto", unit: str = "steps"):
        self.name, self.total, self.unit = name, total, unit
        self.style = ("bar" if sys.stderr.isatty() else "lines") if style == "auto" else style
        self.started = self.shown = time.monotonic()
        self.first = self.done = 0
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
        """Set the number of steps."""
        self.total = total
        if self.bar:
            self.bar.update(self.task, total=total)

    def resume(self, done: int) -> None:
        """Start with `done` steps that an earlier process has done."""
        self.started, self.first, self.done = time.monotonic(), done, done
        if done:
            self.print_line(f"resumes after {done:,} of {self.total:,} {self.unit}")

    def set_stage(self, name: str) -> None:
        """Show the current stage: train, validate, save."""
        if self.bar:
            self.bar.update(self.task, description=f"{self.name}: {name}")

    def update_values(self, values: dict[str, float]) -> None:
        """Store the latest values of the step that ends next (`loss`, the validation metric); write them as curves."""
        self.values |= values
        if warning := self.curves.add(self.done + 1, values):
            self.print_line(warning)

    def advance(self, count: int = 1) -> None:
        """Count `count` more steps, and update the display if the last update was long enough ago."""
        self.done += count
        now = time.monotonic()
        pause = min(max((now - self.started) / LINES_PER_ELAPSED, FIRST_LINE_SECONDS), LINE_SECONDS)
        if now - self.shown < (BAR_SECONDS if self.bar else pause):
            return
        self.shown = now
        rate = (self.done - self.first) / max(now - self.started, 1e-9)
        note = " ".join(
            f"{name} {value:.4g}{UNITS.get(name, '')}" for name, value in self.values.items()
        )
        if self.bar:
            self.bar.update(self.task, completed=self.done, rate=rate, note=note)
        else:
            seconds = int((self.total - self.done) / rate)
            left = (
                f"{seconds // 60}:{seconds % 60:02}"
                if seconds < 3600
                else timedelta(seconds=seconds)
            )
            self.print_line(
                f"{self.done:,}/{self.total:,} {self.unit}  {rate:.1f}/s  {left} left  {note}".rstrip()
            )

    def print_line(self, message: str) -> None:
        """Print one line with the run's name immediately."""
        if self.bar:
            self.bar.console.print(f"{self.name}: {message}", highlight=False, markup=False)
        elif self.style != "none":
            sys.stderr.write(f"{self.name}: {message}\n")
            sys.stderr.flush()
