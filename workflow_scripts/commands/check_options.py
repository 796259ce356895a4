"""Check the options of a call of ./reproduce before Snakemake reads them."""

import argparse
import sys

from workflow_scripts.common.errors import UserError
from workflow_scripts.workflow.option_check import find_wrong_options, suggest_option
from workflow_scripts.workflow.resource_check import find_replaced_defaults, suggest_for_sbatch
from workflow_scripts.workflow.snakemake_call import (
    add_snakemake_arguments,
    get_snakemake_arguments,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_snakemake_arguments(parser)


def main(args: argparse.Namespace) -> None:
    """Raise UserError for the first option that does not exist, or names nothing."""
    arguments = get_snakemake_arguments(args)
    try:
        problem = next(find_wrong_options(arguments), None)
    except UserError as error:
        text = str(error)
        advice = suggest_for_sbatch(arguments, text) or suggest_option(text)
        raise UserError(advice or text) from error
    if problem:
        raise UserError(problem)
    replaced = ", ".join(find_replaced_defaults(arguments))
    if replaced:
        print(
            f"--default-resources replaces those of your profile: without {replaced}; name all of "
            "them in one place",
            file=sys.stderr,
        )
