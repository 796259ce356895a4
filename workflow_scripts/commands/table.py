"""Write one table of a paper, published numbers next to reproduced ones, as CSV, Markdown, LaTeX
and HTML.
"""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workflow_scripts.common.files import write_text_file
from workflow_scripts.common.result_folders import FigureFiles, ScaleFolder, TableFiles
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.display_schema import Display
from workflow_scripts.config.displays import find_table, select_display_runs, select_paper_runs
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.provenance.fingerprints import fingerprint_display
from workflow_scripts.provenance.record import add_output_digests
from workflow_scripts.provenance.unfinished import read_unfinished
from workflow_scripts.reporting.evidence.evidence import write_record
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.tables.table import RenderedTable, make_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_display_arguments(parser, "table", "csv, .md, .tex, .html and .json")


def add_display_arguments(parser: argparse.ArgumentParser, kind: str, suffixes: str) -> None:
    """Add the arguments of the commands that write a table or figure."""
    parser.add_argument("--paper", required=True, help="folder of papers/")
    parser.add_argument("--scale", required=True)
    parser.add_argument(
        "--runs", nargs="*", metavar="ID", help="instead of the runs that config.yaml asks for"
    )
    parser.add_argument(
        "--results", type=Path, required=True, metavar="DIR", help="results/<scale>"
    )
    parser.add_argument(
        "--display", required=True, help=f"name of a {kind} in the paper's displays.yaml"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help=f"folder for <display>.{suffixes}"
    )
    add_unfinished_argument(parser)


def add_unfinished_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option that names what is not finished. It may be without a value."""
    parser.add_argument(
        "--unfinished",
        type=Path,
        nargs="?",
        metavar="FILE",
        help="unfinished.json: which files are not there, and why",
    )


def main(args: argparse.Namespace) -> None:
    """Write <display>.csv, .md, .tex, .html and .json into the folder `--out`.

    Raises UserError for unknown names and missing scores.
    """
    catalogue = load_catalogue()
    display = find_table(catalogue, args.paper, args.display)
    runs = select_runs(catalogue, display, args)
    table = make_table(find_results(catalogue, args), args.display, runs)
    files = TableFiles(args.out, args.display)
    write_table(table, files)
    tests = {key: asdict(test) for key, test in table.tests.items()}
    write_display_record(catalogue, display, runs, args, files, tests=tests)


def write_table(table: RenderedTable, files: TableFiles) -> None:
    """Write <display>.csv, .md, .tex and .html."""
    for ending, text in table.files.items():
        write_text_file(files.with_ending(ending), text)


def find_results(catalogue: Catalogue, args: argparse.Namespace) -> PaperResults:
    """Return the results that the arguments name."""
    unfinished = read_unfinished(args.unfinished)
    return PaperResults(catalogue, args.paper, args.scale, ScaleFolder(args.results), unfinished)


def select_runs(catalogue: Catalogue, display: Display, args: argparse.Namespace) -> list[Run]:
    """Select the runs that a display shows, of those that the arguments name."""
    paper_runs = select_paper_runs(catalogue, args.paper, args.scale, args.runs)
    return select_display_runs(display, paper_runs)


def write_display_record(
    catalogue: Catalogue,
    display: Display,
    runs: list[Run],
    args: argparse.Namespace,
    files: TableFiles | FigureFiles,
    **content: Any,
) -> None:
    """Write <display>.json, the record of a table or figure with `content`."""
    fingerprint = fingerprint_display(catalogue, args.paper, args.display, runs, args.scale)
    write_record(
        files.record,
        fingerprint,
        ScaleFolder(args.results),
        runs,
        [(args.paper, display)],
        **content,
    )
    add_output_digests(files.record, [file for file in files.files if file != files.record])
