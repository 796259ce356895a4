"""Print every problem of config.yaml, catalogue/ and papers/, each with its file and line, before
anything runs.

If there is none, catalogue/schemas/ is brought up to date for editors.
"""

import argparse

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.checker import find_problems
from workflow_scripts.config.editor_schemas import write_schemas
from workflow_scripts.config.loading import load_catalogue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command: none."""


def main(args: argparse.Namespace) -> None:
    """Bring the editors' schemas up to date if there is no problem.

    Raises UserError with one line for each problem.
    """
    problems = find_problems()
    if problems:
        raise UserError("\n".join(problems))
    for file in write_schemas(load_catalogue()):
        print(f"wrote {file}: editors now complete the current names")
    print("config.yaml, catalogue/ and papers/: no problem found")
