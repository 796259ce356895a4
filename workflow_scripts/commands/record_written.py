"""Record results that were written whole when Snakemake was stopped, before it had seen their end.

./reproduce calls it before Snakemake, which would make them again.
"""

import argparse
import sys

from workflow_scripts.workflow.snakemake_call import (
    add_snakemake_arguments,
    get_snakemake_arguments,
)
from workflow_scripts.workflow.written_results import list_marked_files, record_written_results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--dry-run", action="store_true", help="only print which results these are")
    add_snakemake_arguments(parser)


def main(args: argparse.Namespace) -> None:
    """Record the results, and print which they are.

    Raises UserError if Snakemake cannot record them.
    """
    marked = list_marked_files()
    if not marked:
        return
    jobs = record_written_results(marked, get_snakemake_arguments(args), is_dry_run=args.dry_run)
    if not jobs:
        return
    names = ", ".join(job.name for job in jobs)
    when = "written as an earlier call was stopped"
    line = f"1 result was {when}, and stays: {names}"
    if len(jobs) > 1:
        line = f"{len(jobs)} results were {when}, and stay: {names}"
    print(line, file=sys.stderr)
