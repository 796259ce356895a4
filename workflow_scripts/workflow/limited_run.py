"""Run what can be finished in a limited time, and export each run as soon as it is finished.

Snakemake does not know how long jobs take, so a dry run lists the open jobs, the runs that fit into
the time are chosen by their step times, and Snakemake gets these as its targets. If time is left
after them, more are chosen; if no run is left, tables, figures and claims follow. Near the end of
the time Snakemake is stopped as by Ctrl-C, by which trainings save their state.
"""

import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import RESULTS
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.workflow.dry_run import list_jobs_to_run
from workflow_scripts.workflow.gpu_sharing import (
    MissingGpuError,
    estimate_slowdown,
    find_sharing,
    list_gpus,
    print_line,
)
from workflow_scripts.workflow.run_export import OutputTimes, export_run, is_scored
from workflow_scripts.workflow.snakemake_call import (
    LOGGER,
    SnakemakeCall,
    format_own_call,
    join_targets,
)
from workflow_scripts.workflow.snakemake_job import SnakemakeJob, set_needed_jobs
from workflow_scripts.workflow.snakemake_process import run_snakemake
from workflow_scripts.workflow.step_times import read_step_times
from workflow_scripts.workflow.time_limit import (
    Machine,
    OpenRun,
    choose_runs,
    list_open_runs,
    make_estimate,
)

# For saving, exporting and ending: a share of the time limit between these seconds, and the time to
# write the states of the trainings, each of about four checkpoints.
END_SHARE = 1 / 20
MIN_END_SECONDS = 5
MAX_END_SECONDS = 30
STATE_CHECKPOINTS = 4
WRITTEN_BYTES_PER_SECOND = 100e6
# What is left of that for the last export, when Snakemake and its jobs are ended by force.
EXPORT_SECONDS = 2
# -n among short options without a value, as ./reproduce finds it.
SHORT_DRY_RUN = re.compile(r"^(-[pkFft]*)n")


@dataclass
class LimitedRun:
    """A call of Snakemake with a time limit. Times are those of time.monotonic()."""

    call: SnakemakeCall
    words: list[str]  # the user's own arguments
    deadline: float
    limit: float  # seconds from the start of the call to the deadline
    with_weights: bool
    received: list[int]  # the signals that have arrived
    catalogue: Catalogue = field(default_factory=load_catalogue)
    jobs: list[SnakemakeJob] = field(init=False)
    runs: list[OpenRun] = field(init=False)
    outputs: OutputTimes = field(init=False)
    machine: Machine = field(init=False)
    stop_time: float = field(init=False)  # when trainings are asked to save
    exported: set[Run] = field(default_factory=set)
    failed_exports: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.call.cores is None:
            limits = "jobs on a cluster have time limits of their own"
            raise UserError(
                f"--finish-within is for the machine that it runs on; {limits}: "
                "call ./reproduce without it"
            )
        if self.call.forces_jobs:
            advice = "call ./reproduce without it to force jobs"
            raise UserError(f"--finish-within runs what is not done; {advice}")
        arguments = [word for word in self.call.arguments if word != LOGGER]
        self.jobs = set_needed_jobs(list_jobs_to_run(*arguments))
        self.runs = list_open_runs(self.catalogue, self.call.config, self.jobs)
        self.outputs = OutputTimes(self.jobs)
        self.machine = self.describe_machine()
        is_done = self.outputs.is_done
        self.estimate = make_estimate(self.catalogue, self.call.config, self.machine, is_done)
        self.set_stop_time([])

    def describe_machine(self) -> Machine:
        """Find out where the jobs run, and how many of them at once."""
        config = self.call.config
        device = config.device
        if device == "auto":
            device = "cpu"
            if has_gpu():
                device = "cuda"
        trained = list(dict.fromkeys(run.run.training for run in self.runs))
        threads = 1
        for run in trained:
            spec = resolve_training(self.catalogue, run, config.scale, config.precision)
            threads = max(threads, spec.torch_threads)
        slots = max((self.call.cores or 1) // threads, 1)
        if device == "cpu":
            return Machine(device, slots, slowdown=1.0)
        slots = min(slots, self.call.gpu_jobs or slots)
        if not trained:
            return Machine(device, slots, slowdown=1.0)
        sharing = find_sharing(self.catalogue, config, trained)
        return Machine(device, slots, estimate_slowdown(sharing, min(slots, len(trained))))

    def set_stop_time(self, runs: list[OpenRun]) -> None:
        """Set the time at which trainings are asked to save, so early that these runs can."""
        times = read_step_times(self.catalogue)
        sizes = [0]
        for run in runs:
            size = times.estimate_checkpoint_bytes(run.run.training, self.call.config.scale)
            sizes.append(size or 0)
        checkpoints = STATE_CHECKPOINTS + self.with_weights
        written_bytes = self.machine.slots * checkpoints * max(sizes)
        end_seconds = min(max(END_SHARE * self.limit, MIN_END_SECONDS), MAX_END_SECONDS)
        self.stop_time = self.deadline - end_seconds - written_bytes / WRITTEN_BYTES_PER_SECOND

    @property
    def seconds_left(self) -> float:
        """Time until trainings are asked to save; 0 after a signal."""
        if self.received:
            return 0.0
        return max(self.stop_time - time.monotonic(), 0.0)

    def export_finished(self) -> None:
        """Export the runs that this call has finished."""
        for run in self.runs:
            if run.run not in self.exported and self.outputs.is_finished(run):
                self.export(run.run)

    def export(self, run: Run) -> None:
        """Export a run. Where that fails, for example on a full disk, say so, and continue."""
        self.exported.add(run)
        try:
            export_run(run, self.call.config.scale, self.with_weights)
        except OSError as error:
            self.failed_exports.append(run)
            print_line(f"error: {run} is not exported ({error.strerror or error})")

    def export_earlier(self) -> None:
        """Export the requested runs that were finished before this call."""
        is_open = {run.run for run in self.runs}
        for run in list_requested_runs(self.catalogue, self.call.config):
            if run not in is_open and is_scored(run, self.call.config.scale):
                self.export(run)

    def list_unfinished(self) -> list[OpenRun]:
        """Return the runs that are still open."""
        return [run for run in self.runs if not self.outputs.is_finished(run)]

    def choose_next(self, waiting: list[OpenRun]) -> tuple[list[OpenRun], float | None]:
        """Return the runs to start now, and their estimated time.

        Runs of unknown time are started only when none of known time is waiting: they are stopped
        at the end of the time, and continue from their saved state in a later call.
        """
        seconds_of_runs: dict[OpenRun, float] = {}
        for run in waiting:
            seconds = self.estimate_run(run)
            if seconds is not None:
                seconds_of_runs[run] = seconds
        if not seconds_of_runs:
            self.set_stop_time(waiting)
            return waiting, None
        left = self.deadline - time.monotonic()
        short = [run for run, seconds in seconds_of_runs.items() if seconds <= left]
        self.set_stop_time(short)
        return choose_runs(short, self.estimate, self.machine.slots, self.seconds_left)

    def estimate_run(self, run: OpenRun) -> float | None:
        """Estimate the time of a run with all that it needs, alone; None if it is unknown."""
        total = 0.0
        for job in run.all_jobs:
            seconds = self.estimate(job)
            if seconds is None:
                return None
            total += seconds
        return total

    def run(self, environment: dict[str, str]) -> int:
        """Run the jobs, and return the exit code: 0 if everything is finished."""
        if not self.call.targets:
            self.export_earlier()
        waiting = list(self.runs)
        while waiting and self.seconds_left:
            started, seconds = self.choose_next(waiting)
            if not started:
                break
            print_line(self.describe_choice(started, seconds))
            self.run_snakemake(self.make_arguments(started), environment)
            self.export_finished()
            # Each run is started once: what failed is for a later call.
            waiting = [run for run in waiting if run not in started]
        unfinished = self.list_unfinished()
        is_complete = False
        self.set_stop_time([])
        if not unfinished and self.seconds_left:
            is_complete = self.run_snakemake(self.call.arguments, environment) == 0
        if not is_complete:
            print_line(f"error: {self.describe_rest(unfinished)}")
        elif self.runs:
            end = f"Everything is finished ({self.describe_folder()})"
            if not self.call.config.claims:
                end += f"; the page: {RESULTS.scale(self.call.config.scale).page}"
            print_line(end)
        if is_complete and not self.failed_exports:
            return 0
        return 1

    def run_snakemake(self, arguments: list[str], environment: dict[str, str]) -> int:
        """Run Snakemake until it ends or the time does, and export what is finished meanwhile."""
        return run_snakemake(
            arguments,
            self.received,
            environment,
            stop_at=self.stop_time,
            kill_at=self.deadline - EXPORT_SECONDS,
            watch=self.export_finished,
        )

    def make_arguments(self, runs: list[OpenRun]) -> list[str]:
        """Return the arguments with the outputs of these runs as targets."""
        targets = [job.outputs[-1] for run in runs for job in run.own_jobs]
        return join_targets(self.call.options, targets)

    def describe_choice(self, runs: list[OpenRun], seconds: float | None) -> str:
        """Say which runs are started."""
        count = f"{len(runs)} of {len(self.list_unfinished())} open runs"
        primary = sum(run.is_primary for run in runs)
        if primary:
            count += f", {primary} of them for primary claims"
        left = format_minutes(self.deadline - time.monotonic())
        if seconds is None:
            return f"Starting {count}, whose time is unknown, with {left} left"
        return f"Starting {count}: about {format_minutes(seconds)}, with {left} left"

    def describe_rest(self, unfinished: list[OpenRun]) -> str:
        """Say in one line what is not finished, and how to continue."""
        command = format_own_call(drop_dry_run_words(self.words))
        if not unfinished:
            return f"tables, figures or claims are not finished; continue with: {command}"
        done = len(self.runs) - len(unfinished)
        finished = f"{done} of {len(self.runs)} open runs are finished"
        if done:
            finished += f" ({self.describe_folder()})"
        needed = self.describe_shortest(unfinished)
        left = f"left: {len(unfinished)} ({needed}; first {unfinished[0].run})"
        return f"{finished}; {left}; continue with: {command}"

    def describe_shortest(self, runs: list[OpenRun]) -> str:
        """Say how long the shortest of these runs takes, of those whose time is known."""
        estimates = [self.estimate_run(run) for run in runs]
        known_seconds = [seconds for seconds in estimates if seconds is not None]
        if not known_seconds:
            return "of unknown time"
        return f"at least {format_minutes(min(known_seconds))} more"

    def describe_folder(self) -> str:
        """Say where the exported runs are."""
        folder = RESULTS.scale(self.call.config.scale).exported
        return f"exported to {folder.path}"

    def print_plan(self) -> None:
        """Print what would be started first."""
        if not self.runs:
            print_line("No run is open")
            return
        first_runs, seconds = self.choose_next(self.runs)
        if not first_runs:
            print_line(f"Would start nothing: {self.describe_rest(self.runs)}")
            return
        for run in first_runs:
            claim = "  for a primary claim" if run.is_primary else ""
            print(f"{run.run}{claim}")
        choice = self.describe_choice(first_runs, seconds)
        print_line(choice.replace("Starting", "Would start"))


def drop_dry_run_words(words: Iterable[str]) -> list[str]:
    """Return arguments of Snakemake without those of a dry run: -n, also in -np, and --dry-run."""
    kept: list[str] = []
    for word in words:
        changed = word
        while SHORT_DRY_RUN.match(changed):
            changed = SHORT_DRY_RUN.sub(r"\1", changed)
        if changed != "-" and not changed.startswith("--dry"):
            kept.append(changed)
    return kept


def has_gpu() -> bool:
    """Whether nvidia-smi lists a GPU."""
    try:
        return bool(list_gpus()) and os.environ.get("CUDA_VISIBLE_DEVICES") != ""
    except MissingGpuError:
        return False


def format_minutes(seconds: float) -> str:
    """Format a time as `1:02:03` or `2:03`."""
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    if not hour:
        return f"{minute}:{second:02}"
    return f"{hour}:{minute:02}:{second:02}"
