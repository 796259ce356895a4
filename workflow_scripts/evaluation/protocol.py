"""How far a result is from the paper: its own data and procedure, reduced ones, or made-up data."""

from typing import Literal, get_args

Protocol = Literal["paper", "reduced", "stand_in"]
PROTOCOLS = get_args(Protocol)  # the best first


def worst_protocol(*protocols: str) -> str:
    """A result is as far from the paper as the worst of what went into it."""
    return max(protocols, key=PROTOCOLS.index)
