"""Download of models from the Hugging Face hub, which can resume and is checked against the hub's checksums."""

import hashlib
import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file
from workflow_scripts.data.sources.declared import Repository
from workflow_scripts.data.sources.download import TRANSIENT_STATUSES, Advance, RetryPolicy, count_bytes, download
from workflow_scripts.data.sources.fetch_model import select_model_files

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoSibling

TIMEOUT = 30.0  # seconds to wait for an answer of the hub


def download_files(name: str, repository: Repository, part: Path, policy: RetryPolicy, advance: Advance) -> str:
    """Download a model's files to the folder `part`, resuming from files in it. Returns a note on their origin.

    huggingface_hub cannot resume a file of gigabytes after it was killed, so it is used only for sizes, checksums and
    errors; `download.download` fetches the files. Raises UserError with one line.
    """
    from huggingface_hub import HfApi, get_token, hf_hub_url

    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"
    if not re.fullmatch(r"https?://[^\s@]+", endpoint):
        raise UserError("HF_ENDPOINT is not of the form https://host, without a password; correct or unset it")
    token = get_token()
    if token and not re.fullmatch(r"[!-~]+", token):
        raise UserError("HF_TOKEN has characters that no token has; copy it again")
    hub = HfApi(endpoint=endpoint, token=token or False)
    files = list_files(hub, name, repository, policy)
    total, before = sum(file.size or 0 for file in files), 0
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    for file in files:
        url = hf_hub_url(name, file.rfilename, revision=repository.revision, endpoint=endpoint)

        def advance_all(done: int, _: int | None, before: int = before) -> None:
            advance(before + done, total)

        try:
            fetch_file(url, file, part, policy, advance_all, headers)
        except UserError as error:
            raise UserError(f"{error}; run the same command again to resume, {suggest_local_folder(name)}") from error
        before += file.size or 0
    return f"from {endpoint}, {total / 1e6:.1f} MB at commit {repository.revision}"


def suggest_local_folder(name: str) -> str:
    """Format the advice for computers without a network, as the end of a message."""
    return f"or put the model at {name}/ in a folder and name the folder in config.yaml's models.local"


def list_files(hub: "HfApi", name: str, repository: Repository, policy: RetryPolicy) -> list["RepoSibling"]:
    """List the files to download, with sizes and checksums. Raises UserError if the hub refuses or is unreachable."""
    import httpx2
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    revision, idle = repository.revision, 0
    while True:
        try:
            found = hub.model_info(name, revision=revision, files_metadata=True, timeout=TIMEOUT).siblings or []
            files = {file.rfilename: file for file in found}
            chosen = select_model_files(files, f"{name} at commit {revision}")
            # Anyone may list the files of a gated model. Only a request for a file shows whether access is granted.
            url = hf_hub_url(name, chosen[0], revision=revision, endpoint=hub.endpoint)
            get_hf_file_metadata(url, token=hub.token, timeout=TIMEOUT, endpoint=hub.endpoint)
            return [files[file] for file in chosen]
        except OfflineModeIsEnabled as error:
            raise UserError(f"{name}: HF_HUB_OFFLINE is set; unset it, {suggest_local_folder(name)}") from error
        except HfHubHTTPError as error:
            idle += 1
            if error.response.status_code not in TRANSIENT_STATUSES or idle == policy.attempts:
                raise UserError(explain_refusal(error, hub, name, repository)) from error
        except httpx2.HTTPError as error:
            idle += 1
            if idle == policy.connection_attempts:
                what = f"{hub.endpoint} cannot be reached ({str(error) or type(error).__name__})"
                raise UserError(f"{name}: {what}; check the network, {suggest_local_folder(name)}") from error
        except (json.JSONDecodeError, KeyError) as error:
            raise UserError(f"{name}: {hub.endpoint} does not answer as the hub; check HF_ENDPOINT") from error
        time.sleep(min(policy.first_wait * 2 ** (idle - 1), policy.longest_wait))


def explain_refusal(error: Exception, hub: "HfApi", name: str, repository: Repository) -> str:
    """Format an error of the hub as its meaning and what to do."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    status = error.response.status_code
    gated = isinstance(error, GatedRepoError) or (repository.gated and status in (401, 403, 404))
    if isinstance(error, RevisionNotFoundError):
        return f"{name} has no commit {repository.revision} at {hub.endpoint}; correct its revision in sources.yaml"
    if status == 401 and hub.token and not isinstance(error, RepositoryNotFoundError):
        return f"{name}: {hub.endpoint} does not know the token; correct or unset HF_TOKEN"
    if gated and not hub.token:
        return (
            f"{name} is gated: accept its licence ({repository.licence}) at https://huggingface.co/{name}, "
            "make a token at https://huggingface.co/settings/tokens, and set the environment variable HF_TOKEN to it"
        )
    if gated:
        return (
            f"{name} is gated, and the token of HF_TOKEN or `hf auth login` has no access: accept the licence "
            f"({repository.licence}) at https://huggingface.co/{name} as the token's owner, and let the token read "
            "gated repositories"
        )
    # Without a token, the hub answers 401 both for missing and for private repositories.
    if isinstance(error, RepositoryNotFoundError) or status in (401, 404):
        return f"{hub.endpoint} has no model {name}; check HF_ENDPOINT and HF_TOKEN, {suggest_local_folder(name)}"
    what = "try again later" if status in TRANSIENT_STATUSES else "check HF_ENDPOINT and HF_TOKEN"
    return f"{name}: {hub.endpoint} answers with HTTP status {status}; {what}, {suggest_local_folder(name)}"


def fetch_file(
    url: str, file: "RepoSibling", folder: Path, policy: RetryPolicy, advance: Advance, headers: dict[str, str]
) -> None:
    """Download `folder/<file>` unless it already is the listed file; a partial download is kept as `<file>.part`."""
    path = folder / file.rfilename
    if path.exists() and is_listed(path, file):
        return
    part = path.with_name(f"{path.name}.part")
    while True:
        kept = count_bytes(part)
        if kept != file.size:
            download(url, part, file.size, True, advance, policy, headers)
        if is_listed(part, file):
            os.replace(part, path)
            return
        part.unlink()
        if not kept:
            raise UserError(f"{url} is not the file that the hub lists: another checksum, nothing was kept")
        # The wrong bytes may come from an earlier invocation, so try once more from the start.


def is_listed(path: Path, file: "RepoSibling") -> bool:
    """Return whether a file is the listed one, by its sha256 if the hub has it (large files), else by git's sha1."""
    if count_bytes(path) != file.size:
        return False
    if file.lfs:
        return hash_file(path) == file.lfs.sha256
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == file.blob_id
