"""Trained models as the files of a release, in a folder or below a URL.

models.json names the archive of each model, with its sha256. An archive has the files of
`ModelFolder`; nothing in it is run or unpickled, and the model is checked again when it is loaded.
"""

import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    check_replaceable,
    hash_file,
    list_files,
    read_json,
    write_atomically,
    write_json,
)
from workflow_scripts.common.result_folders import DownloadFolder, ModelFolder, ReleaseFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.common.validation import StrictModel, parse_as, suggest_name
from workflow_scripts.data.sources.archives import unpack_zip
from workflow_scripts.data.sources.declared import FILE_NAME, Sha256, Source
from workflow_scripts.data.sources.fetch import (
    Advance,
    Request,
    RetryPolicy,
    download,
    try_origin,
)

MANIFEST = ReleaseFolder(Path()).manifest.name
FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # of each file in an archive, so that its bytes do not change
MAX_MANIFEST = 2**24  # bytes


class ReleasedModel(StrictModel):
    """A model of a release. scale: at which it was trained, by the code of `commit`."""

    run: str
    scale: str
    archive: str
    sha256: Sha256
    bytes: int
    protocol: str
    commit: str | None


class Release(StrictModel):
    """The content of models.json."""

    models: list[ReleasedModel]

    def find(self, name: str, scale: str, origin: str) -> ReleasedModel:
        """Return the model of a run at a scale.

        Raises UserError with the nearest name. origin: for the message.
        """
        for model in self.models:
            if model.run == name and model.scale == scale:
                return model
        names = [model.run for model in self.models if model.scale == scale]
        advice = suggest_name(name, names) if names else "it has none of this scale"
        raise UserError(f"{origin} has no model {name} of the scale {scale}; {advice}")


def write_archive(
    model: ModelFolder, run: Run, scale: str, release: ReleaseFolder
) -> ReleasedModel:
    """Write the archive of a model to a release, and return its entry in models.json."""
    name = f"{scale}--{str(run).replace('/', '--')}.zip"
    file = release.archive(name)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in list_files(model.path):
            info = zipfile.ZipInfo(path.relative_to(model.path).as_posix(), FIRST_DATE)
            info.external_attr = 0o644 << 16
            archive.writestr(info, path.read_bytes(), zipfile.ZIP_DEFLATED)
    record = read_json(model.record)
    return ReleasedModel(
        run=str(run),
        scale=scale,
        archive=name,
        sha256=hash_file(file),
        bytes=file.stat().st_size,
        protocol=read_json(model.run)["protocol"],
        commit=record.get("commit"),
    )


def write_release_manifest(models: Sequence[ReleasedModel], release: ReleaseFolder) -> None:
    """Write models.json."""
    write_json(release.manifest, Release(models=list(models)).model_dump())


def read_release(origin: str, policy: RetryPolicy) -> Release:
    """Read models.json of a release, a folder or a URL.

    Raises UserError if it is not there or not one.
    """
    if not is_url(origin):
        file = ReleaseFolder(Path(origin)).manifest
        if not file.is_file():
            raise UserError(f"{file} does not exist; name the folder that export --release wrote")
        return parse_release(file, str(file))
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder, MANIFEST)
        url = join_url(origin, MANIFEST)
        download(Request(url, part, None, pinned=False), _limit_manifest, policy)
        return parse_release(part, url)


def _limit_manifest(done: int, _total: int | None) -> None:
    """Raise UserError after more bytes than a manifest may have."""
    if done > MAX_MANIFEST:
        raise UserError(f"{MANIFEST} has more than {MAX_MANIFEST:,} bytes; it is none of a release")


def parse_release(file: Path, place: str) -> Release:
    """Parse models.json. Raises UserError, also for an archive whose name is a path."""
    release = parse_as(Release, read_json(file), place)
    for model in release.models:
        Run.parse(model.run)
        if not FILE_NAME.fullmatch(model.archive):
            raise UserError(f"{place}: '{model.archive}' is no name of a file; do not use it")
    return release


def fetch_trained_model(
    model: ReleasedModel,
    origin: str,
    downloads: DownloadFolder,
    policy: RetryPolicy,
    advance: Advance,
) -> ModelFolder:
    """Get a model of a release, a folder or a URL, and unpack it.

    Raises UserError, and keeps nothing, for an archive with another sha256 than in models.json.
    """
    url = join_url(origin, model.archive) if is_url(origin) else None
    place = url or str(ReleaseFolder(Path(origin)).archive(model.archive))
    source = Source(
        name=f"trained/{model.archive}",
        urls=(url,) if url else (),
        sha256=model.sha256,
        bytes=model.bytes,
        revision=model.commit or "",
        licence="in the model's README.md",
        redistributable=True,
        citation="",
        note="",
    )
    target = downloads.trained(model.scale, model.run)
    check_replaceable(target.path, target.names, target.run.name)
    archive = downloads.archives / model.archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(archive.with_name(f".{archive.name}.lock")):
        part = archive.with_name(f"{archive.name}.part")
        problem = try_origin(source, place, part, policy, advance)
        if problem:
            raise UserError(problem)
        with write_atomically(target.path) as folder:
            unpack_zip(part, folder)
        part.unlink()
    return target


def is_url(origin: str) -> bool:
    """Whether the origin of a release is a URL, not a folder."""
    return origin.startswith(("http://", "https://"))


def join_url(base: str, name: str) -> str:
    """Return the URL of a file of a release."""
    return f"{base.rstrip('/')}/{name}"
