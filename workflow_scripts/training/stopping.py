"""Stopping a training by a signal: it saves its state first."""

import signal


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
            self.handlers[number] = signal.signal(number, self._record)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def _record(self, number: int, _frame: object) -> None:
        if self.first is None:
            self.first = number
