"""Perplexity of a causal language model on one long text, read in windows."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


@torch.no_grad()
def sum_text_nll(
    model: nn.Module, ids: Tensor, context: int, stride: int, advance: Callable[[int], None]
) -> tuple[float, int]:
    """Return (sum of -log p(token | tokens before it in its window), number of tokens) of ids [N].

    The sum is in nats.
    Windows of `context` tokens begin every `stride` tokens. Each token counts once, in the first
    window that has it; the very first of a window has nothing before it and does not count.
    `advance` is called with the number of tokens of each window that count.
    """
    nats = 0.0
    count = 0
    done = 0  # end of the window before
    for first in range(0, len(ids) - 1, stride):
        window = ids[first : first + context]
        seen = max(done - first, 1)  # tokens that counted in the window before, or the first one
        new = len(window) - seen  # tokens that count in this window
        logits = model(input_ids=window[None], use_cache=False).logits[0, seen - 1 : -1].float()
        nats += float(cross_entropy(logits, window[seen:], reduction="sum").double())
        count += new
        done = first + len(window)
        advance(new)
        if done == len(ids):
            break
    return nats, count
