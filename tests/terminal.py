"""A terminal for tests that answer a question."""

import os
import pty
import termios
from pathlib import Path

QUESTION = "Start? [y/N] "


def answer(command: list[str], answers: str, folder: Path | None = None) -> tuple[str, int]:
    """Run a command whose terminal is a new one, type `answers` at the question; what it wrote."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder or Path.cwd())
        os.execvp(command[0], command)
    keep_output_at_signals(terminal)
    written = ""
    waiting = answers
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # Linux says so when the last writer has gone
            break
        if not part:
            break
        written += part.decode()
        if waiting and QUESTION in written:
            os.write(terminal, waiting.encode())
            waiting = ""
    os.close(terminal)
    _, status = os.waitpid(process, 0)
    return written, os.waitstatus_to_exitcode(status)


def keep_output_at_signals(terminal: int) -> None:
    """Let a terminal keep what was written and not read yet when Ctrl-C is typed.

    It would drop it just after the signal, and with it what a fast process has answered.
    """
    settings = termios.tcgetattr(terminal)
    settings[3] |= termios.NOFLSH  # of the local modes
    termios.tcsetattr(terminal, termios.TCSANOW, settings)
