"""Ask a question in the terminal, also from a process in the background of ./reproduce."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def is_confirmed() -> bool:
    """Ask in the terminal. True also where it belongs to another program, as after `&`."""
    with suppress(OSError), open_terminal() as terminal:
        try:
            os.write(terminal, b"Start? [y/N] ")
            return os.read(terminal, 1024).strip().lower() in (b"y", b"yes")
        except KeyboardInterrupt:
            os.write(terminal, b"\n")
            return False
    return True


@contextmanager
def open_terminal() -> Iterator[int]:
    """Yield a descriptor of the terminal, of which this process group has the keyboard meanwhile.

    Raises OSError if there is no terminal, or if neither this process nor its parent has it.
    """
    descriptor = os.open("/dev/tty", os.O_RDWR)
    try:
        owner = os.tcgetpgrp(descriptor)
        if owner not in (os.getpgrp(), os.getpgid(os.getppid())):
            raise OSError("the terminal belongs to another program")
        _assign_terminal(descriptor, os.getpgrp())
        try:
            yield descriptor
        finally:
            _assign_terminal(descriptor, owner)
    finally:
        os.close(descriptor)


def _assign_terminal(descriptor: int, group: int) -> None:
    """Give the keyboard of a terminal, and its Ctrl-C, to a process group of this session."""
    # Else a process that has no keyboard is stopped by asking for it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        os.tcsetpgrp(descriptor, group)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
