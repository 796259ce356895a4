"""Write one table of a paper, published numbers next to reproduced ones, as CSV, Markdown, LaTeX and HTML."""

import argparse
from dataclasses import asdict
from pathlib import Path

from workflow_scripts.common.files import write_atomically
from workflow_scripts.config.display_schema import display_analyses
from workflow_scripts.config.displays import add_run_arguments, asked_runs, display_runs, find_entry, intervened
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.provenance.fingerprints import fingerprint_display
from workflow_scripts.reporting.evidence.display_record import write_record
from workflow_scripts.reporting.tables.table import make_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_arguments(parser)
    parser.add_argument("--display", required=True, help="name of a table in the paper's displays.yaml")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="gets <display>.csv, .md, .tex, .html and .json"
    )


def main(args: argparse.Namespace) -> None:
    """Write the files. Raises UserError for unknown names and missing scores."""
    catalogue = load_catalogue()
    content = find_entry(catalogue, args.paper, "table", args.display)
    runs = display_runs(content, asked_runs(catalogue, args.paper, args.scale, args.runs))
    table = make_table(catalogue, args.paper, args.display, args.scale, runs, args.results)
    for suffix, text in table.files.items():
        with write_atomically(args.out / f"{args.display}.{suffix}") as temporary:
            temporary.write_text(text, encoding="utf-8")
    write_record(
        args.out / f"{args.display}.json",
        fingerprint_display(catalogue, "table", args.paper, args.display),
        args.results,
        runs,
        intervened([content]),
        [f"{args.paper}/{name}" for name in display_analyses(content)],
        tests={key: asdict(test) for key, test in table.tests.items()},
    )
