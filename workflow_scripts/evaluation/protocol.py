"""Protocols: `paper` (the paper's own data and procedure), `reduced`, or `stand_in` (generated data)."""

from typing import Literal, get_args

Protocol = Literal["paper", "reduced", "stand_in"]
PROTOCOLS = get_args(Protocol)  # the best first


def worst_protocol(*protocols: str) -> str:
    """Return the worst of the protocols of all inputs, which is the protocol of the result."""
    return max(protocols, key=PROTOCOLS.index)
