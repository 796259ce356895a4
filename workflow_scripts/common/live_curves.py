"""Write logged values for TensorBoard while a training runs, where RECOMPOSE_TENSORBOARD names a folder.

Nothing here can change a result or end a training. The events are written without TensorBoard's own writer, because its
thread could keep the training waiting when the disk is full.
"""

import os
import time
from pathlib import Path
from typing import Any


class LiveCurves:
    """An event file for one training. TensorBoard is imported when the first value is written."""

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
                self.record.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
            summary = Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in values.items()])
            self.record.write(Event(wall_time=time.time(), step=step, summary=summary).SerializeToString())
            self.record.flush()
        except Exception as error:  # whatever it is, the training continues without curves
            folder, self.folder = self.folder, None
            return f"warning: no live curves in {folder} ({type(error).__name__}: {error}); the training continues"
        return ""
