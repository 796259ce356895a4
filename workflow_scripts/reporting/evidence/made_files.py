"""Say what a call for single files has made: their paths, and the scores of a run."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from workflow_scripts.common.result_folders import EvaluationFolder, RunFolder
from workflow_scripts.config.catalogue import Catalogue, parse_run
from workflow_scripts.evaluation.scores import read_scores

SHOWN_FILES = 6
SHOWN_SCORES = 12


def describe_made_files(catalogue: Catalogue, targets: Iterable[str]) -> Iterator[str]:
    """Yield a line for each file that is there, and lines for the scores of a single run."""
    files = [Path(target) for target in targets if Path(target).is_file()]
    for file in files[:SHOWN_FILES]:
        yield f"Made: {file}"
    if len(files) > SHOWN_FILES:
        yield f"Made: {len(files) - SHOWN_FILES} more files"
    if len(files) == 1 and files[0] == EvaluationFolder(files[0].parent).scores:
        run = RunFolder(files[0].parent.parent)
        if files[0] == run.evaluation.scores:
            yield from describe_scores(catalogue, run)


def describe_scores(catalogue: Catalogue, folder: RunFolder) -> Iterator[str]:
    """Yield the scores of a run on whole splits, those of a planned seed excepted.

    Of several readouts only those of the weights that validation chose, if they have scores.
    """
    run = parse_run(catalogue, folder.name)
    scale = folder.scale.path.name
    for paper in catalogue.papers.values():
        if run.seed in paper.list_planned_seeds(scale).get(run.variant_key, []):
            yield "  a planned seed: tables show its scores when all planned seeds have theirs"
            return
    rows = read_scores(folder.evaluation.scores)
    whole = [row for row in rows if row["subset"] == "all" and row["unit"] != "count"]
    scores = [row for row in whole if row["readout"] is None] or whole
    for row in scores[:SHOWN_SCORES]:
        names = [row["split"], row["readout"], row["metric"]]
        name = " ".join(name for name in names if name)
        yield f"  {name:40} {row['value']:8.2f} {row['unit']}, n {row['n']:,}"
    if len(scores) > SHOWN_SCORES:
        yield f"  and {len(scores) - SHOWN_SCORES} more scores"
