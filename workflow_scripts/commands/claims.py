"""Decide on every claim of the papers, and write the first page of the report; with --claim on
these claims alone, without the page.
"""

import argparse
from pathlib import Path

from workflow_scripts.commands.table import add_unfinished_argument
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_text_file
from workflow_scripts.common.result_folders import ClaimFiles, ScaleFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.claim_needs import split_claim_names
from workflow_scripts.config.display_schema import Display
from workflow_scripts.config.displays import select_paper_runs
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.requested import find_paper_needs
from workflow_scripts.config.schema import Config
from workflow_scripts.provenance.fingerprints import fingerprint_claims
from workflow_scripts.provenance.record import add_output_digests
from workflow_scripts.provenance.unfinished import read_unfinished
from workflow_scripts.reporting.claims.claim_rows import read_claim_rows
from workflow_scripts.reporting.claims.claim_table import print_claims, print_claims_alone
from workflow_scripts.reporting.claims.judging import judge_alone, judge_paper, write_claims
from workflow_scripts.reporting.claims.outcome import Outcome
from workflow_scripts.reporting.evidence.evidence import write_record
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.pages.overview import format_overview
from workflow_scripts.workflow.dry_run import add_config_arguments, load_call_config


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--show",
        type=Path,
        metavar="FILE",
        help="print a claims.csv, in a folder named as its scale",
    )
    add_config_arguments(parser)
    parser.add_argument(
        "--runs", nargs="*", metavar="ID", help="instead of the runs that each paper asks for"
    )
    parser.add_argument(
        "--results", type=Path, metavar="DIR", help="has runs/ and analyses/ of the scale"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="claims.csv; claim_sides.csv and other files go with it",
    )
    add_unfinished_argument(parser)


def main(args: argparse.Namespace) -> None:
    """Write claims.csv and claim_sides.csv, and print the verdicts.

    Raises UserError for unknown names and missing scores.
    """
    if args.show:
        print_claims(args.show, args.show.resolve().parent.name)
        return
    for name in ("results", "out"):
        if getattr(args, name) is None:
            raise UserError(f"claims needs --{name} (or --show FILE alone)")
    catalogue = load_catalogue()
    config = load_call_config(args)
    scale = config.scale
    results = ScaleFolder(args.results)
    unfinished = read_unfinished(args.unfinished)
    judged: dict[str, list[Outcome]] = {}
    displays: list[tuple[str, Display]] = []
    runs: list[Run] = []
    for key in config.papers:
        paper_runs = select_paper_runs(catalogue, key, scale, args.runs, config)
        paper_results = PaperResults(catalogue, key, scale, results, unfinished)
        if config.claims:
            claims = split_claim_names(config.claims)[key]
            judged[key] = [judge_alone(paper_results, claim, paper_runs) for claim in claims]
        else:
            judged[key] = judge_paper(paper_results, paper_runs)
        compared = list_compared_displays(catalogue, config, key, paper_runs)
        displays += [(key, display) for display in compared]
        runs += paper_runs
    files = ClaimFiles(args.out)
    write_claims(args.out, judged)
    runs = list(dict.fromkeys(runs))  # a run of several papers once
    fingerprint = fingerprint_claims(catalogue, config.papers, scale, runs)
    write_record(files.record, fingerprint, results, runs, displays)
    if config.claims:
        add_output_digests(files.record, [files.table, files.sides])
        print_claims_alone(args.out, scale, catalogue.papers)
        return
    overview = format_overview(catalogue, scale, read_claim_rows(args.out))
    write_text_file(files.overview, overview)
    add_output_digests(files.record, [files.table, files.sides, files.overview])
    print_claims(args.out, scale)
    # The last line of a job's log is what the terminal shows of it while it runs.
    print(f"written to {args.out}")


def list_compared_displays(
    catalogue: Catalogue, config: Config, paper: str, runs: dict[Run, list[str]]
) -> list[Display]:
    """List the displays of a paper whose cells the claims of the configuration compare."""
    if config.claims:
        return list(find_paper_needs(catalogue, config, paper).select_shown_displays(runs).values())
    return list(catalogue.papers[paper].select_claimed_displays(runs).values())
