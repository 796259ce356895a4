"""Progress of one training on stderr: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

STYLES = ("auto", "bar", "lines", "none")
BAR_SECONDS, LINE_SECONDS = 0.1, 10.0


def duration(seconds: float) -> str:
    """`h:mm:ss`, or `m:ss` below an hour."""
    minutes, second = divmod(int(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


class Reporter:
    """Shows stage, step, steps/s, time left and the last logged values; a context manager.

    Several jobs print to one place under snakemake: every line starts with the run's name and comes in one write.
    """

    def __init__(self, name: str, total: int, style: str = "auto"):
        self.name, self.total = name, total
        self.style = ("bar" if sys.stderr.isatty() else "lines") if style == "auto" else style
        self.started = self.shown = time.monotonic()
        self.first_step = 0
        self.values: dict[str, float] = {}
        self.bar: Progress | None = None
        self.task: TaskID | None = None

    def __enter__(self) -> "Reporter":
        if self.style == "bar":
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]:.1f} steps/s"),
                TimeRemainingColumn(compact=True),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )
            self.task = self.bar.add_task(f"{self.name}: train", total=self.total, rate=0.0, note="")
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar:
            self.bar.stop()

    def start(self, step: int) -> None:
        """Training goes on behind `step` (0 for a new run)."""
        self.started, self.first_step = time.monotonic(), step
        if self.bar:
            self.bar.reset(self.task, total=self.total, completed=step)
        elif step:
            self.line(f"resumes at step {step:,} of {self.total:,}")

    def stage(self, name: str) -> None:
        """Name what is done now: train, validate, save."""
        if self.bar:
            self.bar.update(self.task, description=f"{self.name}: {name}")

    def logged(self, values: dict[str, float]) -> None:
        """Remember the newest means of the logged values (`loss`, the validation metric)."""
        self.values |= values

    def step(self, step: int) -> None:
        """`step` updates are done. Cheap: shows something only when the last time was long enough ago."""
        now = time.monotonic()
        if now - self.shown < (BAR_SECONDS if self.style == "bar" else LINE_SECONDS):
            return
        self.shown = now
        rate = (step - self.first_step) / max(now - self.started, 1e-9)
        note = " ".join(f"{name} {value:.4g}" for name, value in self.values.items())
        if self.bar:
            self.bar.update(self.task, completed=step, rate=rate, note=note)
        elif rate:
            left = duration((self.total - step) / rate)
            self.line(f"step {step:,}/{self.total:,}  {rate:.1f} steps/s  {left} left  {note}")

    def line(self, message: str) -> None:
        """Print one line with the run's name, at once."""
        if self.bar:
            self.bar.console.print(f"{self.name}: {message}", highlight=False, markup=False)
        elif self.style != "none":
            sys.stderr.write(f"{self.name}: {message}\n")
            sys.stderr.flush()
