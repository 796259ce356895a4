"""Print what a call does before it starts; ask in a terminal before long work is done again."""

import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.questions import is_confirmed
from workflow_scripts.workflow.snakemake_job import SnakemakeJob
from workflow_scripts.workflow.stale_work import CallWork
from workflow_scripts.workflow.submission_requests import (
    SlurmRequest,
    describe_requests,
    read_request,
)

# How ./reproduce says what to do with the line: `ask` in a terminal, `print` elsewhere or with
# --yes, `nothing` where another process has printed it.
MODE = "RECOMPOSE_NOTICE"
REFUSED = "nothing was started; --touch records the results that are there as current"


def list_dag_jobs(dag: Any) -> list[SnakemakeJob]:
    """List the jobs that Snakemake starts, or that a dry run has listed, from its graph of jobs."""
    jobs = []
    for job in dag.needrun_jobs(exclude_finished=False):
        job_to_run = SnakemakeJob(
            rule=job.rule.name,
            wildcards=dict(job.wildcards_dict),
            inputs=list(map(str, job.input)),
            outputs=list(map(str, job.output)),
            reason=str(dag.reason(job)),
        )
        jobs.append(job_to_run)
    return sorted(jobs, key=lambda job: job.name)


def list_requests(dag: Any) -> Iterator[SlurmRequest]:
    """Yield what the jobs that Snakemake would submit ask for, from its graph of jobs."""
    for job in dag.needrun_jobs(exclude_finished=False):
        # In a dry run Snakemake takes all jobs for local ones. Submitted rules set `nodes`.
        resources = dict(job.resources.items())
        if "nodes" in resources:
            yield read_request(job.rule.name, resources)


def print_dry_run(work: CallWork, requests: Iterable[SlurmRequest]) -> None:
    """Print what the jobs of a dry run ask SLURM for, their hours, and gated models."""
    if os.environ.get(MODE) == "nothing":
        return
    for line in (*describe_requests(requests), *work.describe()):
        print(line, file=sys.stderr, flush=True)


def print_work(work: CallWork, logger_manager: Any = None) -> None:
    """Print the lines about the work of a call, and ask before long work that was done already.

    logger_manager: Snakemake's, whose messages are shown first. Raises UserError after a no.
    """
    mode = os.environ.get(MODE, "print")
    if mode == "nothing":
        return
    lines = work.describe()
    if lines and logger_manager and logger_manager.queue_listener:
        logger_manager.queue_listener.queue.join()
    for line in lines:
        print(line, file=sys.stderr, flush=True)
    if mode == "ask" and work.has_long_stale_work() and not is_confirmed():
        raise UserError(REFUSED)
