"""Updates as CUDA graphs: one command starts the thousands of kernels of an update.

A small model's update is bound by the CPU, which starts each kernel by itself: about 20
microseconds an operation.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from workflow_scripts.tasks.batching import TensorBatch

# update(batch) -> logged values by name, scalars
Update = Callable[[TensorBatch], dict[str, Tensor]]
Shapes = tuple[torch.Size, ...]

# An epoch of SCAN, COGS or CoGnition has up to 121 shapes; a graph needs about 20 MB.
MAX_GRAPHS = 256
# of the GPU's: below this, batches of further shapes are updates without a graph
MIN_FREE_MEMORY = 1 / 8

# Operations whose size, or Python value, depends on the data. The last is `item`, `float` and `if`.
WAITING = ("nonzero", "masked_select", "unique", "_unique", "_local_scalar_dense")


class WaitDetector(TorchDispatchMode):
    """Finds out whether the operations in its block wait for a GPU, which a graph cannot do.

    `reason` names the first that does: a size or a Python value that depends on the data, or a copy
    to another device.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reason: str | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if self.reason is None:
            self.reason = describe_wait(func, args, result)
        return result


def describe_wait(func: Any, args: Any, result: Any) -> str | None:
    """Return why the program waits for the GPU, or the GPU for a copy; None if neither does."""
    name = func._overloadpacket.__name__
    if name.startswith(WAITING):
        return f"{name} depends on the data"
    if "index" in name and has_boolean(args[1:2]):
        return f"{name} with a boolean index depends on the data"
    if name in ("copy_", "_to_copy"):
        devices = {tensor.device.type for tensor in select_tensors((args, result))}
        if len(devices) > 1:
            return f"{name} moves a tensor between {' and '.join(sorted(devices))}"
    return None


def has_boolean(tree: Any) -> bool:
    """Return whether one of the tensors of nested tuples, lists and dicts is boolean."""
    return any(tensor.dtype == torch.bool for tensor in select_tensors(tree))


def select_tensors(tree: Any) -> list[Tensor]:
    """Return the tensors of nested tuples, lists and dicts."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


@dataclass
class CapturedUpdate:
    """A graph, the batch that it reads, and the values that it writes."""

    graph: torch.cuda.CUDAGraph
    batch: TensorBatch
    names: list[str]
    values: Tensor

    def repeat(self, batch: TensorBatch) -> dict[str, Tensor]:
        """Repeat the update for another batch of the same shapes, and return its values."""
        for name, tensor in list_tensors(self.batch).items():
            tensor.copy_(getattr(batch, name), non_blocking=True)
        self.graph.replay()
        values = self.values.clone()  # the next replay overwrites them
        return dict(zip(self.names, values.unbind(), strict=True))


def list_tensors(batch: TensorBatch) -> dict[str, Tensor]:
    """Return the tensors of a batch by name."""
    return {field.name: getattr(batch, field.name) for field in fields(batch)}


class GraphedUpdates:
    """Makes each update by `update`, and repeats those of a known shape as a CUDA graph.

    A shape is known from its second batch on. The first batch of a shape does what must not be part
    of a graph: it loads libraries, and creates the state of the optimiser. A graph draws the random
    numbers that `update` would draw, and it reads weights, optimiser and learning rate at their
    places in memory. So nothing but the speed depends on which updates are graphs. All graphs share
    one pool of memory, since only one runs at a time.

    A shape that cannot be captured stays without a graph, and `warn` gets a line. With
    `watches_first` the first update of a shape is watched for operations that wait for the GPU.
    Where a capture fails for another reason, `discard` clears what it left in model and optimiser.
    Shapes that are rare stay without a graph, too: they do not come twice, or come when there are
    MAX_GRAPHS already, or little memory is free. Compiled layers cannot be watched.
    """

    def __init__(
        self,
        update: Update,
        discard: Callable[[], None],
        warn: Callable[[str], None],
        watches_first: bool = True,
    ):
        self.update = update
        self.discard = discard
        self.warn = warn
        self.watches_first = watches_first
        self.seen: set[Shapes] = set()
        self.refused: set[Shapes] = set()
        self.captured: dict[Shapes, CapturedUpdate] = {}
        self.pool = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream()

    def __call__(self, batch: TensorBatch) -> dict[str, Tensor]:
        """Make one update, and return its values."""
        shapes = tuple(tensor.shape for tensor in list_tensors(batch).values())
        if shapes not in self.seen:
            self.seen.add(shapes)
            return self._update_first(shapes, batch)
        if shapes not in self.captured and shapes not in self.refused:
            self._try_to_capture(shapes, batch)
        if shapes in self.captured:
            return self.captured[shapes].repeat(batch)
        return self.update(batch)

    def _update_first(self, shapes: Shapes, batch: TensorBatch) -> dict[str, Tensor]:
        """Make the first update of a shape. Refuse the shape if an operation waits for the GPU."""
        if not self.watches_first:
            return self.update(batch)
        with WaitDetector() as detector:
            values = self.update(batch)
        if detector.reason:
            self._refuse(shapes, detector.reason)
        return values

    def _refuse(self, shapes: Shapes, reason: str) -> None:
        self.refused.add(shapes)
        sizes = ", ".join("x".join(map(str, shape)) for shape in shapes)
        self.warn(
            f"warning: updates of batches of {sizes} run without a CUDA graph, more slowly: "
            f"{reason}"
        )

    def _try_to_capture(self, shapes: Shapes, batch: TensorBatch) -> None:
        if len(self.captured) == MAX_GRAPHS or not has_free_memory():
            self.refused.add(shapes)
            return
        restore = keep_stream_and_generator()
        try:
            self.captured[shapes] = self._record_update(batch)
        except RuntimeError as error:  # of CUDA; torch.OutOfMemoryError is one, too
            restore()
            self.captured.clear()  # they draw from what was the generator's state
            self.discard()
            self._refuse(shapes, str(error).strip().split("\n")[0])

    def _record_update(self, batch: TensorBatch) -> CapturedUpdate:
        """Record an update. Recording does not run it."""
        copies = {name: tensor.clone() for name, tensor in list_tensors(batch).items()}
        own_batch = replace(batch, **copies)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
            values = self.update(own_batch)
            stacked = torch.stack([value.float() for value in values.values()])
        return CapturedUpdate(graph, own_batch, list(values), stacked)


def keep_stream_and_generator() -> Callable[[], None]:
    """Return a function that restores the GPU's present stream and random generator.

    A failed capture leaves others in use.
    """
    stream = torch.cuda.current_stream()
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    state = generator.clone_state()

    def use_kept_state() -> None:
        torch.cuda.set_stream(stream)
        generator.graphsafe_set_state(state)

    return use_kept_state


def has_free_memory() -> bool:
    """Whether enough of the GPU's memory is free for one more graph."""
    free, total = torch.cuda.mem_get_info()
    return free > MIN_FREE_MEMORY * total
