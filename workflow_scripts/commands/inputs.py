"""Check the data and the initial weights that a command is given."""

import hashlib
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_mapping
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_data
from workflow_scripts.tasks.checkpoints import check_checkpoint, read_run
from workflow_scripts.tasks.run_spec import HubModel, Origin


def check_data(data: Path, task: str, scale: str | None) -> None:
    """Raise UserError unless the folder has the data of the task, at a scale those that the catalogue gives it."""
    found = read_mapping(data / "dataset.json")
    if found.get("task") != task:
        raise UserError(f"{data} contains the task {found.get('task')}, but the run needs {task}; correct --data")
    if scale and "spec" in found and found["spec"] != resolve_data(load_catalogue(), task, scale).to_json():
        raise UserError(f"{data} is not the data of {task} at scale {scale}; correct --data, or prepare it")


def check_init(where: object, origin: Origin, folder: Path | None, option: str) -> None:
    """Raise UserError, beginning with `where`, unless the folder has the weights of `origin`."""
    if bool(folder) != bool(origin):
        what = f"the run starts from {origin.model_dump()}" if origin else "the run starts from random weights"
        raise UserError(f"{where}: {what}; {'pass its folder with' if origin else 'remove'} {option}")
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
        raise UserError(f"{folder / broken[0]} differs from its sha256 in model.json; download it with fetch-model")


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
