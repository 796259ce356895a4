"""Print every problem of config.yaml, catalogue/ and papers/, each with its file and line, before anything runs."""

import argparse

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.checker import find_problems
from workflow_scripts.config.editor_schemas import write_schemas
from workflow_scripts.config.loading import load_catalogue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command: none."""


def main(args: argparse.Namespace) -> None:
    """Print the problems, or else bring the editors' schemas up to date. Raises UserError with one line for each."""
    if problems := find_problems():
        raise UserError("\n".join(problems))
    for file in write_schemas(load_catalogue()):
        print(f"{file} is new: editors complete the names of now")
    print("config.yaml, catalogue/ and papers/: no problem found")
