"""Dropout with a mask that is fast to sample on a CPU."""

import torch
from torch import Tensor, nn


def sample_keep_mask(x: Tensor, p: float) -> Tensor:
    """Return a mask like `x`: 0 with probability `p` (rounded to 1 / 32768), else 1 / (1 - p).

    torch draws one random number per element, which takes longer than the rest of a small
    Transformer layer. Here four elements share one 64-bit number. `random_` never sets the sign
    bit. The shift makes this the lowest bit of one of the four 16-bit parts, where it does not
    matter, because the threshold is even.
    """
    # A 16-bit part is from -32768 to 32767; an element is dropped if it is below the threshold.
    threshold = 2 * round(p * 32768) - 32768
    draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_().bitwise_left_shift_(1)
    mask = torch.empty(x.shape, dtype=x.dtype)
    torch.ge(draws.view(torch.int16)[: x.numel()].view(x.shape), threshold, out=mask)
    return mask.mul_(65536 / (32768 - threshold))


class Dropout(nn.Module):
    """`nn.Dropout`, with the faster mask on a CPU."""

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout to a tensor of any shape."""
        if not self.training or self.p == 0.0:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.p)
        return x * sample_keep_mask(x, self.p)
