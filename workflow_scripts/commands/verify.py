"""Verify a crate of results: its files against their checksums, and its numbers against its
scores.
"""

import argparse
import tempfile
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MissingFileError
from workflow_scripts.data.sources.archives import unpack_zip
from workflow_scripts.reporting.pages.verify import verify_crate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "crate",
        type=Path,
        help="a crate that `crate` wrote: the zip file, or a folder of its content",
    )


def main(args: argparse.Namespace) -> None:
    """Print what was checked and one line per fault. Raises UserError if there are faults."""
    with tempfile.TemporaryDirectory() as scratch:
        if args.crate.is_file():
            unpack_zip(args.crate, Path(scratch))
        elif not args.crate.exists():
            raise MissingFileError(args.crate)
        folder = args.crate if args.crate.is_dir() else Path(scratch)
        checked, faults = verify_crate(folder, args.crate)
    for fault in faults:
        print(fault)
    if faults:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise UserError(f"{args.crate}: {count}; do not trust it, download it again")
    print(
        "p-values over examples are read from the tables' records, "
        "because a crate has no predictions"
    )
    print(f"{args.crate}: checked {', '.join(checked)}; all agree")
