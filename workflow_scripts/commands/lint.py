"""Print every problem of config.yaml, catalogue/ and papers/, each with its file and line, before anything runs."""

import argparse

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.checker import find_problems


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command: none."""


def main(args: argparse.Namespace) -> None:
    """Print the problems. Raises UserError with one line for each."""
    if problems := find_problems():
        raise UserError("\n".join(problems))
    print("config.yaml, catalogue/ and papers/: no problem found")
