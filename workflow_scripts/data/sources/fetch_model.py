"""Models of the Hugging Face hub at their pinned commit: selection of their files, and checks of local copies."""

import os
import re
import shutil
from collections.abc import Collection
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_json, write_json
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.data.sources.declared import Repository, load_repositories
from workflow_scripts.data.sources.download import count_bytes

MANIFEST = "model.json"
NEEDED = ("config.json", "tokenizer.json")
WELCOME = ("generation_config.json", "tokenizer_config.json")
WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")


def is_model_file(file: str) -> bool:
    """Return whether a model is loaded from this file; never true for pickled weights or code."""
    return file in (*NEEDED, *WELCOME, WHOLE, INDEX) or SHARD.fullmatch(file) is not None


def select_model_files(files: Collection[str], where: str) -> list[str]:
    """Select the needed files of a repository. Raises UserError if a required file is missing."""
    weights = [WHOLE] if WHOLE in files else sorted(file for file in files if SHARD.fullmatch(file))
    if not weights:
        pickled = sorted(file for file in files if file.endswith((".bin", ".pt", ".pth", ".ckpt")))
        why = f"only {pickled[0]}, and a pickled file can run code; pin" if pickled else "so no weights; pin"
        raise UserError(f"{where} has no {WHOLE}, {why} a commit with safetensors in sources.yaml")
    missing = [file for file in (*NEEDED, *([INDEX] if weights != [WHOLE] else [])) if file not in files]
    if missing:
        raise UserError(f"{where} has no {missing[0]}; pin another commit in sources.yaml")
    return [*NEEDED, *(file for file in WELCOME if file in files), *([INDEX] if weights != [WHOLE] else []), *weights]


def find_repository(name: str) -> Repository:
    """Find a declared model by name. Raises UserError if it is unknown (with the nearest name) or has no commit."""
    models = {name: entry for name, entry in load_repositories().items() if entry.kind == "model"}
    if name not in models:
        raise UserError(f"no model '{name}' in sources.yaml; {suggest_name(name, models)}")
    if models[name].revision is None:
        raise UserError(f"sources.yaml: key 'hugging_face.{name}.revision' is null; pin a commit to fetch it")
    return models[name]


def write_model_manifest(name: str, repository: Repository, folder: Path) -> None:
    """Write model.json: name, commit, licence, and sha256 and bytes of each file.

    Raises UserError if the index of the weights names a missing file.
    """
    if (folder / INDEX).exists():
        for shard in sorted(set(read_json(folder / INDEX).get("weight_map", {}).values())):
            if not (folder / shard).is_file():
                raise UserError(f"{folder / INDEX} lists {shard}, which is missing; get the model again")
    chosen = select_model_files([path.name for path in folder.iterdir()], str(folder))
    files = {file: {"sha256": hash_file(folder / file), "bytes": count_bytes(folder / file)} for file in chosen}
    what = {"name": name, "revision": repository.revision, "licence": repository.licence, "files": files}
    write_json(folder / MANIFEST, what)


def is_complete_model(folder: Path, name: str, revision: str) -> bool:
    """Return whether a folder contains that commit of the model, unchanged according to its manifest."""
    if not (folder / MANIFEST).is_file():
        return False
    manifest = read_json(folder / MANIFEST)
    if (manifest.get("name"), manifest.get("revision")) != (name, revision):
        return False
    return not find_changed_files(folder, manifest)


def find_changed_files(folder: Path, manifest: dict) -> list[str]:
    """List the files that are missing or differ from the manifest."""
    return [
        file
        for file, entry in manifest["files"].items()
        if not (folder / file).is_file() or hash_file(folder / file) != entry["sha256"]
    ]


def copy_model(name: str, repository: Repository, source: Path, part: Path) -> str:
    """Link or copy a model from a folder to `part`. Returns a note on its origin and how its commit is known."""
    if not source.is_dir():
        raise UserError(
            f"{source} does not exist; get it where there is a network, with: "
            f"hf download {name} --revision {repository.revision} --local-dir {source}"
        )
    chosen = select_model_files([path.name for path in source.iterdir()], str(source))
    told = verify_commit(name, repository.revision, source, chosen)
    shutil.rmtree(part)
    part.mkdir()
    for file in chosen:
        original = (source / file).resolve()
        try:
            os.link(original, part / file)  # a hard link needs no space
        except OSError:
            shutil.copyfile(original, part / file)
    return f"from {source}, {told}"


def verify_commit(name: str, revision: str, source: Path, files: list[str]) -> str:
    """Describe how the commit of a folder is known. Raises UserError for another commit or a changed file.

    A folder written by this command has a manifest. `hf download` writes a metadata file for each file; its first line
    is the commit.
    """
    if (source / MANIFEST).is_file():
        manifest = read_json(source / MANIFEST)
        if (manifest.get("name"), manifest.get("revision")) != (name, revision):
            raise UserError(f"{source} holds {manifest.get('name')} at {manifest.get('revision')}, not {revision}")
        if broken := find_changed_files(source, manifest):
            raise UserError(f"{source / broken[0]} differs from its {MANIFEST}; copy the folder again")
        return f"checked against its {MANIFEST}"
    records = [source / ".cache/huggingface/download" / f"{file}.metadata" for file in files]
    for file, record in zip(files, records, strict=True):
        if record.is_file() and (commit := record.read_text().split("\n")[0]) != revision:
            raise UserError(
                f"{source / file} is of the commit {commit}; get {revision} with: "
                f"hf download {name} --revision {revision} --local-dir {source}"
            )
    if all(record.is_file() for record in records):
        return "whose records name the pinned commit"
    return f"on trust: nothing there says that it is the commit {revision}"
