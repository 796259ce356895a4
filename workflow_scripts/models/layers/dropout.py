"""Dropout whose mask is cheap to draw on a CPU."""

import torch
from torch import Tensor, nn


def keep_mask(x: Tensor, p: float) -> Tensor:
    """Scaled mask of the shape and type of `x`: 0 with probability `p`, else 1 / (1 - p); `p` is rounded to 1 / 32768.

    torch draws one random number per element, which costs more than the rest of a small Transformer layer. Four
    elements share one 64-bit draw here. `random_` leaves the sign bit empty, so the shift moves the hole to the lowest
    bit of one of the four 16-bit parts, where an even threshold does not see it.
    """
    threshold = 2 * round(p * 32768) - 32768
    draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_().bitwise_left_shift_(1)
    mask = torch.empty(x.shape, dtype=x.dtype)
    torch.ge(draws.view(torch.int16)[: x.numel()].view(x.shape), threshold, out=mask)
    return mask.mul_(65536 / (32768 - threshold))


class Dropout(nn.Module):
    """`nn.Dropout` with the faster mask on a CPU; torch's own kernel elsewhere."""

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape."""
        if not self.training or self.p == 0.0:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.p)
        return x * keep_mask(x, self.p)
