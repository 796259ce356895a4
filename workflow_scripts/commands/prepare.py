"""Prepare the data folder of a task from its source files or its grammar."""

import argparse
import importlib
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import check_replaceable, read_json, write_json
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_data
from workflow_scripts.data.data_spec import read_data_spec
from workflow_scripts.data.prepared import prepare_data, write_data
from workflow_scripts.data.sources.declared import verify_downloads
from workflow_scripts.provenance.fingerprints import fingerprint_data
from workflow_scripts.provenance.record import make_record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--task T --scale S` from the catalogue, or `--spec FILE`."""
    parser.add_argument("--task", help="name in catalogue/tasks")
    parser.add_argument("--scale", help="name in catalogue/scales.yaml")
    parser.add_argument("--spec", type=Path, help="JSON file with a data spec, instead of --task and --scale")
    parser.add_argument("--downloads", type=Path, default=Path("results/downloads"), help="where fetch put the sources")
    parser.add_argument("--out", type=Path, required=True, help="folder to make; replaced when complete")


def main(args: argparse.Namespace) -> None:
    """Prepare one task. Raises UserError when a source is missing, malformed or not the pinned file."""
    if bool(args.spec) == bool(args.task and args.scale):
        raise UserError("prepare: give either --task and --scale, or --spec FILE")
    if args.spec:
        spec = read_data_spec(read_json(args.spec), args.spec)
    else:
        spec = resolve_data(load_catalogue(), args.task, args.scale)
    check_replaceable(args.out, ("*.parquet", "*.json", "*.mapped"), required="*.parquet")
    sources, digests = verify_downloads(spec.sources, args.downloads)
    made = prepare_data(importlib.import_module(spec.prepare), spec.options, sources)
    write_data(made, spec, args.out)
    seed = spec.to_json()["options"].get("seed")
    write_json(args.out / "record.json", make_record(fingerprint_data(spec), digests, seed))
