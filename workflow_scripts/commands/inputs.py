"""The spec that a job is given, and checks of its data and its initial weights."""

import argparse
import hashlib
import math
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_mapping
from workflow_scripts.common.result_folders import DataFolder, RunFolder
from workflow_scripts.provenance.run_job_spec import RunJobSpec, read_run_job_spec
from workflow_scripts.tasks.checkpoints import check_checkpoint, read_run
from workflow_scripts.tasks.run_spec import HubModel, Origin, ParentRun


def add_spec_arguments(parser: argparse.ArgumentParser, run: str, required: bool = True) -> None:
    """Add the arguments that name the spec of a job on a run. `run` is the form of a run's name."""
    names = parser.add_mutually_exclusive_group(required=required)
    names.add_argument(
        "--spec", type=Path, metavar="FILE", help="what ./reproduce writes to results/<scale>/specs"
    )
    names.add_argument(
        "--run", metavar="ID", help=f"{run}, whose spec is resolved from the catalogue"
    )
    parser.add_argument("--scale", help="scale of the catalogue; needed with --run")
    parser.set_defaults(job_spec=None)


def add_task_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the spec of a job on the data of a task."""
    names = parser.add_mutually_exclusive_group(required=True)
    names.add_argument(
        "--spec", type=Path, metavar="FILE", help="what ./reproduce writes to results/<scale>/specs"
    )
    names.add_argument(
        "--task", help="name in catalogue/tasks, whose spec is resolved from the catalogue"
    )
    parser.add_argument("--scale", help="scale of the catalogue; needed with --task")
    parser.set_defaults(job_spec=None)


def add_state_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the commands that resume after a kill."""
    parser.add_argument(
        "--state", type=Path, metavar="DIR", help="saved state (default: OUT.state)"
    )
    parser.add_argument(
        "--save-every", type=parse_seconds, default=60, metavar="SECONDS", help="time between saves"
    )


def parse_seconds(text: str) -> float:
    """Parse a number that is not negative."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if seconds >= 0:
        return seconds
    raise argparse.ArgumentTypeError(
        f"'{text}' is not a number of seconds from 0; give one such as 60"
    )


def find_state(args: argparse.Namespace) -> Path:
    """Return the folder of `--state`, or its default."""
    return args.state or args.out.with_name(f"{args.out.name}.state")


def get_run_job_spec(args: argparse.Namespace) -> RunJobSpec:
    """Return the run of the file `--spec`, or the one that `--run` names.

    A name was resolved before the command was called.
    """
    return args.job_spec or read_run_job_spec(args.spec)


def check_data(data: Path, job_spec: RunJobSpec) -> None:
    """Raise UserError unless the folder has the data of the run's task.

    Of a run with a scale they must be those of its spec.
    """
    dataset = read_mapping(DataFolder(data).manifest)
    task = job_spec.spec.task
    if dataset.get("task") != task:
        raise UserError(
            f"{data} contains the task {dataset.get('task')}, but the run needs {task}; "
            "correct --data"
        )
    if not job_spec.scale or not job_spec.spec.data:
        return  # a person wrote the spec
    if "spec" not in dataset:
        return
    if dataset["spec"] != job_spec.spec.data.to_json():
        raise UserError(
            f"{data} is not the data of {task} at scale {job_spec.scale}; "
            "correct --data, or prepare it"
        )


def check_init(place: object, origin: Origin, folder: Path | None, option: str) -> None:
    """Raise UserError, beginning with `place`, unless the folder fits what the run starts from.

    A model of the hub must be the one of `origin`, unchanged. Weights of a run must be those of
    the run of `origin`, unchanged since their training. Weights without a run.json next to their
    folder are from elsewhere, and are taken as they are.
    """
    if origin and not folder:
        raise UserError(
            f"{place}: the run starts from {origin.model_dump()}; pass its folder with {option}"
        )
    if folder and not origin:
        raise UserError(f"{place}: the run starts from random weights; remove {option}")
    if not folder:
        return
    if isinstance(origin, HubModel):
        check_hub_model(folder, origin)
    elif isinstance(origin, ParentRun) and RunFolder(folder.parent).manifest.exists():
        check_parent(place, folder.parent, origin, option)


def check_parent(place: object, folder: Path, parent: ParentRun, option: str) -> None:
    """Raise UserError, beginning with `place`, unless the folder has the unchanged parent run."""
    trained = read_run(folder)
    if trained.run != parent.run:
        raise UserError(
            f"{place}: the weights are those of {parent.run}, but {folder} has {trained.run}; "
            f"correct {option}"
        )
    if trained.spec_digest != parent.spec:
        raise UserError(
            f"{place}: {RunFolder(folder).manifest} has another configuration of {parent.run} than "
            "the spec names; train that run again"
        )
    check_checkpoint(folder, trained)


def check_hub_model(folder: Path, origin: HubModel) -> None:
    """Raise UserError unless `fetch-model` wrote the hub model of a spec to the folder."""
    from workflow_scripts.data.sources.fetch_model import find_changed_file, read_model_manifest

    manifest = read_model_manifest(folder)
    if manifest.name != origin.hub or manifest.revision != origin.revision:
        raise UserError(
            f"{folder} contains {manifest.name} at {manifest.revision}, but the run starts from "
            f"{origin.hub} at {origin.revision}; download it with fetch-model"
        )
    problem = find_changed_file(folder, manifest)
    if problem:
        raise UserError(f"{problem}; download it with fetch-model")


def hash_weights(folder: Path) -> str:
    """Return the sha256 of model.safetensors.

    Of a model in several files it is over their names and contents.
    """
    whole = folder / "model.safetensors"
    if whole.exists():
        return hash_file(whole)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise UserError(f"{folder} has no *.safetensors; pass the folder of a trained model")
    if len(files) == 1:
        return hash_file(files[0])
    lines = "".join(f"{hash_file(file)}  {file.name}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()
