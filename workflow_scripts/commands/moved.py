"""Print which numbers and verdicts the last call of ./reproduce has changed."""

import argparse

from workflow_scripts.workflow.moved_numbers import describe_moves


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: the command reads what the last call has stored."""


def main(args: argparse.Namespace) -> None:
    """Print a line about tables and one about claims; nothing if none was rerun."""
    for line in describe_moves():
        print(line)
