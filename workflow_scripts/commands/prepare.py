"""Prepare the data folder of a task from its source files or its grammar."""

import argparse
import importlib
from pathlib import Path

from workflow_scripts.commands.inputs import add_task_arguments
from workflow_scripts.common.files import check_replaceable, read_json, write_json
from workflow_scripts.common.result_folders import DOWNLOADS, DataFolder
from workflow_scripts.data.data_spec import read_data_spec
from workflow_scripts.data.prepared import prepare_data, write_data
from workflow_scripts.data.sources.declared import verify_downloads
from workflow_scripts.provenance.record import add_output_digests, make_record
from workflow_scripts.provenance.spec_fingerprints import fingerprint_data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_task_arguments(parser)
    parser.add_argument(
        "--downloads",
        type=Path,
        default=DOWNLOADS.path,
        help="where fetch put the sources",
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder to make; replaced when complete"
    )


def main(args: argparse.Namespace) -> None:
    """Prepare one task.

    Raises UserError when a source is missing, malformed or not the pinned file.
    """
    spec = args.job_spec or read_data_spec(read_json(args.spec), args.spec)
    folder = DataFolder(args.out)
    check_replaceable(folder.path, folder.names, required=folder.split("*").name)
    sources, digests = verify_downloads(spec.sources, args.downloads)
    data = prepare_data(importlib.import_module(spec.prepare), spec.options, sources)
    write_data(data, spec, args.out)
    seed = spec.to_json()["options"].get("seed")
    write_json(folder.record, make_record(fingerprint_data(spec), digests, seed))
    add_output_digests(folder.record, [folder.manifest])
