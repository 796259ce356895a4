"""Get source files: from a mirror folder, else from their URLs; checked against sources.yaml; put there at once."""

import argparse
import os
import shutil
from pathlib import Path

from filelock import FileLock
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from workflow_scripts.catalogue.loading import load_config
from workflow_scripts.data.download import Advance, Patience, download, size
from workflow_scripts.data.sources import Source, expected_sha256, load_repositories, load_sources, record_path, select
from workflow_scripts.errors import UserError
from workflow_scripts.files import sha256_file, write_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`fetch scan cogs/gen.tsv`, `fetch --all`, `fetch --list`."""
    parser.add_argument("names", nargs="*", metavar="DATASET[/FILE]", help="what to get, by its name in sources.yaml")
    parser.add_argument("--all", action="store_true", help="get every declared file, so that everything works offline")
    parser.add_argument(
        "--list", action="store_true", help="get nothing, but say what is declared: size, licence, source"
    )
    parser.add_argument(
        "--mirror",
        type=Path,
        help="folder <dataset>/<file> to look in first; the environment variable "
        "RECOMPOSE_MIRROR and data.mirror in config.yaml do the same",
    )
    parser.add_argument("--downloads", type=Path, default=Path("results/downloads"), help="where the files go")


def main(args: argparse.Namespace) -> None:
    """Get the named files. Raises UserError when one cannot be had; the others are got all the same."""
    if args.list:
        print_list(args.names)
        return
    sources = load_sources()
    if args.all == bool(args.names):
        raise UserError("fetch: name datasets or files, or give --all (--list says what there is)")
    chosen = list(sources.values()) if args.all else select(args.names, sources)
    mirror = find_mirror(args.mirror)
    console = Console(stderr=True)
    failures = []
    with progress_bars(console) as progress:
        for source in chosen:
            bar = progress.add_task(source.name, total=source.bytes)

            def advance(done: int, total: int | None, bar=bar) -> None:
                progress.update(bar, completed=done, total=total)

            try:
                told = fetch(source, args.downloads, mirror, Patience(), advance)
                write_manifest(source, args.downloads / source.name)
                console.print(f"{source.name}: {told}", highlight=False, soft_wrap=True, markup=False)
            except UserError as error:
                if len(chosen) == 1:
                    raise
                failures.append(source.name)
                console.print(f"error: {error}", highlight=False, soft_wrap=True, markup=False)
            progress.remove_task(bar)
    if failures:
        raise UserError(f"{len(failures)} of {len(chosen)} files could not be had: {', '.join(failures)}")


def progress_bars(console: Console) -> Progress:
    """Bars of downloads: shown on a terminal only, and gone afterwards."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def print_list(names: list[str]) -> None:
    """One line for each file, or without names for everything declared, in columns separated by tabs."""
    sources = load_sources()
    for source in select(names, sources) if names else sources.values():
        size_and_check = f"{source.bytes or 'unknown'} bytes", "pinned" if source.sha256 else "unpinned"
        terms = source.licence + ("" if source.redistributable else ", not to be redistributed")
        where = " or ".join(url for packing in source.alternatives for url in packing.urls) or source.note
        print(source.name, *size_and_check, source.revision, terms, source.citation, where, sep="\t")
    for name, repository in ({} if names else load_repositories()).items():
        terms = repository.licence + (", gated" if repository.gated else "")
        revision = repository.revision or "unpinned"
        print(f"hf:{name}", repository.kind, revision, terms, repository.used_for, sep="\t")


def find_mirror(argument: Path | None) -> Path | None:
    """The mirror folder: the argument, else RECOMPOSE_MIRROR, else config.yaml. Raises UserError when it is none."""
    mirror = argument or os.environ.get("RECOMPOSE_MIRROR") or load_config().data.mirror
    if mirror and not Path(mirror).is_dir():
        raise UserError(f"the mirror {mirror} is not a folder; correct --mirror, RECOMPOSE_MIRROR or data.mirror")
    return Path(mirror) if mirror else None


def fetch(source: Source, downloads: Path, mirror: Path | None, patience: Patience, advance: Advance) -> str:
    """Have `downloads/<dataset>/<file>` be the declared file; says in a few words where it came from.

    Two processes do not fetch one file twice. Raises UserError, naming what was tried, when it cannot be had; nothing
    wrong is ever kept, and half a download only beside the file, as `<file>.part`.
    """
    path = downloads / source.name
    path.parent.mkdir(parents=True, exist_ok=True)
    locks = downloads / ".locks"
    locks.mkdir(exist_ok=True)
    with FileLock(locks / source.name.replace("/", "--")):
        if path.exists():
            wrong = [mismatch(packing, path, path) for packing in source.alternatives]
            if None in wrong:
                return "already there" + note_if_unpinned(source, path)
            if source.sha256 is None:
                raise UserError(f"{path} {wrong[0]}; delete it and {record_path(path).name} to fetch it anew")
        problems = []
        part = path.with_name(f"{path.name}.part")
        origins = [(packing, str(mirror / source.name)) for packing in source.alternatives] if mirror else []
        origins += [(packing, url) for packing in source.alternatives for url in packing.urls]
        for packing, origin in origins:
            problem = attempt(packing, origin, part, path, patience, advance)
            if problem is None:
                os.replace(part, path)
                after = f" (after {'; '.join(problems)})" if problems else ""
                return f"from {origin}{after}{note_if_unpinned(source, path)}"
            problems.append(problem)
    tried = f"tried {'; '.join(problems)}" if problems else "no mirror is set, and it has no URL"
    note = f" ({source.note})" if source.note else ""
    raise UserError(
        f"{source.name} is missing: {tried}; get it by other means{note} and put it at {path}, "
        f"or at {source.name} in a mirror folder (data.mirror in config.yaml)"
    )


def write_manifest(source: Source, path: Path) -> None:
    """Say beside a file which one it is: <file>.json changes when the file is another, and at no other time."""
    content = {"name": source.name, "sha256": sha256_file(path), "bytes": size(path), "licence": source.licence}
    write_json(path.with_name(f"{path.name}.json"), content)


def attempt(source: Source, origin: str, part: Path, path: Path, patience: Patience, advance: Advance) -> str | None:
    """Fill `part` from one origin, a path or a URL. None when it is right, else what was wrong; then it is deleted."""
    if origin not in source.urls:
        if not Path(origin).is_file():
            return f"{origin}: no such file"
        shutil.copyfile(origin, part)
        wrong = mismatch(source, part, path)
        if wrong:
            part.unlink()
        return f"{origin} {wrong}, nothing was kept" if wrong else None
    while True:
        kept = size(part) if source.sha256 else 0
        try:
            if not source.bytes or kept < source.bytes:
                download(origin, part, source.bytes, source.sha256 is not None, advance, patience)
        except UserError as error:
            return str(error)
        wrong = mismatch(source, part, path)
        if not wrong:
            return None
        part.unlink()
        if not kept:
            return f"{origin} {wrong}, nothing was kept"
        # The wrong bytes may be those of an earlier call or another URL: once more from the start.


def mismatch(source: Source, file: Path, path: Path) -> str | None:
    """How `file` differs from what is declared, or was recorded beside `path`; None if it does not."""
    if source.bytes and size(file) != source.bytes:
        return f"has the wrong size: expected {source.bytes} bytes, actual {size(file)}"
    expected, actual = expected_sha256(source, path), sha256_file(file)
    if expected and expected != actual:
        return f"has the wrong sha256: expected {expected}, actual {actual}"
    return None


def note_if_unpinned(source: Source, path: Path) -> str:
    """For a file whose sha256 nobody declared: record the one it has, and say so."""
    if source.sha256:
        return ""
    if not record_path(path).exists():
        record_path(path).write_text(f"{sha256_file(path)}  {path.name}\n")
    return f"; unpinned ({source.note}): compared with {record_path(path).name} from now on"
