"""The console that commands print to, as wide as the reader's terminal."""

import os

from rich.console import Console


def make_console(log_width: int, markup: bool = True) -> Console:
    """Make the console of a command's output.

    A line that is too long is broken between words, as wide as the terminal or COLUMNS. Without
    either it stays whole, and tables have `log_width`. markup: whether `[bold]` is a style.
    """
    console = Console(highlight=False, markup=markup)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdecimal():
        console.width = log_width
        console.soft_wrap = True
    return console
