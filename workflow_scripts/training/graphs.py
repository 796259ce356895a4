"""Updates as CUDA graphs: one command starts the thousands of kernels of an update.

A small model's update is bound by the CPU, which starts each kernel by itself: about 20 microseconds an operation.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from workflow_scripts.tasks.batching import TensorBatch

# update(batch) -> logged values by name, scalars
Update = Callable[[TensorBatch], dict[str, Tensor]]
Shapes = tuple[torch.Size, ...]

MAX_GRAPHS = 256  # an epoch of SCAN, COGS or CoGnition has up to 121 shapes; a graph needs about 20 MB
MIN_FREE_MEMORY = 1 / 8  # of the GPU's: below this, batches of further shapes are updates without a graph


@dataclass
class CapturedUpdate:
    """A graph, the batch that it reads, and the values that it writes."""

    graph: torch.cuda.CUDAGraph
    batch: TensorBatch
    names: list[str]
    values: Tensor

    def replay(self, batch: TensorBatch) -> dict[str, Tensor]:
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
    """Makes each update by `update`, and from the second batch of a shape on by repeating it as a CUDA graph.

    The first batch of a shape does what must not be part of a graph: it loads libraries, and creates the state of the
    optimiser. A graph draws the random numbers that `update` would draw, and it reads weights, optimiser and learning
    rate at their places in memory. So nothing but the speed depends on which updates are graphs. All graphs share one
    pool of memory, since only one runs at a time.

    A shape that cannot be captured stays without a graph: `discard` clears what the failed attempt left in the model
    and the optimiser, and `warn` gets a line. Shapes that are rare stay without one, too: they do not come twice, or
    come when there are MAX_GRAPHS already, or little memory is free.
    """

    def __init__(self, update: Update, discard: Callable[[], None], warn: Callable[[str], None]):
        self.update = update
        self.discard = discard
        self.warn = warn
        self.seen: set[Shapes] = set()
        self.refused: set[Shapes] = set()
        self.captured: dict[Shapes, CapturedUpdate] = {}
        self.pool = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream()

    def __call__(self, batch: TensorBatch) -> dict[str, Tensor]:
        """Make one update, and return its values."""
        shapes = tuple(tensor.shape for tensor in list_tensors(batch).values())
        if shapes not in self.captured and shapes in self.seen and shapes not in self.refused:
            self._try_to_capture(shapes, batch)
        self.seen.add(shapes)
        if shapes in self.captured:
            return self.captured[shapes].replay(batch)
        return self.update(batch)

    def _try_to_capture(self, shapes: Shapes, batch: TensorBatch) -> None:
        if len(self.captured) == MAX_GRAPHS or not has_free_memory():
            self.refused.add(shapes)
            return
        try:
            self.captured[shapes] = self._capture(batch)
        except RuntimeError as error:  # of CUDA; torch.OutOfMemoryError is one, too
            self.refused.add(shapes)
            self.discard()
            sizes = ", ".join("x".join(map(str, shape)) for shape in shapes)
            reason = str(error).strip().split("\n")[0]
            self.warn(f"warning: updates of batches of {sizes} run without a CUDA graph, more slowly: {reason}")

    def _capture(self, batch: TensorBatch) -> CapturedUpdate:
        """Record an update. Recording does not run it."""
        own_batch = replace(batch, **{name: tensor.clone() for name, tensor in list_tensors(batch).items()})
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
            values = self.update(own_batch)
            stacked = torch.stack([value.float() for value in values.values()])
        return CapturedUpdate(graph, own_batch, list(values), stacked)


def has_free_memory() -> bool:
    """Whether enough of the GPU's memory is free for one more graph."""
    free, total = torch.cuda.mem_get_info()
    return free > MIN_FREE_MEMORY * total
