"""Print the results of the claims that a call of ./reproduce names, and how each was judged.

./reproduce --claim calls this at its end.
"""

import argparse

from workflow_scripts.common.files import MissingFileError
from workflow_scripts.common.result_folders import RESULTS
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.claims.claim_table import print_claims_alone
from workflow_scripts.workflow.snakemake_call import (
    add_snakemake_arguments,
    get_snakemake_arguments,
    parse_call,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_snakemake_arguments(parser)


def main(args: argparse.Namespace) -> None:
    """Print the claims of the call; nothing if it made other files.

    Raises UserError for a claim without a result.
    """
    words = get_snakemake_arguments(args)
    call = parse_call(words)
    if call.targets:
        return
    results = RESULTS.scale(call.config.scale)
    papers = load_catalogue().papers
    for name in call.config.claims or ():
        file = results.claim(*name.split("/")).table
        if not file.exists():
            raise MissingFileError(file)
        print_claims_alone(file, results.path.name, papers)
