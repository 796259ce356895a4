"""The exception for errors that a user can fix."""


class UserError(Exception):
    """An error that the user can fix. The message is one line: what is wrong, where, and what to do."""
