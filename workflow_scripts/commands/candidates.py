"""Make the table of replacement words for the items of a task."""

import argparse
from pathlib import Path

from workflow_scripts.commands.inputs import add_task_arguments
from workflow_scripts.common.files import (
    check_replaceable,
    hash_files,
    read_json,
    read_mapping,
    write_atomically,
    write_json,
)
from workflow_scripts.common.result_folders import DOWNLOADS, CandidateFolder, DataFolder
from workflow_scripts.data.sources.declared import verify_downloads
from workflow_scripts.interventions.settings import read_candidate_spec
from workflow_scripts.provenance.record import add_output_digests, make_record
from workflow_scripts.provenance.spec_fingerprints import fingerprint_candidates


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_task_arguments(parser)
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="prepared data of the task"
    )
    parser.add_argument(
        "--downloads",
        type=Path,
        default=DOWNLOADS.path,
        help="where fetch put the sources",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="gets candidates.parquet and .json"
    )


def main(args: argparse.Namespace) -> None:
    """Write the replacement candidates of one task.

    Raises UserError if a source is missing or not pinned.
    """
    spec = args.job_spec or read_candidate_spec(read_json(args.spec), args.spec)
    task = read_mapping(DataFolder(args.data).manifest, "task")["task"]
    sources, source_digests = verify_downloads(spec.sources, args.downloads)
    check_replaceable(args.out, CandidateFolder(args.out).names)

    import pyarrow.parquet as pq

    from workflow_scripts.data.prepared import digest_data, read_table
    from workflow_scripts.interventions.candidates import build
    from workflow_scripts.interventions.synonym_resources import (
        load_resources,
        make_stand_in_resources,
    )

    contents = read_table(args.data, spec.split, ["content"])["content"].to_pylist()
    if sources:
        resources = load_resources(sources, spec.options)
    else:
        resources = make_stand_in_resources()
    candidates = build(contents, resources, spec.options)
    with write_atomically(args.out) as out:
        folder = CandidateFolder(out)
        out.mkdir()
        pq.write_table(candidates, folder.words, compression="zstd")
        data_digest = digest_data(args.data)
        manifest = {"spec": spec.to_json(), "data_digest": data_digest, "files": hash_files(out)}
        write_json(folder.manifest, manifest)
        record = make_record(fingerprint_candidates(spec), source_digests | {task: data_digest})
        write_json(folder.record, record)
        add_output_digests(folder.record, [folder.manifest])
