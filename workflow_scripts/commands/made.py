"""Print the files that a call was for, whether it has made them, and the scores of a run."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from workflow_scripts.common.result_folders import RESULTS, RunFolder

SHOWN_FILES = 6
SHOWN_SCORES = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    started = "a file that was written when the call started: what is older was there before"
    parser.add_argument("--started", type=Path, metavar="FILE", help=started)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")


def main(args: argparse.Namespace) -> None:
    """Print a line for each file that is there; after a single scores.csv of a run, its scores."""
    files = [file for file in args.files if file.is_file()]
    for file in files[:SHOWN_FILES]:
        print(f"{'Made' if is_made(file, args.started) else 'Up to date'}: {file}")
    if len(files) > SHOWN_FILES:
        print(f"And {len(files) - SHOWN_FILES} more files")
    if len(files) == 1:
        run = RunFolder(files[0].parent.parent)
        in_results = run.path.is_relative_to(RESULTS.path)
        if in_results and files[0] == run.evaluation.scores:
            print("\n".join(describe_scores(run)))


def is_made(file: Path, started: Path | None) -> bool:
    """Whether a file is newer than the start of a call."""
    return started is None or file.stat().st_mtime_ns >= started.stat().st_mtime_ns


def describe_scores(folder: RunFolder) -> Iterator[str]:
    """Yield the scores of a run on whole splits, those of a planned seed excepted.

    Of several readouts only those of the weights that validation chose, if they have scores.
    """
    # Imported here, because these modules take most of the time and few calls need them.
    from workflow_scripts.config.catalogue import parse_run
    from workflow_scripts.config.loading import load_catalogue
    from workflow_scripts.evaluation.scores import read_scores

    catalogue = load_catalogue()
    run = parse_run(catalogue, folder.name)
    scale = folder.scale.path.name
    for paper in catalogue.papers.values():
        if run.seed in paper.list_planned_seeds(scale).get(run.variant_key, []):
            yield "  a planned seed: tables show its scores when all planned seeds have theirs"
            return
    scores = read_scores(folder.evaluation.scores)
    whole = [score for score in scores if score.subset == "all" and score.unit != "count"]
    shown = [score for score in whole if score.readout is None] or whole
    for score in shown[:SHOWN_SCORES]:
        names = [score.split, score.readout, score.metric]
        name = " ".join(name for name in names if name)
        yield f"  {name:40} {score.value:8.2f} {score.unit}, n {score.n:,}"
    if len(shown) > SHOWN_SCORES:
        yield f"  and {len(shown) - SHOWN_SCORES} more scores"
