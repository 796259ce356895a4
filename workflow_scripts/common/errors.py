"""The exception for errors that a user can fix, and a list that collects them."""

from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """An error that the user can fix.

    The message has one line per problem: what is wrong, where, and what to do.
    """


class ErrorList:
    """Problems that independent checks find, to be reported all at once."""

    def __init__(self) -> None:
        self.lines: dict[str, None] = {}

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Store a UserError of the block instead of raising it."""
        try:
            yield
        except UserError as error:
            self.add(*str(error).splitlines())

    def add(self, *lines: str) -> None:
        """Add problems that are not listed yet."""
        self.lines |= dict.fromkeys(lines)

    def check_empty(self) -> None:
        """Raise UserError with all problems, if there are any."""
        if self.lines:
            raise UserError("\n".join(self.lines))
