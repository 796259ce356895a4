"""The spec that a job is given, and checks of its data and its initial weights."""

import argparse
import hashlib
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_mapping
from workflow_scripts.provenance.planned_run import PlannedRun, read_planned_run
from workflow_scripts.tasks.checkpoints import check_checkpoint, read_run
from workflow_scripts.tasks.run_spec import HubModel, Origin


def add_spec_arguments(parser: argparse.ArgumentParser, run: str, required: bool = True) -> None:
    """Add the arguments that name the spec of a job on a run. `run` is the form of a run's name."""
    what = parser.add_mutually_exclusive_group(required=required)
    what.add_argument(
        "--spec", type=Path, metavar="FILE", help="what ./reproduce writes to results/<scale>/specs"
    )
    what.add_argument(
        "--run", metavar="ID", help=f"{run}, whose spec is resolved from the catalogue"
    )
    parser.add_argument("--scale", help="scale of the catalogue; needed with --run")
    parser.set_defaults(planned=None)


def add_task_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the spec of a job on the data of a task."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--spec", type=Path, metavar="FILE", help="what ./reproduce writes to results/<scale>/specs"
    )
    what.add_argument(
        "--task", help="name in catalogue/tasks, whose spec is resolved from the catalogue"
    )
    parser.add_argument("--scale", help="scale of the catalogue; needed with --task")
    parser.set_defaults(planned=None)


def get_planned_run(args: argparse.Namespace) -> PlannedRun:
    """Return the run of the file `--spec`, or the one that `--run` was resolved to before the command was called."""
    return args.planned or read_planned_run(args.spec)


def check_data(data: Path, planned: PlannedRun) -> None:
    """Raise UserError unless the folder has the data of the run's task, of a planned run those of its spec."""
    found, task = read_mapping(data / "dataset.json"), planned.spec.task
    if found.get("task") != task:
        raise UserError(
            f"{data} contains the task {found.get('task')}, but the run needs {task}; correct --data"
        )
    if not planned.scale or "spec" not in found or not planned.spec.data:
        return
    if found["spec"] != planned.spec.data.to_json():
        raise UserError(
            f"{data} is not the data of {task} at scale {planned.scale}; correct --data, or prepare it"
        )


def check_init(where: object, origin: Origin, folder: Path | None, option: str) -> None:
    """Raise UserError, beginning with `where`, unless the folder has the weights of `origin`."""
    if bool(folder) != bool(origin):
        what = (
            f"the run starts from {origin.model_dump()}"
            if origin
            else "the run starts from random weights"
        )
        raise UserError(
            f"{where}: {what}; {'pass its folder with' if origin else 'remove'} {option}"
        )
    if folder and isinstance(origin, HubModel):
        check_hub_model(folder, origin)
    elif folder and (folder.parent / "run.json").exists():
        check_checkpoint(folder.parent, read_run(folder.parent))


def check_hub_model(folder: Path, origin: HubModel) -> None:
    """Raise UserError unless `fetch-model` wrote the hub model of a spec to the folder."""
    from workflow_scripts.data.sources.fetch_model import find_changed_files

    found = read_mapping(folder / "model.json")
    if (found.get("name"), found.get("revision")) != (origin.hub, origin.revision):
        raise UserError(
            f"{folder} contains {found.get('name')} at {found.get('revision')}, but the run starts from "
            f"{origin.hub} at {origin.revision}; download it with fetch-model"
        )
    if broken := find_changed_files(folder, found):
        raise UserError(
            f"{folder / broken[0]} differs from its sha256 in model.json; download it with fetch-model"
        )


def hash_weights(folder: Path) -> str:
    """Return the sha256 of model.safetensors; of a model in several files, over their names and contents."""
    whole = folder / "model.safetensors"
    files = [whole] if whole.exists() else sorted(folder.glob("*.safetensors"))
    if not files:
        raise UserError(f"{folder} has no *.safetensors; pass the folder of a trained model")
    digests = [hash_file(file) for file in files]
    if len(files) == 1:
        return digests[0]
    lines = "".join(f"{found}  {file.name}\n" for file, found in zip(files, digests, strict=True))
    return hashlib.sha256(lines.encode()).hexdigest()
