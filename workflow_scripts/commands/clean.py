"""Remove the results of earlier settings and code that ./reproduce has kept, and what killed
processes have left.
"""

import argparse
import os
import shutil
from pathlib import Path

from workflow_scripts.commands.train import ANY_DIGEST, remove_unused_state
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import ANY_RUN, RESULTS
from workflow_scripts.common.scratch_folders import remove_leftovers
from workflow_scripts.common.wording import count_nouns
from workflow_scripts.workflow.earlier_results import remove_oldest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    earlier = "remove what is kept of earlier settings, which undoing a change would bring back"
    parser.add_argument("--earlier", action="store_true", help=earlier)
    leftovers = (
        "remove half-written results, and saved states from which trainings and searches would "
        "continue; what a process holds stays"
    )
    parser.add_argument("--leftovers", action="store_true", help=leftovers)


def main(args: argparse.Namespace) -> None:
    """Remove them, and print how many there were. Raises UserError without an option."""
    if not args.earlier and not args.leftovers:
        raise UserError(
            "clean removes nothing by itself; add --earlier for earlier results, or --leftovers "
            "for what stopped and killed jobs have left"
        )
    if args.earlier:
        removed, size = remove_oldest(limit=0)
        for scale in RESULTS.list_scales():
            shutil.rmtree(scale.earlier_results, ignore_errors=True)  # with unfinished copies
        print(f"{count_nouns(removed, 'earlier result')} removed: {size / 1e9:.2g} GB")
    if args.leftovers:
        before = measure_folder(RESULTS.path)
        for folder, _, _ in os.walk(RESULTS.path):
            remove_leftovers(Path(folder))
        for state in list_states():
            remove_unused_state(state)
        print(f"leftovers removed: {(before - measure_folder(RESULTS.path)) / 1e9:.2g} GB")


def list_states() -> list[Path]:
    """List the folders of saved states of trainings and searches, of all scales."""
    states = []
    for scale in RESULTS.list_scales():
        # The word `search` is in the place of the seed.
        pattern = scale.training_state(ANY_RUN, ANY_DIGEST).relative_to(scale.path)
        states += scale.path.glob(pattern.as_posix())
    return states


def measure_folder(path: Path) -> int:
    """Return the bytes of all files in a folder; a file with several hard links counts once."""
    sizes = {}
    for folder, _, names in os.walk(path):
        for name in names:
            stat = os.lstat(Path(folder) / name)
            sizes[stat.st_dev, stat.st_ino] = stat.st_size
    return sum(sizes.values())
