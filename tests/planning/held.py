"""What a training step holds, counted on the CPU as a GPU's allocator would."""

import weakref
from collections.abc import Callable

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Held(TorchDispatchMode):
    """Counts the bytes of all tensors that live, and the most that did at a time: a GPU's allocator, on the CPU."""

    def __init__(self):
        super().__init__()
        self.sizes: dict[int, int] = {}
        self.now = self.peak = 0

    def add(self, tensor: object) -> None:
        if not isinstance(tensor, torch.Tensor):
            return
        storage = tensor.untyped_storage()
        if storage._cdata not in self.sizes:
            self.sizes[storage._cdata] = storage.nbytes()
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self.drop, storage._cdata)

    def drop(self, key: int) -> None:
        self.now -= self.sizes.pop(key, 0)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            self.add(tensor)
        return made


def peak_of_a_step(model: nn.Module, loss_of: Callable, batch, bf16: bool, kernels: list[SDPBackend]) -> int:
    """Bytes at the peak of a model's second step, with weights, gradients and the moments of AdamW."""
    optimiser = torch.optim.AdamW(model.parameters(), fused=True)

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss, _ = loss_of(model, batch)
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()

    with sdpa_kernel(kernels):
        step()
        held = Held()
        for parameter in model.parameters():
            held.add(parameter)
            for moment in optimiser.state[parameter].values():
                held.add(moment)
        with held:
            step()
    return held.peak
