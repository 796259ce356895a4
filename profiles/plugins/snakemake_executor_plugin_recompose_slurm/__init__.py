"""Snakemake's SLURM executor, with an answer to every question: no job is waited for in vain, none is forgotten, and
none runs twice. What upstream's does otherwise, at 2.8.0, stands at each method."""

import asyncio
import os
import time
from collections import Counter

from snakemake_executor_plugin_slurm import Executor as SlurmExecutor
from snakemake_executor_plugin_slurm import ExecutorSettings, common_settings  # noqa: F401 (what a plugin must have)
from snakemake_executor_plugin_slurm.utils import get_job_wildcards
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

from snakemake_executor_plugin_recompose_slurm.leftovers import (
    ALIVE,
    LOOK_SECONDS,
    Job,
    ask,
    find_leftovers,
    prefix,
    queue,
)

# Why a waiting job will wait for ever, unless somebody changes the job or the cluster.
NEVER = {
    "AssocMaxWallDurationPerJobLimit",
    "BadConstraints",
    "InvalidAccount",
    "InvalidQOS",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "QOSMaxWallDurationPerJobLimit",
    "launch_failed_requeued_held",
}
# What sbatch says when slurmctld does not answer, or not in time; any other failure would come again.
NO_ANSWER = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Zero Bytes were transmitted",
    "Connection refused",
    "Resource temporarily unavailable",
    "Unable to establish control",
    "temporarily unable to accept job",
)
LOOKS = 5  # a slurmctld that has just started may not have read all jobs; a pre-empted one may be queued again
SILENCE_SECONDS, SUBMIT_SECONDS = 24 * 3600, 3600  # without an answer of SLURM


class Executor(SlurmExecutor):
    """Submits to SLURM and looks after the jobs."""

    def __init__(self, workflow, logger):
        """Forget the job in which Snakemake itself may run, but for SLURM_CONF, without which no command finds the
        cluster. Upstream's deletes that, too."""
        for name in os.environ:
            if name.startswith("SLURM_") and name != "SLURM_CONF":
                del os.environ[name]
        super().__init__(workflow, logger)

    def __post_init__(self, test_mode: bool = False) -> None:
        settings = self.workflow.executor_settings
        if settings.array_jobs:
            raise WorkflowError("job arrays are not supported: upstream's executor takes one job's end for another's")
        settings.jobname_prefix = prefix()
        self.missed: Counter[str] = Counter()  # looks in a row that a job was not seen in, by its number
        self.silent_since: float | None = None
        self.tried_since: dict[int, float] = {}  # jobs that SLURM did not answer for
        left = find_leftovers()
        if left is None:
            raise WorkflowError("SLURM does not answer; call the same command again when `squeue --me` works")
        if left:  # started without ./reproduce, which waits for them
            numbers = " ".join(job.number for job in left)
            raise WorkflowError(f"an earlier call left jobs {numbers}; start with ./reproduce, which waits for them")
        super().__post_init__(test_mode)

    def _report_job_error_threadsafe(self, job_info: SubmittedJobInfo, msg: str) -> None:
        """A submission that SLURM did not answer is made again, unless it was taken after all. Upstream's counts as a
        failed job, which costs every job that becomes ready meanwhile all its attempts."""
        job = job_info.job
        since = self.tried_since.setdefault(job.jobid, time.monotonic())
        if not any(text in msg for text in NO_ANSWER) or time.monotonic() - since > SUBMIT_SECONDS:
            super()._report_job_error_threadsafe(job_info, msg)
            return
        time.sleep(LOOK_SECONDS)
        known = {active.external_jobid for active in self.active_jobs}
        comment = f"rule_{job.name}_wildcards_{get_job_wildcards(job)}"
        taken = [one.number for one in queue("--name", self.run_uuid) or () if one.comment == comment]
        if new := [number for number in taken if number not in known]:
            self._report_job_submission_threadsafe(SubmittedJobInfo(job, external_jobid=new[0]))
        else:
            self._job_submission_executor.submit(self.run_job, job)

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]):
        """Yield the jobs that go on. Upstream's waits for ever for a job that SLURM has forgotten, or that sacct calls
        `CANCELLED by 0`, and forgets all jobs when SLURM does not answer."""
        self.next_seconds_between_status_checks = LOOK_SECONDS
        if not active_jobs:
            return
        async with self.status_rate_limiter:
            found = await asyncio.to_thread(queue, "--name", self.run_uuid)
        self.silent_since = None if found is not None else self.silent_since or time.monotonic()
        by_number = {job.number: job for job in found or ()}
        for active in active_jobs:
            end = await self.end_of(active.external_jobid, by_number.get(active.external_jobid), found is not None)
            if end is None:
                yield active
            elif end == "COMPLETED":
                self.report_job_success(active)
            else:
                log = (active.aux or {}).get("slurm_logfile")
                said = f"SLURM-job '{active.external_jobid}' ended as {end}. "
                self.report_job_error(active, msg=said, aux_logs=[str(log)] if log else [])

    async def end_of(self, number: str, job: Job | None, answered: bool) -> str | None:
        """The state in which a job ended, and why if SLURM would never have started it; None while it goes on."""
        if not answered:
            silent = time.monotonic() - self.silent_since
            return None if silent <= SILENCE_SECONDS else "unknown: SLURM has not answered for a day"
        if job is None or job.state == "PREEMPTED":
            self.missed[number] += 1
            if self.missed[number] < LOOKS:
                return None
            if job:
                return job.state
            said = await asyncio.to_thread(ask, "sacct", "-Xn", "--parsable2", "--format=State", f"--jobs={number}")
            return said.split()[0] if said and said.split() else "unknown: SLURM has forgotten it"
        self.missed.pop(number, None)
        reason = job.reason.strip("()").replace(" ", "_")
        if job.state == "PENDING" and reason in NEVER:
            ask("scancel", number)
            return f"CANCELLED: SLURM would never start it ({reason}); docs/cluster.md says how to ask for less"
        return None if job.state in ALIVE else job.state
