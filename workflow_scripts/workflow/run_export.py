"""Copy runs as soon as they are finished to a folder that can be taken away from a machine.

The folder has the layout of results/<scale>, so that `Results` and ./reproduce can read it.
"""

import os
import shutil

from workflow_scripts.common.files import write_atomically
from workflow_scripts.common.result_folders import RESULTS, RunFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.workflow.snakemake_job import SnakemakeJob
from workflow_scripts.workflow.time_limit import OpenRun


class OutputTimes:
    """Tells which jobs have written their outputs since this object was made."""

    def __init__(self, jobs: list[SnakemakeJob]):
        self.before: dict[str, int | None] = {}
        for job in jobs:
            for file in job.outputs:
                self.before[file] = read_time(file)

    def is_done(self, job: SnakemakeJob) -> bool:
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
    folder = RESULTS.scale(scale).run(run)
    return folder.first_manifest.exists() and folder.evaluation.manifest.exists()


def export_run(run: Run, scale: str, with_weights: bool) -> None:
    """Copy scores, predictions, learning curve and provenance of a run, and its weights if asked.

    A run that has been exported before is copied again only if its record has changed.
    """
    results = RESULTS.scale(scale)
    source = results.run(run)
    target = results.exported.run(run)
    if is_exported(source, target, with_weights):
        return
    left_out = [".*"]
    if not with_weights:
        left_out.append(source.checkpoint.name)
    with write_atomically(target.path) as temporary:
        shutil.copytree(source.path, temporary, ignore=shutil.ignore_patterns(*left_out))


def is_exported(source: RunFolder, target: RunFolder, with_weights: bool) -> bool:
    """Whether `target` has the records of a run in `source`, and its weights if they are wanted."""
    has_weights = source.checkpoint.exists()
    if with_weights and has_weights and not target.checkpoint.exists():
        return False
    for record in source.path.rglob(source.record.name):
        copy = target.path / record.relative_to(source.path)
        if not copy.exists():
            return False
        if copy.read_bytes() != record.read_bytes():
            return False
    return True
