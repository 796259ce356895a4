"""Write one table of a paper, published numbers next to reproduced ones, as CSV, Markdown, LaTeX and HTML."""

import argparse
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workflow_scripts.common.files import write_atomically
from workflow_scripts.config.catalogue import Catalogue, Run
from workflow_scripts.config.displays import add_run_arguments, find_entry, select_display_runs, select_paper_runs
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.provenance.fingerprints import fingerprint_display
from workflow_scripts.reporting.evidence.evidence import write_record
from workflow_scripts.reporting.tables.table import make_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_display_arguments(parser, "table", "csv, .md, .tex, .html and .json")


def add_display_arguments(parser: argparse.ArgumentParser, kind: str, suffixes: str) -> None:
    """Add the arguments of the commands that write a table or figure."""
    add_run_arguments(parser)
    parser.add_argument("--display", required=True, help=f"name of a {kind} in the paper's displays.yaml")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help=f"folder for <display>.{suffixes}")


def main(args: argparse.Namespace) -> None:
    """Write the files. Raises UserError for unknown names and missing scores."""
    catalogue = load_catalogue()
    entry, runs = select_runs(catalogue, "table", args)
    table = make_table(catalogue, args.paper, args.display, args.scale, runs, args.results)
    for suffix, text in table.files.items():
        with write_atomically(args.out / f"{args.display}.{suffix}") as temporary:
            temporary.write_text(text, encoding="utf-8")
    write_display_record(catalogue, entry, runs, args, tests={key: asdict(test) for key, test in table.tests.items()})


def select_runs(catalogue: Catalogue, kind: str, args: argparse.Namespace) -> tuple[dict, list[Run]]:
    """Return the entry of the display in displays.yaml and the runs that it shows."""
    entry = find_entry(catalogue, args.paper, kind, args.display)
    return entry, select_display_runs(entry, select_paper_runs(catalogue, args.paper, args.scale, args.runs))


def write_display_record(
    catalogue: Catalogue, entry: dict, runs: Iterable[Run], args: argparse.Namespace, **content: Any
) -> None:
    """Write <display>.json, the record of a table or figure with `content`."""
    file, fingerprint = f"{args.display}.json", fingerprint_display(catalogue, entry["kind"], args.paper, args.display)
    write_record(args.out / file, fingerprint, args.results, runs, [(args.paper, entry)], **content)
