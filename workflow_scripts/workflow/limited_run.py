"""Run what can be finished in a limited time, and export each run as soon as it is finished.

Snakemake does not know how long jobs take, so a dry run lists the open jobs, the runs that fit into
the time are chosen by their step times, and Snakemake gets these as its targets. If time is left
after them, more are chosen; if no run is left, tables, figures and claims follow. Near the end of
the time Snakemake is stopped as by Ctrl-C, by which trainings save their state.
"""

import os
import shlex
import time
from dataclasses import dataclass, field

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_csv
from workflow_scripts.config.catalogue import Catalogue, Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.paths import RESULTS
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.workflow.dry_run import list_planned_jobs
from workflow_scripts.workflow.gpu_sharing import (
    MissingGpuError,
    estimate_slowdown,
    find_sharing,
    list_gpus,
    print_line,
)
from workflow_scripts.workflow.run_export import EXPORTED, OutputTimes, export_run, is_scored
from workflow_scripts.workflow.snakemake_call import SnakemakeCall, run_snakemake
from workflow_scripts.workflow.step_times import STEP_TIMES, estimate_checkpoint_bytes
from workflow_scripts.workflow.time_limit import (
    Job,
    Machine,
    OpenRun,
    choose_runs,
    list_open_runs,
    make_estimate,
    read_jobs,
)

# Words that ./reproduce adds to the user's.
LOGGER = "--logger=terminal"
PLACEHOLDERS = ("scale=[]", "papers=[]")
# For saving, exporting and ending: a share of the time limit between these seconds, and the time to
# write the states of the trainings, each of about four checkpoints.
END_SHARE, MIN_END_SECONDS, MAX_END_SECONDS = 1 / 20, 5, 30
STATE_CHECKPOINTS, WRITTEN_BYTES_PER_SECOND = 4, 100e6
# What is left of that for the last export, when Snakemake and its jobs are ended by force.
EXPORT_SECONDS = 2


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
    jobs: list[Job] = field(init=False)
    runs: list[OpenRun] = field(init=False)
    outputs: OutputTimes = field(init=False)
    machine: Machine = field(init=False)
    stop_time: float = field(init=False)  # when trainings are asked to save
    exported: set[Run] = field(default_factory=set)
    failed_exports: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.call.cores is None:
            where = "the machine that it runs on; jobs on a cluster have time limits of their own"
            raise UserError(f"--finish-within is for {where}: call ./reproduce without it")
        if self.call.forces_jobs:
            advice = "call ./reproduce without it to force jobs"
            raise UserError(f"--finish-within runs what is not done; {advice}")
        arguments = [word for word in self.call.arguments if word != LOGGER]
        self.jobs = read_jobs(list_planned_jobs(*arguments))
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
            device = "cuda" if has_gpu() else "cpu"
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
        times, sizes = read_csv(STEP_TIMES), [0]
        for run in runs:
            size = estimate_checkpoint_bytes(times, run.run.training, self.call.config.scale)
            sizes.append(size or 0)
        checkpoints = STATE_CHECKPOINTS + self.with_weights
        written_bytes = self.machine.slots * checkpoints * max(sizes)
        end_seconds = min(max(END_SHARE * self.limit, MIN_END_SECONDS), MAX_END_SECONDS)
        self.stop_time = self.deadline - end_seconds - written_bytes / WRITTEN_BYTES_PER_SECOND

    @property
    def seconds_left(self) -> float:
        """Time until trainings are asked to save; 0 after a signal."""
        return 0.0 if self.received else max(self.stop_time - time.monotonic(), 0.0)

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
        known = [run for run in waiting if self.estimate_run(run) is not None]
        if not known:
            self.set_stop_time(waiting)
            return waiting, None
        left = self.deadline - time.monotonic()
        short = [run for run in known if (self.estimate_run(run) or 0.0) <= left]
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
            chosen, seconds = self.choose_next(waiting)
            if not chosen:
                break
            print_line(self.describe_choice(chosen, seconds))
            self.run_snakemake(self.make_arguments(chosen), environment)
            self.export_finished()
            # Each run is started once: what failed is for a later call.
            waiting = [run for run in waiting if run not in chosen]
        unfinished = self.list_unfinished()
        is_complete = False
        self.set_stop_time([])
        if not unfinished and self.seconds_left:
            is_complete = self.run_snakemake(self.call.arguments, environment) == 0
        if not is_complete:
            print_line(self.describe_rest(unfinished))
        elif self.runs:
            report = "./reproduce makes the report"
            print_line(f"Everything is finished ({self.describe_folder()}); {report}")
        return 0 if is_complete and not self.failed_exports else 1

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

    def make_arguments(self, chosen: list[OpenRun]) -> list[str]:
        """Return the arguments with the outputs of these runs as targets, primary claims first."""
        options = [word for word in self.call.arguments if word not in ("--", *self.call.targets)]
        targets, first = [], []
        for run in chosen:
            for job in run.own_jobs:
                targets.append(job.outputs[-1])
                if run.is_primary:
                    first.append(job.outputs[-1])
        prioritized = ["--prioritize", *first] if first else []
        return [*options, *prioritized, "--", *targets]

    def describe_choice(self, chosen: list[OpenRun], seconds: float | None) -> str:
        """Say which runs are started."""
        count = f"{len(chosen)} of {len(self.list_unfinished())} open runs"
        primary = sum(run.is_primary for run in chosen)
        first = f", {primary} of them for primary claims" if primary else ""
        left = format_minutes(self.deadline - time.monotonic())
        if seconds is None:
            return f"Starting {count}{first}, whose time is unknown, with {left} left"
        return f"Starting {count}{first}: about {format_minutes(seconds)}, with {left} left"

    def describe_rest(self, unfinished: list[OpenRun]) -> str:
        """Say in one line what is not finished, and how to continue."""
        arguments = [word for word in self.words if word not in (LOGGER, *PLACEHOLDERS, "-n")]
        command = shlex.join(["./reproduce", *arguments])
        if not unfinished:
            return f"error: tables, figures or claims are not finished; continue with: {command}"
        done = len(self.runs) - len(unfinished)
        exported = f" ({self.describe_folder()})" if done else ""
        known = [seconds for run in unfinished if (seconds := self.estimate_run(run)) is not None]
        shortest = min(known, default=None)
        needed = "of unknown time"
        if shortest is not None:
            needed = f"at least {format_minutes(shortest)} more"
        left = f"left: {len(unfinished)} ({needed}; first {unfinished[0].run})"
        finished = f"{done} of {len(self.runs)} open runs are finished{exported}"
        return f"error: {finished}; {left}; continue with: {command}"

    def describe_folder(self) -> str:
        """Say where the exported runs are."""
        return f"exported to {RESULTS / self.call.config.scale / EXPORTED}"

    def print_plan(self) -> None:
        """Print what would be started first."""
        chosen, seconds = self.choose_next(self.runs) if self.runs else ([], None)
        for run in chosen:
            print(f"{run.run}{'  for a primary claim' if run.is_primary else ''}")
        if chosen:
            print_line(self.describe_choice(chosen, seconds).replace("Starting", "Would start"))
        elif self.runs:
            print_line(self.describe_rest(self.runs))
        else:
            print_line("No run is open")


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
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"
