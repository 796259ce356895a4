"""Record results that were written whole when Snakemake was stopped, before it had seen their end.

While a job runs, Snakemake marks its outputs as incomplete. A job writes all its outputs at once,
at its end. If Snakemake is stopped after that, the marks stay, and the job would run again. So
`snakemake --touch` first records results that are current by their own records.
"""

import subprocess
import sys
from base64 import urlsafe_b64decode
from collections.abc import Iterable
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import list_files
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.schema import Config
from workflow_scripts.workflow.changes import describe_changes
from workflow_scripts.workflow.dry_run import list_jobs_to_run
from workflow_scripts.workflow.job_specs import fingerprint_workflow_job
from workflow_scripts.workflow.result_patterns import RECORDS, locate_record
from workflow_scripts.workflow.snakemake_call import parse_call, read_arguments
from workflow_scripts.workflow.snakemake_job import SnakemakeJob, set_needed_jobs

# Snakemake's marks: the name of a file is that of the output in Base64, which folders cut into
# parts where it is too long. All parts but the last begin with @.
MARKS = Path(".snakemake/incomplete")


def list_marked_files() -> list[str]:
    """List the outputs that are there, and that Snakemake counts as incomplete."""
    marked = []
    for mark in list_files(MARKS, "**/*"):
        if mark.is_file():
            parts = mark.relative_to(MARKS).parts
            encoded = "".join(part.removeprefix("@") for part in parts)
            marked.append(urlsafe_b64decode(encoded).decode())
    return [name for name in marked if Path(name).exists()]


def record_written_results(
    marked: Iterable[str], arguments: list[str], *, is_dry_run: bool = False
) -> list[SnakemakeJob]:
    """Record the marked outputs that are whole and current results, and return their jobs.

    arguments: those of the call of Snakemake that follows. A dry run records none. Raises
    UserError if Snakemake cannot record them.
    """
    settings = read_arguments(arguments).config or []
    options = ["--config", *settings] if settings else []
    try:
        config = parse_call(arguments).config
        catalogue = load_catalogue()
        jobs = set_needed_jobs(list_jobs_to_run(*options, "--", *marked))
    except UserError:  # no rule makes one of them any more, or the call itself says what is wrong
        return []
    written = [job for job in jobs if is_written(catalogue, config, job)]
    outputs = [job.outputs[0] for job in written]
    if outputs and not is_dry_run:
        record_as_made(options, outputs)
    return written


def is_written(catalogue: Catalogue, config: Config, job: SnakemakeJob) -> bool:
    """Whether the result of a job is whole, current, and made of the inputs that are there."""
    if job.stage not in RECORDS or job.needed:
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
