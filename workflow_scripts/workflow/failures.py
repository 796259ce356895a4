"""After jobs have failed: what is not finished, and which failure each result waits for."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.files import read_json, write_json
from workflow_scripts.common.validation import StrictModel, parse_as
from workflow_scripts.provenance.unfinished import Cause
from workflow_scripts.workflow.result_patterns import get_stage
from workflow_scripts.workflow.snakemake_job import SnakemakeJob

# Written by the logger `terminal` when Snakemake ends.
FAILED_JOBS = Path(".snakemake/failed_jobs.json")
# How jobs end, in a word or two for a cell of a table, and as the end of a sentence.
ENDS = {
    "gated": "is gated",
    "download failed": "could not be downloaded",
    "out of memory": "ran out of memory",
    "killed": "was killed, probably because memory was full",
    "time limit": "reached its time limit",
    "failed": "failed",
}
ENDS_OF_SEVERAL = ENDS | {
    "gated": "are gated",
    "killed": "were killed, probably because memory was full",
    "time limit": "reached their time limit",
}
NOT_STARTED = Cause(word="not started", sentence="not started yet")

JobKey = tuple[str, tuple[tuple[str, str], ...]]  # stage, (wildcard, value) pairs


def make_job_key(rule: str, wildcards: dict[str, str]) -> JobKey:
    """Return what tells jobs apart."""
    return get_stage(rule), tuple(sorted(wildcards.items()))


class FailedJob(StrictModel):
    """A job that has failed.

    message: the last line of its log. slurm_state: how its job on a cluster ended, if it had one.
    was_killed: by SIGKILL, on the machine of the call.
    """

    rule: str
    wildcards: dict[str, str]
    message: str
    log: list[str]
    slurm_state: str
    was_killed: bool

    @property
    def key(self) -> JobKey:
        """What tells jobs apart."""
        return make_job_key(self.rule, self.wildcards)

    @property
    def stage(self) -> str:
        """The stage of its rule."""
        return get_stage(self.rule)

    @property
    def about(self) -> str:
        """What the job is about: the downloaded file or model, or the run."""
        return "/".join(value for name, value in self.wildcards.items() if name != "scale")

    @property
    def name(self) -> str:
        """The downloaded file or model, or the rule with the wildcards."""
        if self.stage in ("fetch", "fetch_model"):
            return self.about
        return f"{self.rule} {self.about}".strip()

    @property
    def reason(self) -> str:
        """The message without the name of what the job is about."""
        return self.message.replace(self.about, "") if self.about else self.message

    @property
    def dataset(self) -> str | None:
        """The data set of a download, a folder of results/downloads; None for other jobs."""
        if self.stage != "fetch":
            return None
        return self.wildcards["source"].partition("/")[0]

    @property
    def cause(self) -> Cause:
        """What has happened, such as `gated`: `google/gemma-2b is gated`."""
        word = self._name_end()
        return Cause(word=word, sentence=f"{self.name} {ENDS[word]}")

    def _name_end(self) -> str:
        """Return the key of ENDS."""
        message = self.message.lower()
        if self.slurm_state.startswith("OUT_OF_ME") or "memory is full" in message:
            return "out of memory"
        if "out of memory" in message or "out of memory" in self.slurm_state:
            return "out of memory"
        if self.was_killed:
            return "killed"
        if self.slurm_state.startswith("TIMEOUT"):
            return "time limit"
        if self.rule == "fetch_model" and "is gated" in message:
            return "gated"
        if self.stage in ("fetch", "fetch_model"):
            return "download failed"
        return "failed"


@dataclass(frozen=True)
class Waiting:
    """A job that is not done, and the failure that it waits for; None if it was not started."""

    job: SnakemakeJob
    failure: FailedJob | None

    @property
    def has_failed(self) -> bool:
        """Whether the failure is the job's own."""
        if self.failure is None:
            return False
        return self.failure.key == make_job_key(self.job.rule, self.job.wildcards)

    @property
    def cause(self) -> Cause:
        """Why the job is not done."""
        if self.failure is None:
            return NOT_STARTED
        return self.failure.cause


def read_failed_jobs(file: Path = FAILED_JOBS) -> list[FailedJob]:
    """Read the jobs that have failed in the last call of Snakemake; none if there is no file."""
    if not file.exists():
        return []
    return [parse_as(FailedJob, content, file) for content in read_json(file)]


def write_failed_jobs(failures: Iterable[FailedJob], file: Path = FAILED_JOBS) -> None:
    """Write the jobs that have failed, as `read_failed_jobs` reads them."""
    write_json(file, [failure.model_dump() for failure in failures])


def find_failures(jobs: Iterable[SnakemakeJob], failures: Iterable[FailedJob]) -> list[Waiting]:
    """Return the jobs, each with the failure that it waits for: its own, or the nearest before it.

    `jobs`: all that a dry run lists.
    """
    failure_of: dict[SnakemakeJob, FailedJob | None] = {}
    failed = {failure.key: failure for failure in failures}

    def find_failure(job: SnakemakeJob) -> FailedJob | None:
        if job in failure_of:
            return failure_of[job]
        failure = failed.get(make_job_key(job.rule, job.wildcards))
        for needed_job in job.needed:
            if failure is None:
                failure = find_failure(needed_job)
        failure_of[job] = failure
        return failure

    return [Waiting(job, find_failure(job)) for job in jobs]
