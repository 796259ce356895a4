"""Write the record of a table, a figure or the claims."""

from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

from workflow_scripts.common.files import hash_file, write_json
from workflow_scripts.config.displays import score_files
from workflow_scripts.config.paths import run_folder
from workflow_scripts.config.runs import Run, Variant
from workflow_scripts.provenance.fingerprints import Fingerprint
from workflow_scripts.provenance.record import make_record


def write_record(
    file: Path,
    fingerprint: Fingerprint,
    results: Path,
    runs: Iterable[Run],
    variants: Container[Variant],
    analyses: Iterable[str],
    curves: bool = False,
    **content: Any,
) -> None:
    """Write the record with `content` as JSON.

    Its data are the scores of `runs` (with those of interventions for `variants`) and of `analyses`, named
    <paper>/<analysis>, and with `curves` the training.csv of `runs`, all under `results`, the folder of the scale.
    """
    runs = list(runs)
    read = [name for run in runs for name in score_files(run, variants)]
    read += [f"analyses/{analysis}/scores.csv" for analysis in analyses]
    read += [f"{run_folder(run)}/training.csv" for run in runs if curves]
    digests = {name: hash_file(results / name) for name in read if (results / name).exists()}
    write_json(file, make_record(fingerprint, digests) | content)
