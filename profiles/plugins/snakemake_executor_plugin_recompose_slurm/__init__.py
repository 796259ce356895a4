"""Snakemake's SLURM executor, without its defects.

It waits for no lost job, forgets no job, and runs none twice.
Each method says what version 2.8.0 of the upstream executor does instead.
"""

import asyncio
import os
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path

from snakemake_executor_plugin_slurm import Executor as SlurmExecutor

# Snakemake reads these two from a plugin.
from snakemake_executor_plugin_slurm import ExecutorSettings, common_settings  # noqa: F401
from snakemake_executor_plugin_slurm.utils import get_job_wildcards
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface

from snakemake_executor_plugin_recompose_slurm.leftovers import (
    ENDED,
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
NEVER_STARTS = "CANCELLED: SLURM would never start it"
# The same: more than an account or a QOS allows one job, such as QOSMaxMemoryPerJob.
LIMIT_OF_A_JOB = re.compile(r"(Assoc|QOS)(Max\w+PerJob(Limit)?|Min(Cpu|GRES|Memory)\w*)")
# The time that an account or a QOS may use is used up. The job starts when there is more of it.
BUDGET_IS_USED = re.compile(r"(Assoc|QOS)Grp(?!\w*Run)\w*Minutes(Limit)?")
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
# Polls. A slurmctld that has just started may not know all jobs; a pre-empted job may be queued
# again.
MAX_MISSES = 5
# Polls in which sacct, asked for a job that squeue does not know, names no end. Where there is no
# accounting it never does.
MAX_QUESTIONS = 12
# Without an answer of SLURM.
MAX_SILENCE_SECONDS = 24 * 3600
MAX_SUBMIT_SECONDS = 3600
# Before a job is submitted again that found the queue full.
FULL_QUEUE_SECONDS = 60
# States of a job that waits until somebody releases it.
HELD = ("REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT", "STOPPED")

# What SLURM or a command says of a job without enough memory.
NO_MEMORY = re.compile(r"oom.?kill|out of memory|exceeded (job |step )?memory limit", re.IGNORECASE)
# What a shell and Snakemake say of a command that got SIGKILL: from the kernel when memory is full,
# or from SLURM when it ends a job.
KILLED = re.compile(r"\bKilled\b|SIGKILL|exit status 137\b")
ENDED_BY_SLURM = ("CANCELLED", "PREEMPTED", "TIMEOUT")
# Refusals of sbatch that pass: more jobs are queued than allowed.
QUEUE_IS_FULL = ("submit limit", "MaxSubmit")
# How the last line of a traceback begins after a mistake in the code, which would fail again.
MISTAKE = re.compile(
    r"(AssertionError|AttributeError|ImportError|IndexError|KeyError|ModuleNotFoundError|NameError"
    r"|NotImplementedError|SyntaxError|TypeError|ValueError|ZeroDivisionError)\b"
)
# Below what a command says, Snakemake adds to SLURM's log the command and its own message.
READ_BYTES = 16_384
STOPPED = "stopped at step"  # what a training says that has saved its state after a signal


def never_starts(reason: str) -> bool:
    """Return whether SLURM never starts a job that waits for this reason."""
    return reason in BLOCKING_REASONS or LIMIT_OF_A_JOB.fullmatch(reason) is not None


def read_end(logs: Iterable[str]) -> str:
    """Return the last line of the first log file that has one, without the name of the job."""
    for log in logs:
        lines = read_tail(log).splitlines()
        if lines:
            return lines[-1].rpartition(": ")[2]
    return ""


def read_tail(log: str) -> str:
    """Return the end of a log file; empty if there is no such file."""
    try:
        with open(log, "rb") as stream:
            stream.seek(max(0, Path(log).stat().st_size - READ_BYTES))
            return stream.read().decode(errors="replace").strip()
    except OSError:
        return ""


def ran_out_of_memory(end: str, logs: Iterable[str]) -> bool:
    """Return whether a job was ended because it needed more memory of its host.

    SLURM often calls such a job FAILED, because only a step of it was killed.
    """
    if end.startswith("OUT_OF_ME"):
        return True
    tails = [read_tail(log) for log in logs]
    if any(NO_MEMORY.search(tail) for tail in tails):
        return True
    if end.startswith(ENDED_BY_SLURM):
        return False
    return any(KILLED.search(tail) for tail in tails)


def is_mistake(logs: Iterable[str]) -> bool:
    """Return whether the last line of a job's own log is an error that would come again."""
    for log in logs:
        lines = read_tail(log).splitlines()
        if lines and MISTAKE.match(lines[-1]):
            return True
    return False


def end_attempts(job: JobExecutorInterface) -> None:
    """Let Snakemake count this attempt of a job as the last one."""
    job.attempt = job.restart_times + 1


class Executor(SlurmExecutor):
    """Submits jobs to SLURM and watches them."""

    def __init__(self, workflow, logger):
        """Delete the variables of the SLURM job in which Snakemake itself may run.

        SLURM_CONF stays, because commands find the cluster by it. The upstream executor deletes it,
        too.
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
        # polls in a row without the job, by its number
        self.missed: Counter[str] = Counter()
        self.silent_since: float | None = None
        # jobs that SLURM did not answer for
        self.tried_since: dict[int, float] = {}
        # what each job had saved when it reached its time limit
        self.saved_states: dict[int, set[Path]] = {}
        self.warned_reasons: set[str] = set()
        # the numbers of all jobs of this call, ended ones too
        self.known_numbers: set[str] = set()
        self.cancelled = threading.Event()
        if shutil.which("squeue") is None:
            raise WorkflowError(
                "squeue is not found: this machine has no SLURM; submit from a login node of the "
                "cluster, or leave out --workflow-profile"
            )
        leftovers = find_leftovers()
        if leftovers is None:
            raise WorkflowError(
                "SLURM does not answer; run the same command again when `squeue --me` works"
            )
        if leftovers:  # started without ./reproduce, which waits for them
            numbers = " ".join(job.number for job in leftovers)
            raise WorkflowError(
                f"an earlier Snakemake left jobs {numbers}; run ./reproduce, which waits for them"
            )
        super().__post_init__(test_mode)

    def run_jobs(self, jobs: Iterable[JobExecutorInterface]) -> None:
        """Submit jobs in the order of their priority: of equal jobs SLURM starts the older first.

        The upstream executor takes them as they come out of a set, rule by rule.
        """
        for job in sorted(jobs, key=attrgetter("priority"), reverse=True):
            super().run_jobs([job])

    def run_job(self, job: JobExecutorInterface) -> None:
        """Submit a job, without the log of its last attempt.

        The upstream executor leaves the log until the job begins. One that ends before that would
        be judged by it.
        """
        for log in job.log:
            Path(log).unlink(missing_ok=True)
        super().run_job(job)

    def _report_job_submission_threadsafe(self, job_info: SubmittedJobInfo) -> None:
        """Remember the job's number. Its next submission may wait for SLURM as long as this one."""
        self.known_numbers.add(job_info.external_jobid)
        self.tried_since.pop(job_info.job.jobid, None)
        super()._report_job_submission_threadsafe(job_info)

    def _report_job_error_threadsafe(self, job_info: SubmittedJobInfo, msg: str) -> None:
        """Repeat a submission that SLURM did not answer, or for which the queue was full.

        What SLURM refuses, such as an unknown partition, it would refuse again. The upstream
        executor counts each of these as a failed job. Then every job that is ready meanwhile loses
        all its attempts.
        """
        job = job_info.job
        is_full = any(text in msg for text in QUEUE_IS_FULL)
        is_unanswered = any(text in msg for text in NO_ANSWER)
        if is_full:
            text = "SLURM takes no more jobs of yours now; others are submitted when some end"
            self.warn_once("full queue", text)
        since = self.tried_since.setdefault(job.jobid, time.monotonic())
        while (is_full or is_unanswered) and time.monotonic() - since <= MAX_SUBMIT_SECONDS:
            if self.cancelled.wait(FULL_QUEUE_SECONDS if is_full else POLL_SECONDS):
                return
            queue = list_queue("--name", self.run_uuid)
            if queue is None:  # SLURM may have the job: it must not be submitted twice
                continue
            submitted = self.find_submitted(job, queue)
            if submitted is not None:
                self._report_job_submission_threadsafe(submitted)
            else:
                if is_full and any(queued.state not in ENDED for queued in queue):
                    self.tried_since.pop(job.jobid, None)  # there is room when these end
                self._job_submission_executor.submit(self.run_job, job)
            return
        self.tried_since.pop(job.jobid, None)
        if not is_full and not is_unanswered:
            end_attempts(job)
        super()._report_job_error_threadsafe(job_info, msg)

    def find_submitted(
        self, job: JobExecutorInterface, queue: Iterable[Job]
    ) -> SubmittedJobInfo | None:
        """Find a job in the queue that this call has submitted without an answer."""
        wildcards = get_job_wildcards(job)
        comment = f"rule_{job.name}"
        if wildcards:
            comment += f"_wildcards_{wildcards}"
        for queued in queue:
            if queued.comment == comment and queued.number not in self.known_numbers:
                log = self.slurm_logdir / f"rule_{job.name}" / wildcards / f"{queued.number}.log"
                return SubmittedJobInfo(job, queued.number, aux={"slurm_logfile": log})
        return None

    def cancel(self) -> None:
        """Cancel the jobs of this call, also those that are being submitted or asked for.

        The upstream executor cancels those that it lists, which are none while it asks SLURM for
        them, and then submits what waits to be submitted.
        """
        self.cancelled.set()
        self._job_submission_executor.shutdown(wait=True, cancel_futures=True)
        run_slurm_command("scancel", "--name", self.run_uuid)
        super().cancel()
        # What SLURM took without an answer.
        run_slurm_command("scancel", "--name", self.run_uuid)

    def format_job_exec(self, job) -> str:
        """Escape what a shell reads between double quotes.

        The upstream executor puts the command there and escapes `"` alone, so that the shell that
        submits a job expands a `$` in the path of the checkout.
        """
        return re.sub(r"[\\$`]", r"\\\g<0>", super().format_job_exec(job))

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]):
        """Yield the jobs that have not ended.

        The upstream executor waits for ever for a job that SLURM has forgotten, or that sacct calls
        `CANCELLED by 0`, and forgets all jobs when SLURM does not answer.
        """
        self.next_seconds_between_status_checks = POLL_SECONDS
        if not active_jobs:
            return
        async with self.status_rate_limiter:
            queue = await asyncio.to_thread(list_queue, "--name", self.run_uuid)
        if queue is not None:
            self.silent_since = None
        elif self.silent_since is None:
            self.silent_since = time.monotonic()
        jobs_by_number = {job.number: job for job in queue or ()}
        for active in active_jobs:
            number = active.external_jobid
            end = await self.find_end(number, jobs_by_number.get(number), queue is not None)
            if end is None:
                yield active
            elif end == "COMPLETED":
                self.report_job_success(active)
            elif self.can_continue(active, end):
                self.continue_job(active.job)
            else:
                self.report_failure(active, end)

    def report_failure(self, active: SubmittedJobInfo, end: str) -> None:
        """Report a job that has failed.

        If it ran out of memory or of time, its next attempt gets twice as much of it. A job
        that can never start has no other attempt, nor has one whose code has a mistake.
        """
        log = (active.aux or {}).get("slurm_logfile")
        logs = [str(log)] if log else []
        jobs = self.workflow.globals["JOBS"]
        if ran_out_of_memory(end, [*active.job.log, *logs]):
            jobs.record_out_of_memory(active.job.rule.name, active.job.wildcards)
            if not end.startswith("OUT_OF_ME"):
                end += ", out of memory"
        elif end.startswith("TIMEOUT"):
            jobs.record_time_limit(active.job.rule.name, active.job.wildcards)
        elif end.startswith(NEVER_STARTS) or is_mistake(active.job.log):
            end_attempts(active.job)
        message = f"SLURM-job '{active.external_jobid}' ended as {end}. "
        self.report_job_error(active, msg=message, aux_logs=logs)

    def can_continue(self, active: SubmittedJobInfo, end: str) -> bool:
        """Return whether a job reached its time limit after it had saved something new.

        Trainings save their states, interventions their answers.

        SLURM's signal may come before the limit: then the training itself has ended.
        """
        job = active.job
        state = job.params.get("state")
        if state is None:
            return False
        if not end.startswith("TIMEOUT") and not read_end(job.log).startswith(STOPPED):
            return False
        if end.startswith("CANCELLED"):
            return False
        states = {*Path(state).rglob("step-*"), *Path(state).rglob("answers-*")}
        earlier = self.saved_states.get(job.jobid, set())
        self.saved_states[job.jobid] = earlier | states
        return not states <= earlier

    def continue_job(self, job) -> None:
        """Submit a job again that continues from what it has saved: this is no failed attempt.

        The upstream executor counts a time limit as a failure.
        """
        if self.cancelled.is_set():
            return
        about = "/".join(value for name, value in job.wildcards.items() if name != "scale")
        self.logger.info(f"{job.rule.name} {about} continues in another job after its time limit")
        self._job_submission_executor.submit(self.run_job, job)

    def warn_once(self, reason: str, text: str) -> None:
        """Say something about why jobs wait, once for each reason."""
        if reason not in self.warned_reasons:
            self.warned_reasons.add(reason)
            self.logger.warning(text)

    def warn_of_budget(self, reason: str) -> None:
        """Say that jobs wait because a budget is used up: they may wait for months."""
        owner = "account" if reason.startswith("Assoc") else "QOS"
        self.warn_once(
            reason,
            f"SLURM holds jobs back: the budget of your {owner} is used up ({reason}). They wait "
            "until there is more of it; Ctrl-C cancels them, docs/cluster.md names another account",
        )

    async def find_end(self, number: str, job: Job | None, answered: bool) -> str | None:
        """Return the state in which a job ended, or why SLURM would never start it.

        None if it has not ended. job: its line of the queue. answered: whether SLURM did.
        """
        if not answered:
            if time.monotonic() - self.silent_since <= MAX_SILENCE_SECONDS:
                return None
            return "unknown: SLURM has not answered for a day"
        if job is None or job.state == "PREEMPTED":
            self.missed[number] += 1
            if self.missed[number] < MAX_MISSES:
                return None
            if job:
                return job.state
            command = ("sacct", "-Xn", "--parsable2", "--format=State", f"--jobs={number}")
            end = parse_end(await asyncio.to_thread(run_slurm_command, *command) or "")
            if end in ENDED:
                return end
            if self.missed[number] < MAX_MISSES + MAX_QUESTIONS:
                return None
            return "unknown: SLURM has forgotten it"
        self.missed.pop(number, None)
        reason = job.reason.strip("()").replace(" ", "_")
        if job.state == "PENDING" and BUDGET_IS_USED.fullmatch(reason):
            self.warn_of_budget(reason)
        if job.state == "PENDING" and never_starts(reason):
            run_slurm_command("scancel", number)
            return f"{NEVER_STARTS} ({reason}); docs/cluster.md says how to request less"
        if job.state in ENDED:
            return job.state
        if job.state in HELD:
            self.warn_once(
                number,
                f"SLURM holds job {number} ({job.state}): `scontrol release {number}` lets it "
                f"start, `scancel {number}` ends it",
            )
        return None
