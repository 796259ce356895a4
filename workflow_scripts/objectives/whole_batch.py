"""Sums and means over a batch that several processes share: each has the loss of the whole batch as its value, and its
own part of the gradient, so that the sum of the processes' gradients is the gradient of the whole batch.

What is a mean over sentences or tokens is made by `mean`, and what is more than that, a ratio of sums for one, from
sums made by `total`. A process that works alone gets back what it gave.
"""

import torch
from torch import Tensor, distributed


def _alone() -> bool:
    return not (distributed.is_available() and distributed.is_initialized())


def total(own: Tensor) -> Tensor:
    """The sum of all processes' `own` (any shape). All of them must call this, in the same order."""
    if _alone():
        return own
    whole = own.detach().clone()
    distributed.all_reduce(whole)
    return whole + (own - own.detach())


def mean(own: Tensor, count: int) -> Tensor:
    """The mean over the whole batch, from the scalar mean `own` over this process's `count` items of it."""
    if _alone():
        return own
    sums = total(torch.stack([own * count, torch.full_like(own, count)]))
    return sums[0] / sums[1]
