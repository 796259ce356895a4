"""Train one run from its resolved spec, and write its checkpoint."""

import importlib
from dataclasses import replace
from pathlib import Path

import torch

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.progress import Reporter
from workflow_scripts.models.weights import list_weights, read_weights, write_tensors
from workflow_scripts.tasks.base import TrainingSetup
from workflow_scripts.tasks.run_spec import NamedSettings, RunSpec
from workflow_scripts.training import loop
from workflow_scripts.training.machine import set_precision, set_seed_and_threads
from workflow_scripts.training.settings import CHOSEN, LAST, Training
from workflow_scripts.training.state import StateFolder, TrainingState


def train_run(
    spec: RunSpec,
    data: Path,
    init: Path | None,
    device: torch.device,
    folder: StateFolder,
    reporter: Reporter,
    save_every: float,
) -> tuple[TrainingSetup, TrainingState]:
    """Train from the state in the locked `folder`, or from the start.

    The setup's model then has the last weights. Epochs in the settings become steps, by the number
    of batches. Raises stopping.StopRequested after a signal, and UserError if files are broken or
    the GPU's memory is full.
    """
    setup = set_up_training(spec, data, init, device)
    settings = spec.training.count_steps(len(setup.batches))
    report_length(settings, reporter)
    setup = add_objective(setup, spec.objective)
    if settings.is_compiled():
        compile_layers(setup, device)
    try:
        state = loop.train(setup, settings, spec.seed, device, folder, reporter, save_every)
    except torch.OutOfMemoryError as error:
        raise UserError(
            f"{reporter.name}: the GPU's memory is full; "
            "raise training.accumulate, or lower training.batch_tokens"
        ) from error
    return setup, state


def report_length(settings: Training, reporter: Reporter) -> None:
    """Give the reporter the number of steps, and warn if the warm-up is no shorter."""
    reporter.set_total(settings.n_updates)
    if settings.warmup >= settings.n_updates:
        reporter.print_line(
            f"warning: the warm-up of {settings.warmup:,} steps is no shorter than the run's "
            f"{settings.n_updates:,}, so the learning rate does not reach its peak; "
            "set training.warmup_fraction, or lower training.warmup_steps"
        )


def set_up_training(
    spec: RunSpec, data: Path, init: Path | None, device: torch.device
) -> TrainingSetup:
    """Seed this process and make the training setup of a run, with the loss of its kind of task.

    It is that of `set_up_training` in tasks/<kind>/training_setup.py: the model, batches, loss and
    validation, with tensors on `device`. init: folder of the initial weights, or None. The
    objective of the spec is added later. Raises UserError if a file is missing or broken, or if
    the spec does not fit the data.
    """
    set_seed_and_threads(spec.seed, spec.training.torch_threads, device)
    set_precision(spec.training.precision, device)
    module = importlib.import_module(f"workflow_scripts.tasks.{spec.kind}.training_setup")
    return module.set_up_training(spec, data, init, device)


def add_objective(setup: TrainingSetup, objective: NamedSettings | None) -> TrainingSetup:
    """Return the setup with the loss of an objective, if there is one.

    The objective may build on the loss of the setup.
    """
    if objective is None:
        return setup
    module = importlib.import_module(f"workflow_scripts.objectives.{objective.name}.objective")
    loss = module.build(objective.settings, setup.loss)
    # Without CAPTURABLE = True the shapes in an objective may depend on the values of the data, and
    # a CUDA graph repeats fixed shapes.
    capturable = setup.capturable and getattr(module, "CAPTURABLE", False)
    return replace(setup, loss=loss, capturable=capturable)


def compile_layers(setup: TrainingSetup, device: torch.device) -> None:
    """Compile the layers of a setup for all shapes.

    Raises UserError where that is not supported.
    """
    if device.type != "cuda":
        raise UserError(
            "training.compiled: layers are compiled for an NVIDIA GPU only, "
            f"not for {device.type}; leave it"
        )
    for layer in setup.compilable:
        layer.compile(dynamic=True, fullgraph=True)


def write_checkpoint(
    out: Path, setup: TrainingSetup, settings: Training, state: TrainingState, folder: StateFolder
) -> None:
    """Write a finished training to an empty folder.

    These are the best weights, those that are kept besides, and extra files.
    """
    for name, best in state.best.items():
        weights = read_weights(folder.locate_best(name, best.step))
        write_tensors(weights, out / f"{name}.safetensors")
    if LAST in settings.list_kept_checkpoints():
        write_tensors(list_weights(setup.model), out / f"{LAST}.safetensors")
    if setup.save_extra_files:
        setup.save_extra_files(out)


def write_initial_checkpoint(out: Path, spec: RunSpec, data: Path, device: torch.device) -> None:
    """Write the checkpoint with which the training of `spec` begins.

    The training must begin with random weights.
    """
    spec = replace(spec, training=spec.training.drop_validation())
    setup = set_up_training(spec, data, None, device)
    write_tensors(list_weights(setup.model), out / f"{CHOSEN}.safetensors")
    if setup.save_extra_files:
        setup.save_extra_files(out)
