"""Choose the runs that can be finished in a limited time, by catalogue/step_times.csv.

Times are seconds. All estimates are rather too long: a run that is left out can be started later,
but one that is started and not finished is not exported.
"""

import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.data.sources.declared import load_repositories, load_sources
from workflow_scripts.workflow.job_order import rank_primary_variants
from workflow_scripts.workflow.result_patterns import locate_record
from workflow_scripts.workflow.snakemake_job import RUN_RULES, SnakemakeJob
from workflow_scripts.workflow.step_times import read_step_times
from workflow_scripts.workflow.wildcards import read_variant_key

# Start of a job: Python, torch, the model and the data.
START_SECONDS = 8
# A job on no run, such as the preparation of data. That of rule `prepare_large` is unknown.
OTHER_SECONDS = 15
DOWNLOADED_BYTES_PER_SECOND = 10e6
# Training in relation to its updates alone: of 559 committed runs, 90% took less than 1.17 times.
TRAINING_SHARE = 1.2
# Scoring in relation to the updates of the training, where none was measured in this folder.
SCORING_SHARES = {"evaluate": 0.15, "intervene": 0.5}
# The same where given weights are scored, so that there is no training to compare with.
GIVEN_WEIGHTS_SECONDS = 60

SECONDS_OF_UNITS = (3600, 60, 1)  # hour, minute, second


def parse_duration(text: str) -> int:
    """Parse a time such as 90s, 25m, 2h or 1h30m into seconds. Raises UserError for others."""
    match = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text)
    if not match or not any(match.groups()):
        raise UserError(f"--finish-within {text} is no time; give one such as 90s, 25m or 1h30m")
    numbers = [int(number or 0) for number in match.groups()]
    return sum(number * unit for number, unit in zip(numbers, SECONDS_OF_UNITS, strict=True))


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A run with jobs that are not done."""

    run: Run
    own_jobs: list[SnakemakeJob]  # on the run itself
    all_jobs: list[SnakemakeJob]  # with those whose outputs they need, each after these
    is_primary: bool  # whether a primary claim of an analysis plan rests on it


def list_open_runs(catalogue: Catalogue, config: Config, jobs: list[SnakemakeJob]) -> list[OpenRun]:
    """Return the runs of the jobs: first those of primary claims, claim by claim, seed by seed."""
    own_jobs: dict[Run, list[SnakemakeJob]] = {}
    for job in jobs:
        if job.run:
            own_jobs.setdefault(job.run, []).append(job)
    claims = rank_primary_variants(catalogue, config)
    runs = []
    for run, own in own_jobs.items():
        runs.append(OpenRun(run, own, list_with_needed(own), run.variant_key in claims))

    def rank(open_run: OpenRun) -> tuple[int, int]:
        claim = claims.get(open_run.run.variant_key, len(claims))
        return claim, open_run.run.seed

    return sorted(runs, key=rank)


def list_with_needed(jobs: list[SnakemakeJob]) -> list[SnakemakeJob]:
    """Return the jobs and all that they need, directly or not, each after those that it needs."""
    ordered: dict[SnakemakeJob, None] = {}

    def add(job: SnakemakeJob) -> None:
        for needed in job.needed:
            if needed not in ordered:
                add(needed)
        ordered[job] = None

    for job in jobs:
        add(job)
    return list(ordered)


@dataclass(frozen=True)
class Machine:
    """What the jobs run on."""

    device: str
    slots: int  # jobs at once
    slowdown: float  # of an update, in relation to a training that is alone


def estimate_seconds(
    catalogue: Catalogue,
    config: Config,
    machine: Machine,
    job: SnakemakeJob,
) -> float | None:
    """Estimate the time of a job. Return None if it is unknown."""
    if job.rule == "prepare_large":
        return None
    if job.stage in ("fetch", "fetch_model"):
        return estimate_download_seconds(job)
    if job.rule not in (*RUN_RULES, "search"):
        return OTHER_SECONDS
    if job.rule in SCORING_SHARES:
        measured = measure_earlier_jobs(job, machine.device)
        if measured is not None:
            return measured

    if job.run and job.run.weights:
        return START_SECONDS + GIVEN_WEIGHTS_SECONDS
    scale = job.wildcards["scale"]
    run = job.run or read_variant_key(job.wildcards).make_run(seed=0)
    spec = resolve_training(catalogue, run, scale, config.precision)
    times = read_step_times(catalogue, config.gpu_speed)
    step_time = times.find(run, scale, machine.device, config.precision)
    steps = times.estimate_steps(spec.training, run, scale)
    if step_time is None or steps is None:
        return None
    update_seconds = step_time.seconds
    if step_time.processes == 1:  # it was measured in a training that was alone
        update_seconds *= machine.slowdown
    if job.rule == "train":
        remaining = max(steps - count_saved_steps(job), 0)
        return START_SECONDS + TRAINING_SHARE * remaining * update_seconds
    if job.rule == "search":
        trials = 0
        if spec.search:
            trials = spec.search.count_pairs()
        return START_SECONDS + TRAINING_SHARE * trials * steps * update_seconds
    return START_SECONDS + SCORING_SHARES[job.rule] * steps * update_seconds


def estimate_download_seconds(job: SnakemakeJob) -> float | None:
    """Estimate the time of a download; None if the size is unknown."""
    if job.stage == "fetch":
        size = load_sources()[job.wildcards["source"]].bytes
    else:
        size = load_repositories()[job.wildcards["model"]].bytes
    if size is None:
        return None
    return START_SECONDS + size / DOWNLOADED_BYTES_PER_SECOND


def measure_earlier_jobs(job: SnakemakeJob, device: str) -> float | None:
    """Return the median time of this job on other seeds in this folder; None if there was none.

    Those on this kind of device count.
    """
    wildcards = job.wildcards | {"seed": "seed-*"}
    files = Path().glob(str(locate_record(job.rule, wildcards)))
    records = [read_json(file) for file in files]
    seconds = [record["seconds"] for record in records if is_of_device(record, device)]
    if not seconds:
        return None
    return statistics.median(seconds)


def is_of_device(record: dict[str, Any], device: str) -> bool:
    """Whether a record is of a job on this kind of device: on CPUs, or on another."""
    recorded = record.get("device")
    return recorded is not None and (recorded == "cpu") == (device == "cpu")


def count_saved_steps(job: SnakemakeJob) -> int:
    """Return the step of the newest saved state of a training; 0 if there is none.

    Its command, which a dry run prints, has the folder of the states.
    """
    option = re.search(r" --state[ =]'?([^\s']+)", job.command)
    return find_newest_step(Path(option[1])) if option else 0


def find_newest_step(states: Path) -> int:
    """Return the step of the newest saved state in a folder of them; 0 if there is none."""
    steps = [path.name.removeprefix("step-") for path in states.glob("step-*")]
    return max((int(step) for step in steps if step.isdecimal()), default=0)


def choose_runs(
    runs: list[OpenRun], estimate: Callable[[SnakemakeJob], float | None], slots: int, limit: float
) -> tuple[list[OpenRun], float]:
    """Return the runs that end within `limit` seconds, and when the last of them ends.

    They are taken in their order. The jobs of a run start in the first free slot when what it needs
    is done. A run that would end too late, or of which a time is unknown, is left out.
    """
    selected = []
    free_from = [0.0] * slots
    ends: dict[SnakemakeJob, float] = {}
    for run in runs:
        new_free_from = list(free_from)
        new_ends = dict(ends)
        if not _place_run(run, estimate, new_free_from, new_ends):
            continue
        if max(new_ends[job] for job in run.own_jobs) <= limit:
            selected.append(run)
            free_from = new_free_from
            ends = new_ends
    return selected, max(ends.values(), default=0.0)


def _place_run(
    run: OpenRun,
    estimate: Callable[[SnakemakeJob], float | None],
    free_from: list[float],
    ends: dict[SnakemakeJob, float],
) -> bool:
    """Add the end of each job of a run to `ends`; set the slot that it takes in `free_from` to it.

    Return whether their times are known. If not, both hold only a part of the jobs, and must not be
    used.
    """
    for job in run.all_jobs:
        seconds = estimate(job)
        if seconds is None:
            return False
        if job in ends:
            continue
        slot = free_from.index(min(free_from))
        ready = max((ends[needed] for needed in job.needed), default=0.0)
        ends[job] = max(free_from[slot], ready) + seconds
        free_from[slot] = ends[job]
    return True


def make_estimate(
    catalogue: Catalogue, config: Config, machine: Machine, is_done: Callable[[SnakemakeJob], bool]
) -> Callable[[SnakemakeJob], float | None]:
    """Return a function that estimates the seconds of a job, once for each job.

    One that is done takes 0; None if the time is unknown.
    """
    estimates: dict[SnakemakeJob, float | None] = {}

    def estimate(job: SnakemakeJob) -> float | None:
        if is_done(job):
            return 0.0
        if job not in estimates:
            estimates[job] = estimate_seconds(catalogue, config, machine, job)
        return estimates[job]

    return estimate
