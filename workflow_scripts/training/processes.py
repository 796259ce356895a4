"""Starts the processes that train one run together, and ends them together. Imports nothing heavy."""

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import connection
from pathlib import Path

from workflow_scripts.errors import UserError

SIGNALS = (signal.SIGTERM, signal.SIGINT)
# When one process fails because another has left, that one's own error arrives soon.
GRACE_SECONDS = 5.0


def run_together(work: Callable[..., None], arguments: tuple, size: int) -> None:
    """Call work(*arguments, rank, meeting) in `size` processes; `meeting` is a file at which they can find each other.

    The error of one ends all and is raised here. SIGTERM and SIGINT go to the process of rank 0 alone, and end this one
    with 128 + the signal's number, or with that process's own exit code. No process outlives this one.
    """
    context = multiprocessing.get_context("spawn")
    received: list[int] = []
    processes: list[multiprocessing.Process] = []

    def forward(number: int, _frame: object = None) -> None:
        received.append(number)
        if processes and processes[0].exitcode is None:
            os.kill(processes[0].pid, number)

    with tempfile.TemporaryDirectory() as folder:
        before = [signal.signal(number, forward) for number in SIGNALS]
        ends = []
        try:
            for rank in range(size):
                end, other_end = context.Pipe(duplex=False)
                given = (work, arguments, rank, Path(folder) / "meeting", other_end)
                processes.append(context.Process(target=_process, args=given))
                # Those that save nothing never see a signal: a process inherits what is blocked.
                signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS if rank else ())
                processes[-1].start()
                signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
                other_end.close()
                ends.append(end)
            failed = _first_failure(processes, ends)
        finally:
            for process in processes:
                if process.pid:
                    process.kill()
                    process.join()
            for number, handler in zip(SIGNALS, before, strict=True):
                signal.signal(number, handler)
    if received and processes[0].exitcode:
        sys.exit(128 + received[0])
    if failed:
        raise failed


def _first_failure(processes: list[multiprocessing.Process], ends: list[connection.Connection]) -> Exception | None:
    """Wait for the end of all processes, or the failure of one: returns its error. One that tells nothing of itself but
    that another has left is the error only if none is found for the other."""
    waiting = {process.sentinel: rank for rank, process in enumerate(processes)}
    found, deadline = None, None
    while waiting:
        done = connection.wait(list(waiting), None if deadline is None else deadline - time.monotonic())
        if not done:
            return found
        for rank in sorted(waiting.pop(sentinel) for sentinel in done):
            process, error = processes[rank], None
            process.join()
            with suppress(EOFError):
                error = ends[rank].recv() if ends[rank].poll() else None
            if process.exitcode < 0:
                name = signal.Signals(-process.exitcode).name
                error = UserError(
                    f"process {rank + 1} of {len(processes)} was ended by {name}; what was saved before is kept: "
                    "the same command goes on from there"
                )
            if isinstance(error, UserError | OSError):
                return error
            if process.exitcode and not found:
                found = error or RuntimeError(f"process {rank + 1} of {len(processes)} exited with {process.exitcode}")
                deadline = time.monotonic() + GRACE_SECONDS
    return found


def _process(
    work: Callable[..., None], arguments: tuple, rank: int, meeting: Path, errors: connection.Connection
) -> None:
    """One of the processes: does the work, and sends the error that ends it."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Before torch is imported: each process would advise against looking for unused parameters.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    try:
        work(*arguments, rank, meeting)
        return
    except SystemExit as stop:
        code = stop.code
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except (UserError, OSError) as error:
        errors.send(error)
        code = 1
    except Exception:
        errors.send(RuntimeError(traceback.format_exc()))
        code = 1
    sys.stderr.flush()
    os._exit(code)  # without the library's farewell to processes that may be gone


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os.kill(os.getpid(), signal.SIGKILL)
