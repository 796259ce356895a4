"""Record results that Snakemake would make again, although they are whole and current.

While a job runs, Snakemake marks its outputs as incomplete. A job writes all its outputs at once,
at its end. If Snakemake is stopped after that, the marks stay, and the job would run again. After
an edit of the code during a call, Snakemake's records are of the code before it. So
`snakemake --touch` records results that are current by their own records.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import list_files
from workflow_scripts.common.result_folders import DOWNLOADS
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.schema import Config
from workflow_scripts.data.sources.declared import load_sources
from workflow_scripts.workflow.changes import describe_changes
from workflow_scripts.workflow.dry_run import list_jobs_to_run
from workflow_scripts.workflow.job_specs import fingerprint_workflow_job
from workflow_scripts.workflow.result_patterns import RECORDS, locate_record
from workflow_scripts.workflow.snakemake_call import parse_call, read_arguments
from workflow_scripts.workflow.snakemake_job import SnakemakeJob, set_needed_jobs
from workflow_scripts.workflow.snakemake_records import decode_output_name

# Snakemake's marks.
MARKS = Path(".snakemake/incomplete")


def list_marked_files() -> list[str]:
    """List the outputs that are there, and that Snakemake counts as incomplete.

    But downloaded files, which no rule makes while they are there: their manifests are outputs.
    """
    marked = []
    for mark in list_files(MARKS, "**/*"):
        if mark.is_file():
            marked.append(decode_output_name(mark.relative_to(MARKS)))
    if not marked:
        return []
    downloads = {str(DOWNLOADS.source(name).path) for name in load_sources()}
    return [name for name in marked if name not in downloads and Path(name).exists()]


def record_written_results(
    outputs: Iterable[str], arguments: list[str], *, is_dry_run: bool = False
) -> list[SnakemakeJob]:
    """Record the outputs that are whole and current results, and return their jobs.

    arguments: those of a call of Snakemake. A dry run records none. Raises UserError if Snakemake
    cannot record them.
    """
    settings = read_arguments(arguments).config or []
    options = ["--config", *settings] if settings else []
    try:
        config = parse_call(arguments).config
        catalogue = load_catalogue()
        jobs = set_needed_jobs(list_jobs_to_run(*options, "--", *outputs))
    except UserError:  # no rule makes one of them any more, or the call itself says what is wrong
        return []
    written = select_written(catalogue, config, jobs)
    if written and not is_dry_run:
        record_as_made(options, [job.outputs[0] for job in written])
    return written


def select_written(
    catalogue: Catalogue, config: Config, jobs: Iterable[SnakemakeJob]
) -> list[SnakemakeJob]:
    """Select the jobs whose results are whole and current, as are those that they read."""
    is_job_written: dict[SnakemakeJob, bool] = {}

    def check(job: SnakemakeJob) -> bool:
        if job not in is_job_written:
            is_job_written[job] = all(map(check, job.needed)) and is_written(catalogue, config, job)
        return is_job_written[job]

    return [job for job in jobs if check(job)]


def is_written(catalogue: Catalogue, config: Config, job: SnakemakeJob) -> bool:
    """Whether the result of a job is whole, current, and made of the inputs that are there."""
    if job.stage not in RECORDS:
        return False
    record = locate_record(job.stage, job.wildcards)
    outputs = list(map(Path, job.outputs))
    if not record.exists() or not all(output.exists() for output in outputs):
        return False
    oldest_output = min(output.stat().st_mtime_ns for output in outputs)
    for name in job.inputs:
        if Path(name).stat().st_mtime_ns > oldest_output:
            return False
    fingerprint = fingerprint_workflow_job(catalogue, config, job.stage, job.wildcards)
    return fingerprint is not None and not describe_changes(record, fingerprint)


def record_as_made(options: list[str], outputs: list[str]) -> None:
    """Let Snakemake record outputs as made."""
    command = [sys.executable, "-m", "snakemake", "--touch", *options, "--", *outputs]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode != 0:
        last_line = done.stderr.strip().rpartition("\n")[2]
        raise UserError(f"snakemake --touch {' '.join(outputs)}: {last_line}")
