"""Make the data folder of a task, from its source files or its grammar: Parquet files, dataset.json and more."""

import argparse
import importlib
from pathlib import Path

from workflow_scripts.catalogue import load_catalogue, resolve_data
from workflow_scripts.data import prepared as sentence_pairs
from workflow_scripts.data import records
from workflow_scripts.data.sources import expected_sha256, load_sources, select
from workflow_scripts.errors import UserError
from workflow_scripts.files import read_json, sha256_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--task T --scale S` from the catalogue, or `--spec FILE`."""
    parser.add_argument("--task", help="name in catalogue/tasks.yaml")
    parser.add_argument("--scale", help="name in catalogue/scales.yaml")
    parser.add_argument("--spec", type=Path, help="JSON file with a data spec, instead of --task and --scale")
    parser.add_argument("--downloads", type=Path, default=Path("results/downloads"), help="where fetch put the sources")
    parser.add_argument("--out", type=Path, required=True, help="folder to make; replaced when complete")


def main(args: argparse.Namespace) -> None:
    """Prepare one task. Raises UserError when a source is missing, malformed or not the pinned file."""
    if bool(args.spec) == bool(args.task and args.scale):
        raise UserError("prepare: give either --task and --scale, or --spec FILE")
    spec = read_json(args.spec) if args.spec else resolve_data(load_catalogue(), args.task, args.scale)
    sources, digests = {}, {}
    for source in select(spec["sources"], load_sources()):
        path = args.downloads / source.name
        if not path.is_file():
            raise UserError(
                f"{path} does not exist; get it with: .venv/bin/python -m workflow_scripts fetch {source.name}"
            )
        sources[source.name], digests[source.name] = path, sha256_file(path)
        expected = expected_sha256(source, path)
        if expected and digests[source.name] != expected:
            raise UserError(
                f"{path} has the wrong sha256: expected {expected}, actual {digests[source.name]}; "
                f"get it anew with: .venv/bin/python -m workflow_scripts fetch {source.name}"
            )
    prepared = importlib.import_module(spec["prepare"]).prepare(spec["options"], sources)
    write = records.write if isinstance(prepared, records.PreparedRecords) else sentence_pairs.write
    write(prepared, spec, digests, args.out)
