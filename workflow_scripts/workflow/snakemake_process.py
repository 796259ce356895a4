"""Run Snakemake until it ends or is asked to stop."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

POLL_SECONDS = 0.5


@contextmanager
def collect_stop_signals() -> Iterator[list[int]]:
    """Yield a list that receives the number of each SIGINT, SIGTERM or SIGHUP that arrives."""
    received: list[int] = []

    def add_number(number: int, _frame: object) -> None:
        received.append(number)

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # which nohup sets
        numbers.append(signal.SIGHUP)
    before = [signal.signal(number, add_number) for number in numbers]
    try:
        yield received
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def run_snakemake(
    arguments: list[str],
    received: list[int],
    environment: dict[str, str] | None = None,
    stop_at: float = float("inf"),
    kill_at: float = float("inf"),
    watch: Callable[[], None] = lambda: None,
) -> int:
    """Run Snakemake, and return its exit code; 128 + n if signal n has ended it.

    After a signal, or at `stop_at`, Snakemake and its jobs are asked to stop by SIGINT, as by
    Ctrl-C: trainings save their state. At `kill_at` they are ended by SIGKILL. Times are those of
    time.monotonic(). `watch` is called every POLL_SECONDS.
    """
    # Its own process group receives signals from here only: a second Ctrl-C disturbs no saving.
    # close_fds: Snakemake inherits the lock of ./reproduce.
    command = [sys.executable, "-m", "snakemake", *arguments]
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        process_group=0,
        close_fds=False,
    )
    is_stopping = False
    try:
        with pause_together(process):
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    code = process.wait(timeout=POLL_SECONDS)
                    return code if code >= 0 else 128 - code
                watch()
                now = time.monotonic()
                if not is_stopping and (received or now >= stop_at):
                    is_stopping = True
                    send_to_group(process, signal.SIGINT)
                if now >= kill_at:
                    send_to_group(process, signal.SIGKILL)
    finally:
        if process.poll() is None:  # `watch` has failed
            send_to_group(process, signal.SIGINT)
            process.wait()


@contextmanager
def pause_together(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Let Ctrl-Z suspend a process group with this process, and `fg` or `bg` continue it."""

    def pause(_number: int, _frame: object) -> None:
        send_to_group(process, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        send_to_group(process, signal.SIGCONT)

    before = signal.signal(signal.SIGTSTP, pause)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)


def send_to_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to a process and its children, unless it has just ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
