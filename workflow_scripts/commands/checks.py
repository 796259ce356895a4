"""Run the checks that need no training: SCAN's grammar, and the papers' published numbers."""

import argparse
from dataclasses import asdict, fields
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_csv
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.claims.checks import (
    DIFFERS,
    FINDING,
    SAME,
    Check,
    audit_published_numbers,
    verify_grammar,
)

COLOURS = {SAME: "green", DIFFERS: "red", FINDING: "yellow"}
LOG_WIDTH = 120


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the checks as CSV")


def main(args: argparse.Namespace) -> None:
    """Print all checks and write them to the file given. Raises UserError if one differs."""
    found = [*verify_grammar(), *audit_published_numbers(load_catalogue())]
    if args.out:
        write_csv(args.out, [field.name for field in fields(Check)], [asdict(check) for check in found])
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = LOG_WIDTH
    console.print("[bold]Checks that need no training[/]")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(overflow="fold")
    table.add_column(no_wrap=True)
    for check in found:
        table.add_row(escape(check.statement), f"[{COLOURS[check.outcome]}]{check.outcome}[/]")
    console.print(table, soft_wrap=False)
    console.print()
    if wrong := [check.check for check in found if check.outcome == DIFFERS]:
        advice = "undo the last change of workflow_scripts/data/datasets/scan*.py"
        raise UserError(f"{', '.join(wrong)}: differs from the official files; {advice}")
