"""The one exception that a user sees."""


class UserError(Exception):
    """Something the user can mend. The message is one line: what is wrong, where, and what to do."""
