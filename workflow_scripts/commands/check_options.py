"""Check the options of a call of ./reproduce before Snakemake reads them."""

import argparse

from workflow_scripts.common.errors import UserError
from workflow_scripts.workflow.option_check import find_wrong_options, suggest_option
from workflow_scripts.workflow.snakemake_call import (
    add_snakemake_arguments,
    get_snakemake_arguments,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_snakemake_arguments(parser)


def main(args: argparse.Namespace) -> None:
    """Raise UserError for the first option that does not exist, or names nothing."""
    try:
        problem = next(find_wrong_options(get_snakemake_arguments(args)), None)
    except UserError as error:
        raise UserError(suggest_option(str(error)) or str(error)) from error
    if problem:
        raise UserError(problem)
