"""Snakemake's SLURM executor, without its defects: it waits for no lost job, forgets no job, and runs none twice.

Each method says what version 2.8.0 of the upstream executor does instead.
"""

import asyncio
import os
import re
import time
from collections import Counter

from snakemake_executor_plugin_slurm import Executor as SlurmExecutor
from snakemake_executor_plugin_slurm import ExecutorSettings, common_settings  # noqa: F401 (Snakemake reads them from a plugin)
from snakemake_executor_plugin_slurm.utils import get_job_wildcards
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

from snakemake_executor_plugin_recompose_slurm.leftovers import (
    ALIVE,
    POLL_SECONDS,
    Job,
    find_leftovers,
    job_name_prefix,
    list_queue,
    parse_end,
    run_slurm_command,
)

# Reasons of SLURM for which a waiting job never starts, unless the job or the cluster changes.
BLOCKING_REASONS = {
    "AssocMaxWallDurationPerJobLimit",
    "BadConstraints",
    "InvalidAccount",
    "InvalidQOS",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "QOSMaxWallDurationPerJobLimit",
    "launch_failed_requeued_held",
}
# Messages of sbatch when slurmctld does not answer in time. Any other failure would be repeated.
NO_ANSWER = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Zero Bytes were transmitted",
    "Connection refused",
    "Resource temporarily unavailable",
    "Unable to establish control",
    "temporarily unable to accept job",
)
MAX_MISSES = 5  # a slurmctld that has just started may not know all jobs; a pre-empted job may be queued again
MAX_SILENCE_SECONDS, MAX_SUBMIT_SECONDS = 24 * 3600, 3600  # without an answer of SLURM


class Executor(SlurmExecutor):
    """Submits jobs to SLURM and watches them."""

    def __init__(self, workflow, logger):
        """Delete the variables of the SLURM job in which Snakemake itself may run.

        SLURM_CONF stays, because commands find the cluster by it. The upstream executor deletes it, too.
        """
        for name in os.environ:
            if name.startswith("SLURM_") and name != "SLURM_CONF":
                del os.environ[name]
        super().__init__(workflow, logger)

    def __post_init__(self, test_mode: bool = False) -> None:
        settings = self.workflow.executor_settings
        if settings.array_jobs:
            raise WorkflowError(
                "job arrays are not supported, because the upstream executor confuses their ends"
            )
        settings.jobname_prefix = job_name_prefix()
        self.missed: Counter[str] = Counter()  # polls in a row without the job, by its number
        self.silent_since: float | None = None
        self.tried_since: dict[int, float] = {}  # jobs that SLURM did not answer for
        left = find_leftovers()
        if left is None:
            raise WorkflowError(
                "SLURM does not answer; run the same command again when `squeue --me` works"
            )
        if left:  # started without ./reproduce, which waits for them
            numbers = " ".join(job.number for job in left)
            raise WorkflowError(
                f"an earlier Snakemake left jobs {numbers}; run ./reproduce, which waits for them"
            )
        super().__post_init__(test_mode)

    def _report_job_error_threadsafe(self, job_info: SubmittedJobInfo, msg: str) -> None:
        """Repeat a submission that SLURM did not answer, unless SLURM has the job.

        The upstream executor counts it as a failed job. Then every job that is ready meanwhile loses all its attempts.
        """
        job = job_info.job
        since = self.tried_since.setdefault(job.jobid, time.monotonic())
        if (
            not any(text in msg for text in NO_ANSWER)
            or time.monotonic() - since > MAX_SUBMIT_SECONDS
        ):
            super()._report_job_error_threadsafe(job_info, msg)
            return
        time.sleep(POLL_SECONDS)
        known = {active.external_jobid for active in self.active_jobs}
        comment = f"rule_{job.name}_wildcards_{get_job_wildcards(job)}"
        taken = [
            one.number
            for one in list_queue("--name", self.run_uuid) or ()
            if one.comment == comment
        ]
        if new := [number for number in taken if number not in known]:
            self._report_job_submission_threadsafe(SubmittedJobInfo(job, external_jobid=new[0]))
        else:
            self._job_submission_executor.submit(self.run_job, job)

    def format_job_exec(self, job) -> str:
        """Escape what a shell reads between double quotes.

        The upstream executor puts the command there and escapes `"` alone, so that the shell that submits a job expands
        a `$` in the path of the checkout.
        """
        return re.sub(r"[\\$`]", r"\\\g<0>", super().format_job_exec(job))

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]):
        """Yield the jobs that have not ended.

        The upstream executor waits for ever for a job that SLURM has forgotten, or that sacct calls `CANCELLED by 0`,
        and forgets all jobs when SLURM does not answer.
        """
        self.next_seconds_between_status_checks = POLL_SECONDS
        if not active_jobs:
            return
        async with self.status_rate_limiter:
            found = await asyncio.to_thread(list_queue, "--name", self.run_uuid)
        self.silent_since = None if found is not None else self.silent_since or time.monotonic()
        by_number = {job.number: job for job in found or ()}
        for active in active_jobs:
            end = await self.find_end(
                active.external_jobid, by_number.get(active.external_jobid), found is not None
            )
            if end is None:
                yield active
            elif end == "COMPLETED":
                self.report_job_success(active)
            else:
                log = (active.aux or {}).get("slurm_logfile")
                said = f"SLURM-job '{active.external_jobid}' ended as {end}. "
                self.report_job_error(active, msg=said, aux_logs=[str(log)] if log else [])

    async def find_end(self, number: str, job: Job | None, answered: bool) -> str | None:
        """Return the state in which a job ended, or why SLURM would never start it; None if it has not ended."""
        if not answered:
            silent = time.monotonic() - self.silent_since
            return (
                None
                if silent <= MAX_SILENCE_SECONDS
                else "unknown: SLURM has not answered for a day"
            )
        if job is None or job.state == "PREEMPTED":
            self.missed[number] += 1
            if self.missed[number] < MAX_MISSES:
                return None
            if job:
                return job.state
            command = ("sacct", "-Xn", "--parsable2", "--format=State", f"--jobs={number}")
            answer = await asyncio.to_thread(run_slurm_command, *command)
            return parse_end(answer or "") or "unknown: SLURM has forgotten it"
        self.missed.pop(number, None)
        reason = job.reason.strip("()").replace(" ", "_")
        if job.state == "PENDING" and reason in BLOCKING_REASONS:
            run_slurm_command("scancel", number)
            return f"CANCELLED: SLURM would never start it ({reason}); docs/cluster.md says how to request less"
        return None if job.state in ALIVE else job.state
