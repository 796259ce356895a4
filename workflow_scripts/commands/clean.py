"""Remove the results of earlier settings and code that ./reproduce has kept."""

import argparse
import shutil

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import RESULTS
from workflow_scripts.common.wording import count_nouns
from workflow_scripts.workflow.earlier_results import remove_oldest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    earlier = "remove what is kept of earlier settings, which undoing a change would bring back"
    parser.add_argument("--earlier", action="store_true", help=earlier)


def main(args: argparse.Namespace) -> None:
    """Remove them, and print how many there were. Raises UserError without an option."""
    if not args.earlier:
        raise UserError("clean removes nothing by itself; add --earlier for earlier results")
    removed, size = remove_oldest(limit=0)
    for scale in RESULTS.list_scales():
        shutil.rmtree(scale.earlier_results, ignore_errors=True)  # with unfinished copies
    print(f"{count_nouns(removed, 'earlier result')} removed: {size / 1e9:.2g} GB")
