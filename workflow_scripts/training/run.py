"""One training, from its resolved spec to the files of its checkpoint."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.progress import Reporter
from workflow_scripts.schema import LAST, Training
from workflow_scripts.training import loop
from workflow_scripts.training.machine import prepare
from workflow_scripts.training.state import State, StateFolder, named_weights, read_weights, write_tensors


def train_run(
    spec: dict[str, Any],
    settings: Training,
    data: Path,
    init: Path | None,
    device: torch.device,
    folder: StateFolder,
    reporter: Reporter,
    save_every: float,
) -> tuple[loop.Task, State]:
    """Train from the state in `folder`, which is locked, or from the start; the task's model then has the last weights.

    `settings` are the training settings of `spec`, or those that a search tries in their place. Raises
    loop.StopRequested after a signal, and UserError where files are broken, or the GPU's memory is full.
    """
    prepare(spec["seed"], settings.torch_threads, device)
    make_task: Callable = importlib.import_module(f"workflow_scripts.training.{spec['kind']}").make_task
    task = make_task(spec, settings, data, init, device)
    try:
        return task, loop.train(task, settings, spec["seed"], device, folder, reporter, save_every)
    except torch.OutOfMemoryError as error:
        raise UserError(f"{reporter.name}: the GPU's memory is full; lower training.batch_tokens") from error


def write_checkpoint(out: Path, task: loop.Task, settings: Training, state: State, folder: StateFolder) -> None:
    """Write the best weights of a finished training, those that `settings.also_keep` asks for, and what else its model
    needs, into an empty folder."""
    write_tensors(read_weights(folder.best_path(state.best_step)), out / "model.safetensors")
    for split, kept in state.kept.items():
        write_tensors(read_weights(folder.kept_path(split, kept["step"])), out / f"{split}.safetensors")
    if LAST in settings.also_keep:
        write_tensors(named_weights(task.model), out / f"{LAST}.safetensors")
    if task.write_beside:
        task.write_beside(out)
