"""The interface of training on a kind of task: a problem and a loss. For scoring see `checkpoints`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from workflow_scripts.tasks.batching import ShuffledBatches
from workflow_scripts.tasks.run_spec import RunSpec

# loss(model, batch) -> (scalar loss, named parts of it, which are logged)
Loss = Callable[[nn.Module, Any], tuple[Tensor, dict[str, Tensor]]]


@dataclass(frozen=True)
class Problem:
    """Model, batches, loss and validation of one training.

    `validate(model)` is called in eval mode without gradients and returns named values; on a further split, the name is
    `<split>_<value>`. The training settings name the value that chooses the best weights: greater is better. Of equal
    ones the lowest `tie_break_metric`, if one is named, is the best, and then the latest. With validation none it is
    not called. `save_extra_files(folder)` writes further files of a checkpoint. A model may define `finish_step()`,
    called after each update.

    capturable: whether a GPU can repeat an update as a graph. Then every size in an update follows from the shapes of
    its batch, and nothing waits for the device: no boolean index, no `nonzero`, no `item`.
    compilable: layers that can be compiled, each with `dynamic=True` and `fullgraph=True`.
    """

    model: nn.Module
    loss: Loss
    batches: Sequence[Any] | ShuffledBatches
    validate: Callable[[nn.Module], dict[str, float]]
    save_extra_files: Callable[[Path], None] | None = None
    tie_break_metric: str | None = None
    capturable: bool = False
    compilable: Sequence[nn.Module] = ()


def average_over(values: Tensor, counted: Tensor) -> Tensor:
    """Return the mean of values [...] at the positions where counted [...] is True, or 0 if there are none.

    `values[counted].mean()` has a size that depends on the data, for which the program would have to wait.
    """
    return torch.where(counted, values, 0.0).sum() / counted.sum().clamp(min=1)


# `tasks.<kind>.problem.make_problem(spec, data, init, device)`: the problem of a run, tensors on `device`.
# init: folder of the initial weights, or None. The loss is the kind's own; the objective of the spec is added later.
# Raises UserError if a file is missing or broken, or if the spec does not fit the data.
MakeProblem = Callable[[RunSpec, Path, Path | None, torch.device], Problem]
