"""Print the claim tables of README: primary claims with n, interval and verdict, and counts of the
others.
"""

import argparse
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MissingFileError, write_text_file
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.claims.claim_rows import read_claim_rows
from workflow_scripts.reporting.pages.readme_tables import format_tables, replace_tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "claims", type=Path, help="a claims.csv, in a folder with the name of its scale"
    )
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="replace the tables of claims in this file"
    )


def main(args: argparse.Namespace) -> None:
    """Print the tables, or write them into a file.

    Raises UserError for a claims.csv without the columns.
    """
    papers = load_catalogue().papers
    rows = read_claim_rows(args.claims)
    unknown = {row.paper for row in rows} - set(papers)
    if unknown:
        raise UserError(
            f"{args.claims}: no folder papers/{min(unknown)}; make the file again with ./reproduce"
        )
    text = format_tables(rows, list(papers), args.claims.absolute().parent.name)
    if args.write is None:
        print(text)
        return
    if not args.write.is_file():
        raise MissingFileError(args.write)
    changed = replace_tables(args.write.read_text(encoding="utf-8"), text, str(args.write))
    write_text_file(args.write, changed)
