"""Protocols of a result.

`paper` is the paper's own data and procedure; the others are `reduced` and `stand_in` (generated
data).
"""

from typing import Literal, get_args

Protocol = Literal["paper", "reduced", "stand_in"]
PROTOCOLS = get_args(Protocol)  # best first


def find_worst_protocol(*protocols: str) -> str:
    """Return the worst protocol of all inputs, which is the protocol of the result."""
    return max(protocols, key=PROTOCOLS.index)
