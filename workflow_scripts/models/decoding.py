"""Greedy and beam search for encoder-decoder models, over whole batches."""

import torch
from torch import Tensor

PAD, END = 0, 2


@torch.no_grad()
def greedy(model: torch.nn.Module, source: Tensor, max_length: int, cached: bool = True) -> Tensor:
    """The most probable token at every step: source [B, S] -> ids [B, T], T <= max_length.

    A row ends with the end symbol (unless cut at max_length), then padding. `cached=False` recomputes the whole prefix
    at every step: slow, to check the cache against.
    """
    memory, cache = model.encode(source), None
    output = source.new_full((source.size(0), max_length), PAD)
    rows = torch.arange(source.size(0), device=source.device)
    prefix = source.new_full((source.size(0), 1), END)
    for step in range(max_length):
        if cached:
            logits, cache = model.decode_step(memory, cache, prefix[:, -1])
        else:
            logits = model.decode(memory, prefix)[:, -1]
        tokens = logits.argmax(dim=-1)
        output[rows, step] = tokens
        alive = tokens.ne(END)
        if not alive.any():
            return output[:, : step + 1]
        prefix = torch.cat([prefix, tokens[:, None]], dim=1)
        # Finished sentences leave the batch once they are many enough to pay for copying the cache.
        if cached and alive.sum() <= 0.75 * alive.numel():
            rows, prefix, cache = rows[alive], prefix[alive], cache.select(alive.nonzero()[:, 0])
    return output
