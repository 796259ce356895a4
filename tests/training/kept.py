"""What a forward pass keeps for the backward one."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def kept_for_backward(model: nn.Module) -> Iterator[dict[int, int]]:
    """Storage -> bytes of all that autograd saves in the block; when it ends, without the model's weights."""
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
        return tensor

    weights = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield kept
    for storage in weights:
        kept.pop(storage, None)
