"""Download source files from a mirror folder or their URLs, and check them against sources.yaml;
or trained models of a release, and check them against its models.json.
"""

import argparse
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import DOWNLOADS, DownloadFolder
from workflow_scripts.config.loading import load_config
from workflow_scripts.data.sources.declared import (
    Repository,
    Source,
    load_repositories,
    load_sources,
    select_sources,
)
from workflow_scripts.data.sources.fetch import (
    PIP,
    RetryPolicy,
    fetch_source,
    write_source_manifest,
)
from workflow_scripts.data.sources.model_release import fetch_trained_model, read_release

CREDENTIALS = re.compile(r"(?<=://)\S*@")  # of a URL
TRAINED = "trained"  # folder of a mirror with the files of a release of trained models


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`fetch scan cogs/gen.tsv`, `fetch --all`, `fetch --list`."""
    names = "names of files in sources.yaml, or of runs whose trained models a release has"
    parser.add_argument("names", nargs="*", metavar="DATASET[/FILE]|RUN", help=names)
    parser.add_argument(
        "--all", action="store_true", help="download every declared file, to work offline later"
    )
    parser.add_argument(
        "--list", action="store_true", help="only list the declared files: size, licence, source"
    )
    mirror = (
        "folder <dataset>/<file> to try first "
        "(default: RECOMPOSE_MIRROR, or data.mirror of config.yaml)"
    )
    parser.add_argument("--mirror", type=Path, help=mirror)
    parser.add_argument("--downloads", type=Path, default=DOWNLOADS.path, help="where the files go")
    release = "folder or URL of a release of trained models (default: trained/ of the mirror)"
    parser.add_argument("--release", metavar="DIR|URL", help=release)
    parser.add_argument("--scale", default="small", help="of the trained models (default: small)")


def main(args: argparse.Namespace) -> None:
    """Download the named files, or list them (`--list`).

    Raises UserError if one fails, after trying all others.
    """
    if args.list and args.release:
        with hide_passwords():
            print_models(args.release)
        return
    if args.list:
        print_list(args.names)
        return
    if args.all == bool(args.names):
        raise UserError("fetch: name datasets or files, or pass --all (--list prints all names)")
    runs = [name for name in args.names if is_run_name(name)]
    if runs:
        with hide_passwords():
            fetch_models(runs, args)
    names = [name for name in args.names if name not in runs]
    if names or args.all:
        sources = load_sources()
        fetch_files(select_sources(names, sources) if names else list(sources.values()), args)


def fetch_models(runs: list[str], args: argparse.Namespace) -> None:
    """Get trained models of a release. Raises UserError if one is not there, or has another sha256.

    The models are checked when they are loaded.
    """
    origin = args.release
    if origin is None:
        mirror = find_mirror(args.mirror)
        if mirror is None:
            raise UserError(
                "no release of trained models is published; name the folder or URL of one with "
                "--release"
            )
        origin = str(mirror / TRAINED)
    policy = RetryPolicy()
    release = read_release(origin, policy)
    console = Console(stderr=True)
    with make_progress_bars(console) as progress:
        for run in runs:
            model = release.find(run, args.scale, origin)
            bar = progress.add_task(run, total=model.bytes)

            def advance(done: int, total: int | None, bar=bar) -> None:
                progress.update(bar, completed=done, total=total)

            folder = fetch_trained_model(
                model, origin, DownloadFolder(args.downloads), policy, advance
            )
            line = f"{run}: from {drop_passwords(origin)}, to {folder.path}"
            console.print(line, highlight=False, soft_wrap=True, markup=False)
            progress.remove_task(bar)


@contextmanager
def hide_passwords() -> Iterator[None]:
    """Leave name and password of a URL out of the message of a UserError."""
    try:
        yield
    except UserError as error:
        raise UserError(drop_passwords(str(error))) from None


def drop_passwords(text: str) -> str:
    """Return a text whose URLs have neither a user name nor a password."""
    return CREDENTIALS.sub("", text)


def is_run_name(name: str) -> bool:
    """Whether a name is that of a run, and not of a source file."""
    return name.strip("/").count("/") == 3


def print_models(origin: str) -> None:
    """Print run, scale, size, protocol and commit of each model of a release."""
    for model in read_release(origin, RetryPolicy()).models:
        commit = model.commit or "unknown commit"
        print(model.run, model.scale, f"{model.bytes} bytes", model.protocol, commit, sep="\t")


def fetch_files(sources: list[Source], args: argparse.Namespace) -> None:
    """Download source files. Raises UserError if one fails, after trying all others."""
    mirror = find_mirror(args.mirror)
    console = Console(stderr=True)
    failures = []
    with make_progress_bars(console) as progress:
        for source in sources:
            bar = progress.add_task(source.name, total=source.bytes)

            def advance(done: int, total: int | None, bar=bar) -> None:
                progress.update(bar, completed=done, total=total)

            try:
                note = fetch_source(source, args.downloads, mirror, RetryPolicy(), advance)
            except UserError as error:
                if len(sources) == 1:
                    raise
                failures.append(source.name)
                line = f"error: {error}"
            else:
                write_source_manifest(source, args.downloads / source.name)
                line = f"{source.name}: {note}"
            console.print(line, highlight=False, soft_wrap=True, markup=False)
            progress.remove_task(bar)
    if failures:
        count = f"{len(failures)} of {len(sources)}"
        raise UserError(f"{count} files could not be downloaded: {', '.join(failures)}")


def make_progress_bars(console: Console) -> Progress:
    """Return progress bars, shown on a terminal only and removed at the end."""
    name = TextColumn("{task.description}")
    columns = (name, BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def print_list(names: list[str]) -> None:
    """Print one line per file, with tabs between columns.

    Without names for all declared files and repositories.
    """
    if names:
        for source in select_sources(names, load_sources()):
            print_source(source)
        return
    for source in load_sources().values():
        print_source(source)
    for name, repository in load_repositories().items():
        print_repository(name, repository)


def print_source(source: Source) -> None:
    """Print name, size, check, revision, terms, citation and origin of a file."""
    size = f"{source.bytes or 'unknown'} bytes"
    check = "pinned" if source.sha256 else "unpinned"
    terms = source.licence
    if not source.redistributable:
        terms += ", not to be redistributed"
    origins: list[str] = []
    for packing in source.alternatives:
        origins += packing.urls
    if source.package:
        origins.append(f"{PIP}{source.package}")
    origin = " or ".join(origins) or source.note
    print(source.name, size, check, source.revision, terms, source.citation, origin, sep="\t")


def print_repository(name: str, repository: Repository) -> None:
    """Print name, kind, revision, terms and use of a repository of the hub or a package."""
    if not repository.wheel:
        name = f"hf:{name}"
    terms = repository.licence
    if repository.gated:
        terms += ", gated"
    revision = repository.revision or "unpinned"
    print(name, repository.kind, revision, terms, repository.used_for, sep="\t")


def find_mirror(argument: Path | None) -> Path | None:
    """Return the mirror: the argument, else RECOMPOSE_MIRROR, else that of config.yaml.

    Raises UserError if it is no folder.
    """
    mirror = argument or os.environ.get("RECOMPOSE_MIRROR") or load_config().data.mirror
    if not mirror:
        return None
    if not Path(mirror).is_dir():
        raise UserError(
            f"the mirror {mirror} is not a folder; "
            "correct --mirror, RECOMPOSE_MIRROR or data.mirror"
        )
    return Path(mirror)
