"""A stand-in for CUDA graphs on a CPU: it records the operations of an update, and repeats them on
the same tensors.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from workflow_scripts.training import graphs

WAITS_FOR_DATA = ("nonzero", "masked_select", "_local_scalar_dense")  # the last is item()


def list_tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def share_memory(results: list[torch.Tensor], arguments: list[torch.Tensor]) -> bool:
    places = {tensor.untyped_storage().data_ptr() for tensor in arguments}
    return all(tensor.untyped_storage().data_ptr() in places for tensor in results)


class Recorder(TorchDispatchMode):
    """Keeps every operation with its tensors. Fails for one whose size, or Python value, depends on
    the data.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._overloadpacket.__name__
        if name in WAITS_FOR_DATA:
            raise RuntimeError(f"{name} is not permitted in a graph")
        if "index" in name and any(index.dtype == torch.bool for index in list_tensors(args[1:2])):
            raise RuntimeError(f"{name} with a boolean index is not permitted in a graph")
        result = func(*args, **kwargs)
        changes_argument = func._schema.is_mutable
        is_view = share_memory(list_tensors(result), list_tensors((args, kwargs)))
        if changes_argument or not is_view:
            self.operations.append((func, args, kwargs, None if changes_argument else result))
        return result


class Graph:
    """Repeats what was recorded. Recording runs the update, too, which a CUDA graph would not: so
    the first replay, which follows it at once, does nothing.
    """

    def __init__(self) -> None:
        self.operations: list[tuple] = []
        self.ran_when_recorded = True
        self.replays = 0

    def replay(self) -> None:
        self.replays += 1
        if self.ran_when_recorded:
            self.ran_when_recorded = False
            return
        with torch.no_grad():
            for func, args, kwargs, result in self.operations:
                repeated = func(*args, **kwargs)
                if result is not None:
                    for old, new in zip(list_tensors(result), list_tensors(repeated), strict=True):
                        old.copy_(new)


@contextmanager
def record(graph: Graph, pool: None, stream: None) -> Iterator[None]:
    with Recorder() as recorder:
        yield
    graph.operations = recorder.operations


@pytest.fixture
def graphs_on_cpu(monkeypatch):
    """Let `training.graphs` run on a CPU."""
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", record)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (10**10, 10**10))
    monkeypatch.setattr(graphs, "keep_stream_and_generator", lambda: lambda: None)
