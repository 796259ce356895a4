"""Copy runs as soon as they are finished to a folder that can be taken away from a machine.

The folder has the layout of results/<scale>, so that `Results` and ./reproduce can read it.
"""

import os
import shutil
from pathlib import Path

from workflow_scripts.common.files import write_atomically
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.paths import RESULTS, evaluation_folder, manifest_file, run_folder
from workflow_scripts.workflow.time_limit import Job, OpenRun

EXPORTED = "exported"  # under results/<scale>/


class OutputTimes:
    """Tells which jobs have written their outputs since this object was made."""

    def __init__(self, jobs: list[Job]):
        self.before: dict[str, int | None] = {}
        for job in jobs:
            for file in job.outputs:
                self.before[file] = read_time(file)

    def is_done(self, job: Job) -> bool:
        """Whether all outputs of a job are new. Outputs are renamed when they are complete."""
        for file in job.outputs:
            now = read_time(file)
            if now is None or now == self.before[file]:
                return False
        return True

    def is_finished(self, run: OpenRun) -> bool:
        """Whether all jobs of a run are done."""
        return all(self.is_done(job) for job in run.own_jobs)


def read_time(file: str) -> int | None:
    """Return the time of a file's last change in ns; None if it does not exist."""
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return None


def is_scored(run: Run, scale: str) -> bool:
    """Whether a run has been made and evaluated, by whatever configuration."""
    files = (manifest_file(run), f"{evaluation_folder(run)}/evaluation.json")
    return all((RESULTS / scale / file).exists() for file in files)


def export_run(run: Run, scale: str, with_weights: bool) -> None:
    """Copy scores, predictions, learning curve and provenance of a run, and its weights if asked.

    A run that has been exported before is copied again only if its record has changed.
    """
    source = RESULTS / scale / run_folder(run)
    target = RESULTS / scale / EXPORTED / run_folder(run)
    if is_exported(source, target, with_weights):
        return
    left_out = [".*"]
    if not with_weights:
        left_out.append("checkpoint")
    with write_atomically(target) as temporary:
        shutil.copytree(source, temporary, ignore=shutil.ignore_patterns(*left_out))


def is_exported(source: Path, target: Path, with_weights: bool) -> bool:
    """Whether `target` has the records of a run in `source`, and its weights if they are wanted."""
    has_weights = (source / "checkpoint").exists()
    if with_weights and has_weights and not (target / "checkpoint").exists():
        return False
    records = [path.relative_to(source) for path in source.rglob("record.json")]
    for record in records:
        if not (target / record).exists():
            return False
        if (target / record).read_bytes() != (source / record).read_bytes():
            return False
    return True
