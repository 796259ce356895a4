"""Print what a call does again before it starts, and ask in a terminal whether to start it."""

import os
import sys
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.questions import is_confirmed
from workflow_scripts.workflow.rerun_reasons import JobToRun
from workflow_scripts.workflow.stale_work import CallWork

# How ./reproduce says what to do with the line: `ask` in a terminal, `print` elsewhere or with
# --yes, `nothing` where another process has printed it.
MODE = "RECOMPOSE_NOTICE"
REFUSED = "nothing was started; --touch records the results that are there as current"


def list_dag_jobs(dag: Any) -> list[JobToRun]:
    """List the jobs that Snakemake is about to start, from its graph of jobs."""
    jobs = []
    for job in dag.needrun_jobs():
        job_to_run = JobToRun(
            rule=job.rule.name,
            wildcards=dict(job.wildcards_dict),
            input=list(map(str, job.input)),
            output=list(map(str, job.output)),
            reason=str(dag.reason(job)),
        )
        jobs.append(job_to_run)
    return sorted(jobs, key=lambda job: job.name)


def print_work(work: CallWork, logger_manager: Any = None) -> None:
    """Print the lines about the work of a call, and ask before long work that was done already.

    logger_manager: Snakemake's, whose messages are shown first. Raises UserError after a no.
    """
    mode = os.environ.get(MODE, "print")
    if mode == "nothing":
        return
    stale_line = work.describe_stale()
    lines = [line for line in (work.describe_first(), stale_line) if line]
    if lines and logger_manager and logger_manager.queue_listener:
        logger_manager.queue_listener.queue.join()
    for line in lines:
        print(line, file=sys.stderr, flush=True)
    if mode == "ask" and work.has_long_stale_work() and not is_confirmed():
        raise UserError(REFUSED)
