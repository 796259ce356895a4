"""What every kind of task has: a problem to train on, a scorer, and a loss."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import torch
from torch import Tensor, nn

from workflow_scripts.tasks.settings import Evaluation, Training

# loss(model, batch) -> (scalar loss, named parts of it, which are logged)
Loss = Callable[[nn.Module, Any], tuple[Tensor, dict[str, Tensor]]]


@dataclass(frozen=True)
class Problem:
    """What is trained, on what, by which loss.

    `validate(model)`, called in eval mode without gradients, returns named values; the training settings name the one
    that chooses the best weights (greater is better). A model may define `after_step()`, called after each update.
    `write_beside(folder)` writes what a checkpoint needs beside the weights. `tie` names a value that decides between
    equally good validations: the lowest is the best. If it is equal too, or there is no `tie`, the latest is the best.

    Values of a split that the settings keep further weights for have its name before theirs: `<split>_<value>`.
    """

    model: nn.Module
    loss: Loss
    batches: Sequence[Any]
    validate: Callable[[nn.Module], dict[str, float]]
    write_beside: Callable[[Path], None] | None = None
    tie: str | None = None


class MakeProblem(Protocol):
    """`tasks.<kind>.problem.make_problem`: the run of `spec` on the data in a folder, its tensors on `device`.

    init: folder of the weights that the run starts from, or None. The loss is the kind's own; an objective that the
    spec names is added to it later. Raises UserError when a file is missing or broken, or the spec does not fit
    the data.
    """

    def __call__(
        self, spec: dict[str, Any], settings: Training, data: Path, init: Path | None, device: torch.device
    ) -> Problem: ...


class Score(Protocol):
    """`tasks.<kind>.scoring.score`: (predictions, score rows) of every split of `settings`, of a trained run.

    run: content of run.json; checkpoint: the folder with its weights; progress: how to show it (`common.progress`). A
    measure that is not defined has a row with a `reason` in place of its value.
    """

    def __call__(
        self,
        run: dict[str, Any],
        checkpoint: Path,
        data: Path,
        settings: Evaluation,
        device: torch.device,
        progress: str,
    ) -> tuple[pa.Table, list[dict[str, Any]]]: ...
