"""Models of the Hugging Face hub at their pinned commit: download and checks of local copies.

A download can resume.
"""

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_json, write_json
from workflow_scripts.common.result_folders import HubModelFolder
from workflow_scripts.common.validation import StrictModel, parse_as, suggest_name
from workflow_scripts.data.sources.declared import Repository, load_repositories
from workflow_scripts.data.sources.fetch import (
    TRANSIENT_STATUSES,
    Advance,
    Request,
    RetryPolicy,
    count_bytes,
    download_checked,
)
from workflow_scripts.data.sources.http_client import (
    check_network_settings,
    suggest_network_check,
)

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.hf_api import RepoSibling

TIMEOUT = 30.0  # seconds to wait for an answer of the hub
NEEDED = ("config.json", "tokenizer.json")
WELCOME = ("generation_config.json", "tokenizer_config.json")
WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")


def is_model_file(file: str) -> bool:
    """Return whether a model is loaded from this file; never true for pickled weights or code."""
    return file in (*NEEDED, *WELCOME, WHOLE, INDEX) or SHARD.fullmatch(file) is not None


def select_model_files(files: Collection[str], place: str) -> list[str]:
    """Select the needed files of the repository or folder `place`.

    Raises UserError if a required file is missing.
    """
    if WHOLE in files:
        index = []
        weights = [WHOLE]
    else:
        index = [INDEX]
        weights = sorted(filter(SHARD.fullmatch, files))
    if not weights:
        pickled = sorted(file for file in files if file.endswith((".bin", ".pt", ".pth", ".ckpt")))
        reason = "so no weights"
        if pickled:
            reason = f"only {pickled[0]}, and a pickled file can run code"
        raise UserError(
            f"{place} has no {WHOLE}, {reason}; pin a commit with safetensors in sources.yaml"
        )
    for file in (*NEEDED, *index):
        if file not in files:
            raise UserError(f"{place} has no {file}; pin another commit in sources.yaml")
    welcome = [file for file in WELCOME if file in files]
    return [*NEEDED, *welcome, *index, *weights]


def find_repository(name: str) -> Repository:
    """Find a declared model by name.

    Raises UserError if it is unknown (with the nearest name) or has no commit.
    """
    repositories = load_repositories()
    models = {key: entry for key, entry in repositories.items() if entry.kind == "model"}
    if name not in models:
        raise UserError(f"no model '{name}' in sources.yaml; {suggest_name(name, models)}")
    if models[name].revision is None:
        raise UserError(
            f"sources.yaml: key 'hugging_face.{name}.revision' is null; pin a commit to fetch it"
        )
    return models[name]


class ModelFile(StrictModel):
    """A file of a model in model.json."""

    sha256: str
    bytes: int


class ModelManifest(StrictModel):
    """The content of model.json."""

    name: str
    revision: str
    licence: str | None = None
    files: dict[str, ModelFile]


def read_model_manifest(folder: Path) -> ModelManifest:
    """Read model.json of a folder. Raises UserError if it is missing or damaged."""
    file = HubModelFolder(folder).manifest
    return parse_as(ModelManifest, read_json(file), file)


def write_model_manifest(name: str, repository: Repository, folder: Path) -> None:
    """Write model.json, which lists the files.

    Raises UserError if the index of the weights names a missing file.
    """
    if (folder / INDEX).exists():
        for shard in sorted(set(read_json(folder / INDEX).get("weight_map", {}).values())):
            if not (folder / shard).is_file():
                raise UserError(
                    f"{folder / INDEX} lists {shard}, which is missing; get the model again"
                )
    assert repository.revision  # find_repository has checked it
    files = {}
    for file in select_model_files([path.name for path in folder.iterdir()], str(folder)):
        path = folder / file
        files[file] = ModelFile(sha256=hash_file(path), bytes=count_bytes(path))
    manifest = ModelManifest(
        name=name, revision=repository.revision, licence=repository.licence, files=files
    )
    write_json(HubModelFolder(folder).manifest, manifest.model_dump())


def is_complete_model(folder: Path, name: str, revision: str) -> bool:
    """Return whether a folder contains that commit of the model, unchanged by its manifest."""
    if not HubModelFolder(folder).manifest.is_file():
        return False
    return find_manifest_problem(folder, name, revision) is None


def find_manifest_problem(folder: Path, name: str, revision: str | None) -> str | None:
    """Describe how a folder differs from that commit of the model, or return None.

    Its manifest is compared, which must exist.
    """
    try:
        manifest = read_model_manifest(folder)
    except UserError as error:
        return str(error)
    if (manifest.name, manifest.revision) != (name, revision):
        return f"{folder} holds {manifest.name} at {manifest.revision}, not {revision}"
    problem = find_changed_file(folder, manifest)
    return f"{problem}; copy the folder again" if problem else None


def find_changed_file(folder: Path, manifest: ModelManifest) -> str | None:
    """Say which file of the model is missing, changed or not in the manifest; None if none is."""
    name = HubModelFolder(folder).manifest.name
    for file, entry in manifest.files.items():
        path = folder / file
        if not path.is_file():
            return f"{path} is missing"
        if hash_file(path) != entry.sha256:
            return f"{path} differs from its sha256 in {name}"
    try:
        files = select_model_files([path.name for path in folder.iterdir()], str(folder))
    except UserError:
        return f"{folder / name} does not list all files that a model needs"
    for file in files:
        if file not in manifest.files:
            return f"{folder / file} is not in {name}"
    return None


def copy_model(name: str, repository: Repository, source: Path, part: Path) -> str:
    """Link or copy a model from a folder to the folder `part`, whose content is replaced.

    Returns a note on its origin and how its commit is known. Raises UserError if the folder does
    not exist, lacks a file, or holds another commit or a changed file.
    """
    if not source.is_dir():
        raise UserError(
            f"{source} does not exist; get it where there is a network, with: "
            f"hf download {name} --revision {repository.revision} --local-dir {source}"
        )
    files = select_model_files([path.name for path in source.iterdir()], str(source))
    evidence = verify_commit(name, repository.revision, source, files)
    shutil.rmtree(part)
    part.mkdir()
    for file in files:
        original = (source / file).resolve()
        try:
            os.link(original, part / file)  # a hard link needs no space
        except OSError:
            shutil.copyfile(original, part / file)
    return f"from {source}, {evidence}"


def verify_commit(name: str, revision: str | None, source: Path, files: list[str]) -> str:
    """Describe how the commit of a folder is known.

    Raises UserError for another commit or a changed file.
    """
    manifest = HubModelFolder(source).manifest
    if manifest.is_file():  # this command wrote the folder
        if problem := find_manifest_problem(source, name, revision):
            raise UserError(problem)
        return f"checked against its {manifest.name}"
    # `hf download` writes a metadata file for each file; its first line is the commit.
    records = [source / ".cache/huggingface/download" / f"{file}.metadata" for file in files]
    for file, record in zip(files, records, strict=True):
        if not record.is_file():
            continue
        commit = record.read_text(encoding="utf-8").split("\n")[0]
        if commit != revision:
            raise UserError(
                f"{source / file} is of the commit {commit}; get {revision} with: "
                f"hf download {name} --revision {revision} --local-dir {source}"
            )
    if all(record.is_file() for record in records):
        return "whose records name the pinned commit"
    return f"on trust: nothing there says that it is the commit {revision}"


def download_files(
    name: str, repository: Repository, part: Path, policy: RetryPolicy, advance: Advance
) -> str:
    """Download a model's files to the folder `part`, resuming from files in it.

    Returns a note on their origin.

    Why not `snapshot_download` (2.4.0): killed in the middle of a file, it starts again at byte 0
    and leaves the part; it takes bytes of another sha256 than the hub lists, and a repository
    without safetensors, without an error. So huggingface_hub only gives sizes, checksums and
    errors.
    """
    from huggingface_hub import HfApi, get_token, hf_hub_url

    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"
    if not re.fullmatch(r"https?://[^\s@]+", endpoint):
        raise UserError(
            "HF_ENDPOINT is not of the form https://host, without a password; correct or unset it"
        )
    token = get_token()
    if token and not re.fullmatch(r"[!-~]+", token):
        raise UserError("HF_TOKEN has characters that no token has; copy it again")
    hub = HfApi(endpoint=endpoint, token=token or False)
    files = list_hub_files(hub, name, repository, policy)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    total = sum(file.size or 0 for file in files)
    complete = 0  # bytes of the files that are complete
    for file in files:
        url = hf_hub_url(name, file.rfilename, revision=repository.revision, endpoint=endpoint)

        def advance_all(done: int, _of_file: int | None, complete: int = complete) -> None:
            advance(complete + done, total)

        try:
            if find_file_problem(part / file.rfilename, file):
                loading = part / f"{file.rfilename}.part"
                check = partial(find_file_problem, file=file)
                request = Request(url, loading, file.size, pinned=True, headers=headers)
                download_checked(request, check, advance_all, policy)
                os.replace(loading, part / file.rfilename)
        except UserError as error:
            raise UserError(
                f"{error}; run the same command again to resume, {suggest_local_folder(name)}"
            ) from error
        complete += file.size or 0
    return f"from {endpoint}, {total / 1e6:.1f} MB at commit {repository.revision}"


def suggest_local_folder(name: str) -> str:
    """Format the advice for computers without a network, as the end of a message."""
    return (
        f"or put the model at {name}/ in a folder and name the folder in config.yaml's models.local"
    )


def list_hub_files(
    hub: "HfApi", name: str, repository: Repository, policy: RetryPolicy
) -> list["RepoSibling"]:
    """List the files to download, with sizes and checksums.

    Raises UserError if the hub refuses or is unreachable.
    """
    import httpx2
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    check_network_settings()
    revision = repository.revision
    failures = 0
    while True:
        try:
            info = hub.model_info(name, revision=revision, files_metadata=True, timeout=TIMEOUT)
            files = {file.rfilename: file for file in info.siblings or []}
            names = select_model_files(files, f"{name} at commit {revision}")
            # Anyone may list the files of a gated model. Only a request for a file shows whether
            # access is granted.
            url = hf_hub_url(name, names[0], revision=revision, endpoint=hub.endpoint)
            get_hf_file_metadata(url, token=hub.token, timeout=TIMEOUT, endpoint=hub.endpoint)
            return [files[file] for file in names]
        except OfflineModeIsEnabled as error:
            raise UserError(
                f"{name}: HF_HUB_OFFLINE is set; unset it, {suggest_local_folder(name)}"
            ) from error
        except HfHubHTTPError as error:
            failures += 1
            if error.response.status_code not in TRANSIENT_STATUSES or failures == policy.attempts:
                raise UserError(explain_refusal(error, hub, name, repository)) from error
        except httpx2.HTTPError as error:
            failures += 1
            if failures == policy.connection_attempts:
                reason = str(error) or type(error).__name__
                raise UserError(
                    f"{name}: {hub.endpoint} cannot be reached ({reason}); "
                    f"{suggest_network_check(reason)}, {suggest_local_folder(name)}"
                ) from error
        except (json.JSONDecodeError, KeyError) as error:
            raise UserError(
                f"{name}: {hub.endpoint} does not answer as the hub; check HF_ENDPOINT"
            ) from error
        time.sleep(min(policy.first_wait * 2 ** (failures - 1), policy.longest_wait))


def explain_refusal(
    error: "HfHubHTTPError", hub: "HfApi", name: str, repository: Repository
) -> str:
    """Format an error of the hub as its meaning and what to do.

    The library raises a class of its own where the hub names the cause. Else only the status is
    known: 401 is a token that the hub does not know, and without a token a missing or private
    repository; sources.yaml says whether the model is gated.
    """
    from huggingface_hub.errors import (
        GatedRepoError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    status = error.response.status_code
    is_not_found = isinstance(error, RepositoryNotFoundError)
    is_gated = isinstance(error, GatedRepoError)
    if repository.gated and status in (401, 403, 404):
        is_gated = True
    if isinstance(error, RevisionNotFoundError):
        return (
            f"{name} has no commit {repository.revision} at {hub.endpoint}; "
            "correct its revision in sources.yaml"
        )
    if status == 401 and hub.token and not is_not_found:
        return f"{name}: {hub.endpoint} does not know the token; correct or unset HF_TOKEN"
    if is_gated and not hub.token:
        return (
            f"{name} is gated: accept its licence ({repository.licence}) at "
            f"https://huggingface.co/{name}, make a token at "
            "https://huggingface.co/settings/tokens, and set the environment variable HF_TOKEN "
            "to it"
        )
    if is_gated:
        return (
            f"{name} is gated, and the token of HF_TOKEN or `hf auth login` has no access: "
            f"accept the licence ({repository.licence}) at https://huggingface.co/{name} as the "
            "token's owner, and let the token read gated repositories"
        )
    if is_not_found or status in (401, 404):
        return (
            f"{hub.endpoint} has no model {name}; "
            f"check HF_ENDPOINT and HF_TOKEN, {suggest_local_folder(name)}"
        )
    advice = "check HF_ENDPOINT and HF_TOKEN"
    if status in TRANSIENT_STATUSES:
        advice = "try again later"
    return (
        f"{name}: {hub.endpoint} answers with HTTP status {status}; "
        f"{advice}, {suggest_local_folder(name)}"
    )


def find_file_problem(path: Path, file: "RepoSibling") -> str | None:
    """Describe how a file differs from the listed size and checksum, or return None.

    The checksum of a large file is its sha256, that of others git's sha1.
    """
    if path.exists() and count_bytes(path) == file.size:
        if file.lfs and hash_file(path) == file.lfs.sha256:
            return None
        if not file.lfs and hash_git_blob(path.read_bytes()) == file.blob_id:
            return None
    return "is not the file that the hub lists: another checksum"


def hash_git_blob(content: bytes) -> str:
    """Return the sha1 by which git names a file of this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
