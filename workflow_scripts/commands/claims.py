"""Decide on every claim of the papers, and write the first page of the report."""

import argparse
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_atomically
from workflow_scripts.config.displays import select_claimed_displays, select_paper_runs, select_shown_displays
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.provenance.fingerprints import fingerprint_claims
from workflow_scripts.reporting.claims.claim_table import print_claims, read_claim_table
from workflow_scripts.reporting.claims.judging import judge_paper, write_claims
from workflow_scripts.reporting.evidence.evidence import write_record
from workflow_scripts.reporting.pages.overview import format_overview


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--show", type=Path, metavar="FILE", help="print a claims.csv, in a folder named as its scale")
    parser.add_argument("--papers", nargs="+", metavar="KEY", help="folders of papers/")
    parser.add_argument("--scale")
    parser.add_argument("--runs", nargs="*", metavar="ID", help="instead of the runs that config.yaml asks for")
    parser.add_argument("--results", type=Path, metavar="DIR", help="has runs/ and analyses/ of the scale")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="claims.csv; other files go with it, such as claim_sides.csv"
    )


def main(args: argparse.Namespace) -> None:
    """Write claims.csv and claim_sides.csv, and print the verdicts.

    Raises UserError for unknown names and missing scores.
    """
    if args.show:
        print_claims(args.show, args.show.resolve().parent.name)
        return
    for name in ("papers", "scale", "results", "out"):
        if getattr(args, name) is None:
            raise UserError(f"claims needs --{name} (or --show FILE alone)")
    catalogue = load_catalogue()
    asked = {paper: select_paper_runs(catalogue, paper, args.scale, args.runs) for paper in args.papers}
    outcomes = {paper: judge_paper(catalogue, paper, args.scale, asked[paper], args.results) for paper in args.papers}
    write_claims(args.out, outcomes)
    runs = dict.fromkeys(run for found in asked.values() for run in found)
    papers = {paper: catalogue.papers[paper] for paper in args.papers}
    shown = {
        key: select_claimed_displays(paper, select_shown_displays(paper, asked[key])) for key, paper in papers.items()
    }
    displays = [(key, entry) for key, entries in shown.items() for entry in entries.values()]
    write_record(
        args.out.with_suffix(".json"),
        fingerprint_claims(catalogue, args.papers, args.scale, map(str, runs)),
        args.results,
        runs,
        displays,
    )
    with write_atomically(args.out.with_name("overview.rst")) as temporary:
        temporary.write_text(format_overview(catalogue, args.scale, read_claim_table(args.out)), encoding="utf-8")
    print_claims(args.out, args.scale)
