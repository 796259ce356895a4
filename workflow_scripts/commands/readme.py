"""Print the tables of claims in README and docs/verdicts.md, or write them there."""

import argparse
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MissingFileError, read_json, write_text_file
from workflow_scripts.common.result_folders import ExportFolder
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.claims.claim_rows import read_claim_rows
from workflow_scripts.reporting.pages.verdict_documents import (
    Costs,
    format_documents,
    replace_tables,
    sum_costs,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "claims", type=Path, help="a claims.csv, in a folder with the name of its scale"
    )
    parser.add_argument(
        "--write", action="store_true", help="replace the tables in README.md and docs/verdicts.md"
    )


def main(args: argparse.Namespace) -> None:
    """Print the tables, or write them into the documents.

    Raises UserError for a claims.csv without the columns, and for a document without markers.
    """
    papers = load_catalogue().papers
    rows = read_claim_rows(args.claims)
    unknown = {row.paper for row in rows} - set(papers)
    if unknown:
        raise UserError(
            f"{args.claims}: no folder papers/{min(unknown)}; make the file again with ./reproduce"
        )
    folder = args.claims.absolute().parent
    documents = format_documents(rows, papers, folder.name, read_costs(ExportFolder(folder)))
    if not args.write:
        print("\n\n".join(documents.values()))
        return
    changed = {}
    for document, tables in documents.items():
        if not document.is_file():
            raise MissingFileError(document)
        text = document.read_text(encoding="utf-8")
        changed[document] = replace_tables(text, tables, str(document))
    for document, text in changed.items():
        write_text_file(document, text)


def read_costs(export: ExportFolder) -> Costs | None:
    """Return what the runs of an export have cost; None for results that are no export."""
    if not export.provenance.exists():
        return None
    return sum_costs(read_json(export.provenance))
