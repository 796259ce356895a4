"""Show a Snakemake run: a line per finished job and, below, the last log lines of the running jobs.

Snakemake finds a logger by the name of its package on PYTHONPATH. ./reproduce puts profiles/plugins
there and passes `--logger terminal`. The jobs write to their log files only, so that nothing else
writes to the terminal.

Why not snakemake-logger-plugin-rich (0.5.1): it shows no line of a running job, so that a training
of hours looks as if it had stopped; it prints a failed job's whole log; an error in a user's file
comes with a traceback; and a dry run lists no jobs without --verbose.
"""

import json
import logging
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

# The failed jobs of the last call, for `python -m workflow_scripts show-finished`.
FAILED_JOBS = Path(".snakemake/failed_jobs.json")
# Time between two lists of the running jobs, if the output is not a terminal.
HEARTBEAT_SECONDS = 60
# Of more jobs of a dry run, those that differ in the seed alone share a line.
MOST_JOBS_LISTED = 30
# Columns that a name may be longer than nine of ten others, and still be in line with them.
LONGER = 20
# Lines of the view that no job has: how many more jobs there are, that of all jobs, the cursor's.
OTHER_LINES = 3
# Columns of a bar, and of a training's line, such as
# `1,200/4,000 steps  6.2/s  7:31 left  loss 0.1234 exact_match 12.34%`.
BAR_WIDTH = 20
TEXT_WIDTH = 66
# `step 1,200/4,000` in the last line of a log becomes a bar.
STEPS = re.compile(r"([\d,]+)/([\d,]+)")
# Text and the number after it, in the name of what a job is about.
TEXT_AND_NUMBER = re.compile(r"(\D*)(\d*)")
# Error of Snakemake for a --config that is not KEY=VALUE.
CONFIG_ERROR = re.compile(r"^ValueError: (Invalid config definition: .+)", re.MULTILINE)
# Error of our own code, of one line or several; of an input function, Snakemake adds the wildcards.
USER_ERROR = re.compile(
    r"^(?:UserError in file .*\n| *UserError: )(.+(?:\n(?!Wildcards:)\S.*)*)", re.MULTILINE
)
# Messages of the SLURM executor about a job that failed or was refused.
SLURM_END = re.compile(r"SLURM-job '(\d+)' ended as (.+?)\.(?:\s|$)")
SLURM_ERROR = re.compile(r"^WorkflowError:\n(.+?)\n +File .*recompose_slurm", re.DOTALL)
SLURM_REFUSAL = re.compile(r"SLURM sbatch failed\. The error message was '(.+?)'\.\n", re.DOTALL)
SLURM_ACCOUNT = re.compile(
    r"given account (\S+) appears to be invalid\. Available accounts:\s*(.+)"
)
SLURM_SUBMITTED = re.compile(r"^Job \d+ has been submitted with SLURM jobid")
# What a shell says of a command that got SIGKILL, in Snakemake's message about it.
KILLED = re.compile(r"exit status 137\b|SIGKILL")
# A line of a traceback, and how much of the end of a log is searched for one.
TRACEBACK = "Traceback (most recent call last):"
TRACEBACK_LINE = re.compile(r'^ *File "(.+)", line (\d+)', re.MULTILINE)
TRACEBACK_BYTES = 65_536
CODE = "workflow_scripts"  # folder of the project's own code
# Beginnings of Snakemake's reasons for a job, and what a dry run says instead.
REASONS = {
    "Missing output files": "no result yet",
    "Incomplete output files": "was interrupted",
    "Input files updated by another job": "reads a result that is rerun",
    "Forced execution": "forced, or not recorded when a call was stopped",
}
# The same of jobs that have a result, of which `why` says more.
CHANGES = {
    "Updated input files": "an input file changed",
    "Set of input files has changed": "reads other files than before",
    "Code has changed": "its command changed",
    "Params have changed": "its settings or code changed",
    "Software environment definition has changed": "its environment changed",
}
WHY = ".venv/bin/python -m workflow_scripts why"
NOTHING = "it logged nothing"
# What a training logs that has saved its state after a signal.
STOPPED = "stopped at step"
# Messages without an event that do not help the user. Snakemake's own log file has all of them.
NOISE = (
    "--keep-incomplete mode is set",
    "Adding ",
    "Assuming unrestricted shared filesystem",
    "Building DAG of jobs",
    "Cannot restore ",
    "Cleaning up SLURM log files",
    "Complete log(s):",
    "Conda environments: ignored",
    "Config file ",
    "Creating report",
    "Elapsed time:",
    "Error: Directory cannot be locked.",
    "Exiting because a job execution failed",
    "Falling back to 'sacct'",
    "Loading trusted IOCache",
    "MinJobAge ",
    "No SLURM account given",
    "No account was given",
    "Reasons:",
    "Removing output files of failed job",
    "Removing temporary output",
    "Report created",
    "Rules with provenance triggered jobs",
    "SLURM run ID:",
    "Select jobs to execute",
    "Shutting down, this might take some time",
    "Singularity containers: ignored",
    "Some jobs were triggered by provenance information",
    "This was a dry-run",
    "Unable to guess SLURM account",
    "Using shell:",
)


@dataclass
class Job:
    """A job that Snakemake has announced."""

    rule: str
    about: str
    wildcards: dict[str, str]
    log: list[str]
    command: str
    message: str = ""  # why it failed
    slurm_state: str = ""  # how its job on a cluster ended
    was_killed: bool = False  # by SIGKILL, on this machine
    started: float = field(default_factory=time.monotonic)
    announced: float = field(default_factory=time.time)

    @property
    def reason(self) -> tuple[str, ...]:
        """Why it failed, without the name of what it is about."""
        message = self.message.replace(self.about, "") if self.about else self.message
        return self.rule, message, self.slurm_state

    @property
    def group(self) -> str:
        """What it is about without the seed: the variant; else the data set, or the paper."""
        if "seed" in self.wildcards:
            return self.about.rpartition("/")[0]
        return self.about if self.rule == "claim" else self.about.partition("/")[0]

    @property
    def label(self) -> str:
        """The rule and what it is about, as the view names it."""
        return f"  {self.rule:10} {self.about}"

    def format_duration(self) -> str:
        """Format the time since the job was announced."""
        return format_duration(time.monotonic() - self.started)

    def read_end(self, size: int) -> str:
        """Read the last `size` bytes that the job logged; empty if it has logged nothing yet."""
        for file in self.log:
            try:
                # Skip the log of an earlier attempt. The clocks of a cluster may differ by some
                # seconds.
                if Path(file).stat().st_mtime < self.announced - 5:
                    continue
                with open(file, "rb") as stream:
                    stream.seek(max(0, Path(file).stat().st_size - size))
                    text = stream.read().decode(errors="replace").strip()
            except OSError:
                continue
            if text:
                return text
        return ""

    def read_last_line(self) -> str:
        """Read the last line that the job logged; empty if it has logged nothing yet."""
        lines = self.read_end(4096).splitlines()
        return lines[-1].removeprefix(f"{self.about}: ") if lines else ""

    def read_failure(self) -> str:
        """Read the last line that the job logged, after a traceback with the place in our code.

        Empty if it has logged nothing.
        """
        message = self.read_last_line()
        place = find_place(self.read_end(TRACEBACK_BYTES))
        return f"{place}: {message}" if place else message

    def describe_failure(self) -> str:
        """Return the message; of a job that was ended from outside first by what."""
        state = self.slurm_state.lower()
        if self.message.startswith("error:"):
            return self.message  # it has said so itself
        if "out of memory" in state or state.startswith("out_of_me"):
            end = "it ran out of memory"
        elif state.startswith("timeout"):
            end = "it reached its time limit"
        elif self.was_killed:
            end = "it was killed, as the system does when memory is full (--cores 1 needs less)"
        else:
            return self.message
        return end if self.message == NOTHING else f"{end}; its last line: {self.message}"

    def read_progress(self) -> str:
        """Read the last line that the job logged, or that it waits.

        A training that was stopped and yet counts as running has a next job in SLURM's queue.
        """
        line = self.read_last_line()
        if line.startswith(STOPPED):
            return f"{line.partition(';')[0]}; its next job waits in SLURM's queue"
        return line


@dataclass(frozen=True)
class JobLine:
    """A line of a dry run. count: the number of jobs if it is about several."""

    rule: str
    about: str
    count: str
    reason: str


def find_place(log: str) -> str:
    """Return `file:line` of the innermost line of the project's own code in the last traceback.

    Empty without a traceback at the end of the log. An error that the user can fix has none.
    """
    _, found, traceback = log.rpartition(TRACEBACK)
    if not found or "\nerror: " in traceback:
        return ""
    places = []
    for file, line in TRACEBACK_LINE.findall(traceback):
        path = Path(file)
        folder = Path.cwd()
        if path.is_relative_to(folder):
            path = path.relative_to(folder)
        if path.parts[0] == CODE:
            places.append(f"{path}:{line}")
    return places[-1] if places else ""


def describe_reason(text: str) -> str:
    """Describe Snakemake's reason for a job in a few words: the first of several."""
    for beginning, words in (REASONS | CHANGES).items():
        if text.startswith(beginning):
            return words
    return text.split(":")[0].strip()


def format_duration(seconds: float) -> str:
    """Format a time as `m:ss`, or as `h:mm:ss` from an hour on."""
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


def count_jobs(count: int) -> str:
    """Format a number of jobs."""
    return f"{count} job" if count == 1 else f"{count} jobs"


def parse_steps(line: str) -> tuple[int, int]:
    """Parse the steps that are done, and all steps, of a training's line; 0 and 0 of another."""
    steps = STEPS.search(line)
    if not steps:
        return 0, 0
    return int(steps[1].replace(",", "")), int(steps[2].replace(",", ""))


def format_error(text: str) -> str:
    """Format an error: without the traceback if it is one that the user can fix."""
    error = USER_ERROR.search(text) or CONFIG_ERROR.search(text) or SLURM_ERROR.search(text)
    if error:
        return "\n".join(f"error: {line}" for line in error[1].splitlines())
    from workflow_scripts.workflow.missing_targets import (
        describe_missing_target,
        find_missing_target,
    )

    missing = find_missing_target(text)
    if missing is not None:
        return f"error: {describe_missing_target(missing)}"
    return text


def split_numbers(name: str) -> list[tuple[str, int]]:
    """Split a name into pairs of text and number, so that seed-9 sorts before seed-10."""
    return [(text, int(number or 0)) for text, number in TEXT_AND_NUMBER.findall(name)]


def group_jobs(jobs: list[tuple[Job, str]]) -> list[JobLine]:
    """Return a line for the jobs of a rule on all seeds of a variant that have the same reason.

    So it is with files of a data set, and with tables, figures and analyses of a paper.
    """
    groups: dict[tuple[str, str, str], list[str]] = {}
    for job, reason in jobs:
        groups.setdefault((job.rule, job.group, reason), []).append(job.about)
    lines = []
    for (rule, group, reason), names in groups.items():
        if len(names) == 1:
            lines.append(JobLine(rule, names[0], "", reason))
        else:
            lines.append(JobLine(rule, group, f"{len(names)} jobs", reason))
    return lines


def align_jobs_to_run(jobs: list[tuple[Job, str]], *, is_grouped: bool) -> Iterator[str]:
    """Yield the lines of a dry run, in columns: rule, what its jobs are about, number, reason.

    The jobs of a rule follow each other by what they are about, those of the rule that runs first
    at the top. A few long names do not move the column of all reasons.
    """
    lines = [JobLine(job.rule, job.about, "", reason) for job, reason in jobs]
    if is_grouped:
        lines = group_jobs(jobs)
    rule_width = max(len(line.rule) for line in lines)
    widths = sorted(len(line.about) for line in lines)
    usual_width = widths[int(0.9 * (len(widths) - 1))]
    about_width = max(width for width in widths if width <= usual_width + LONGER)
    count_width = max(len(line.count) for line in lines)
    gap = "  " if count_width else ""
    rules = list(dict.fromkeys(line.rule for line in lines))
    for line in sorted(lines, key=lambda line: (rules.index(line.rule), split_numbers(line.about))):
        about = escape(f"{line.about:{about_width}}")
        count = f"{gap}{line.count:>{count_width}}"
        yield f"{line.rule:{rule_width}}  {about}{count}  [dim]{escape(line.reason)}[/]"


def make_progress_line(name: Text, width: int, done: int, total: int, message: str) -> Table:
    """Return a line with `name` in `width` columns, a bar if there is a total, and the message."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, width=width)
    table.add_column(width=BAR_WIDTH)
    table.add_column(no_wrap=True, overflow="ellipsis")
    bar = ProgressBar(total=total, completed=done, width=BAR_WIDTH) if total else ""
    table.add_row(name, bar, Text(message, "dim"))
    return table


class LogHandler(LogHandlerBase):
    """Receives every record of Snakemake's logger, in a thread of its own."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        settings = self.common_settings
        self.setLevel(logging.DEBUG if settings.verbose else logging.INFO)
        options = {"highlight": False, "no_color": settings.nocolor, "soft_wrap": True}
        self.console = Console(stderr=not settings.stdout, **options)
        self.errors = self.console
        if settings.stdout:
            self.errors = Console(stderr=True, **options)
        self.running: dict[int, Job] = {}
        self.failed: dict[int, Job] = {}
        self.shown_reasons: set[tuple[str, ...]] = set()  # of failed jobs
        self.kills: list[str] = []  # what Snakemake said of commands that were killed
        # of a dry run, each with the reason
        self.jobs_to_run: list[tuple[Job, str]] = []
        self.has_changes = False  # whether one of them has a result, of which something changed
        self.is_touching = not {"--touch", "-t"}.isdisjoint(sys.argv)  # no job is run
        self.counts: Counter[str] = Counter()
        self.done = 0
        self.cancelled = False
        self.started = time.monotonic()
        self.closed = threading.Event()
        self.live = Live(
            get_renderable=self.make_view,
            console=self.console,
            refresh_per_second=4,
            transient=True,
        )

    def emit(self, record: logging.LogRecord) -> None:
        """Show one record."""
        views = {
            LogEvent.RUN_INFO: self.show_start,
            LogEvent.JOB_INFO: self.add_job,
            LogEvent.JOB_FINISHED: self.show_finished_job,
            LogEvent.JOB_ERROR: self.show_failed_job,
            LogEvent.ERROR: self.show_error,
            LogEvent.SHELLCMD: self.show_command,
            None: self.show_message,
        }
        view = views.get(getattr(record, "event", None))
        try:
            if view:
                view(record)
        except Exception:
            # As in every logging handler: a record that cannot be shown must not end the thread.
            self.handleError(record)

    def show_start(self, record: logging.LogRecord) -> None:
        """Show the number of jobs of each rule. Rules without a command only name targets."""
        jobs = {
            rule: count
            for rule, count in record.stats.items()
            if rule not in ("total", "all", "runs")
        }
        self.counts = Counter(jobs)
        if self.common_settings.dryrun:
            return  # printed after the list of jobs
        FAILED_JOBS.unlink(missing_ok=True)
        self.console.print(self.summarise())
        if not self.console.is_terminal:
            threading.Thread(target=self.list_running_jobs, daemon=True).start()

    def summarise(self) -> str:
        """Format the number of jobs of each rule."""
        rules = ", ".join(f"{count} {rule}" for rule, count in self.counts.items())
        return f"[bold]{count_jobs(self.counts.total())}[/]: {rules}"

    def add_job(self, record: logging.LogRecord) -> None:
        """Add a job to the running ones, or to the list of a dry run."""
        wildcards = dict(record.wildcards)
        about = "/".join(value for name, value in wildcards.items() if name != "scale")
        job = Job(record.rule_name, about, wildcards, record.log, record.shellcmd or "")
        if not self.common_settings.dryrun:
            if self.console.is_terminal and not self.live.is_started:
                self.live.start()  # not before: a question may be asked first
            self.running[record.jobid] = job
            self.failed.pop(record.jobid, None)
        elif job.command and not self.common_settings.quiet:
            reason = describe_reason(record.reason)
            self.has_changes |= reason in CHANGES.values()
            self.jobs_to_run.append((job, reason))

    def show_command(self, record: logging.LogRecord) -> None:
        """Show a command with --printshellcmds."""
        if self.common_settings.printshellcmds and getattr(record, "shellcmd", None):
            self.console.print(f"[dim]{escape(record.shellcmd)}[/]")

    def show_finished_job(self, record: logging.LogRecord) -> None:
        """Show a line for a finished job."""
        job = self.running.pop(record.job_id)
        if not job.command:
            return
        self.done += 1
        if not self.common_settings.quiet:
            total = self.counts.total()
            line = f"{self.done:{len(str(total))}}/{total} {job.rule:10} {escape(job.about)}"
            end = "recorded" if self.is_touching else job.format_duration()
            self.console.print(f"[green]✓[/] {line}  [dim]{end}[/]")

    def show_failed_job(self, record: logging.LogRecord) -> None:
        """Show a failed job, the last line of its log, the log's path, and the command.

        Of further jobs of the rule that say the same only the name.
        """
        job = self.running.pop(record.jobid)
        # On a cluster the last one is SLURM's log of the job, with errors before the command
        # started.
        job.log = record.log
        if self.cancelled:
            self.console.print(
                f"  {job.rule} {escape(job.about)}  [dim]{escape(job.read_last_line())}[/]"
            )
            return
        self.failed[record.jobid] = job
        report = record.rule_msg or ""
        refusal = SLURM_REFUSAL.search(report)
        if refusal:
            job.message = f"SLURM refused it: {' '.join(refusal[1].split())}"
        else:
            job.message = job.read_failure() or NOTHING
            job.was_killed = any(job.command in text for text in self.kills)
        end = SLURM_END.search(report)
        if end:
            job.slurm_state = end[2]
        line = f"[red]✗ {job.rule} {escape(job.about)} failed[/] after {job.format_duration()}"
        if job.reason in self.shown_reasons:
            self.console.print(f"{line}, for the same reason")
            return
        self.shown_reasons.add(job.reason)
        self.console.print(line)
        self.console.print(f"    {escape(job.describe_failure())}")
        if end:
            self.console.print(f"    SLURM:   job {end[1]} ended as {end[2]}")
        for file in job.log:
            self.console.print(f"    log:     {escape(file)}")
        self.console.print(f"    command: [dim]{escape(' '.join(job.command.split()))}[/]")

    def show_error(self, record: logging.LogRecord) -> None:
        """Show an exception; of a UserError only its message, without the traceback."""
        text = record.getMessage()
        if "CalledProcessError in" in text:
            # show_failed_job shows it.
            if KILLED.search(text):
                self.kills.append(text)
            return
        has_shown_why = self.failed or self.cancelled
        if has_shown_why and text.startswith("WorkflowError:\nAt least one job"):
            return
        self.errors.print(format_error(text), style="red", markup=False)

    def show_message(self, record: logging.LogRecord) -> None:
        """Show a message without an event, unless it is noise."""
        text = record.getMessage()
        account = SLURM_ACCOUNT.search(text)
        if account:  # with a traceback
            text = (
                f"error: SLURM has no account {account[1]} for you, but {account[2]}; "
                "docs/cluster.md: how to name one"
            )
        if text.startswith("Terminating processes on user request"):
            self.cancelled = True
            text = "Stopping; a running training saves its state first"
        is_noise = text.startswith(NOISE) or SLURM_SUBMITTED.match(text)
        if is_noise and record.levelno > logging.DEBUG:
            return
        if text:
            style = {logging.WARNING: "yellow", logging.ERROR: "red"}.get(record.levelno, "")
            self.console.print(text, style=style, markup=False)

    def make_view(self) -> Group:
        """Return the running jobs, as many as the terminal has lines for, and the progress of all.

        A job has one line, or two on a narrow terminal. Those that have said something come first:
        on a cluster many wait.
        """
        jobs = [(job, job.read_progress()) for job in list(self.running.values())]
        label_width = max((len(job.label) for job, _ in jobs), default=0)
        is_narrow = label_width + 1 + BAR_WIDTH + 1 + TEXT_WIDTH > self.console.width
        room = (self.console.height - OTHER_LINES) // (2 if is_narrow else 1)
        n_hidden = len(jobs) - max(room, 1)
        if n_hidden > 0:
            jobs.sort(key=lambda job_and_line: not job_and_line[1])
            jobs = jobs[:-n_hidden]
        parts: list[Text | Table] = []
        for job, line in jobs:
            done, total = parse_steps(line)
            message = line or job.format_duration()
            if is_narrow:
                parts.append(Text(job.label, no_wrap=True, overflow="ellipsis"))
                parts.append(make_progress_line(Text(""), 3, done, total, message))
            else:
                parts.append(make_progress_line(Text(job.label), label_width, done, total, message))
        if n_hidden > 0:
            parts.append(Text(f"  and {n_hidden} more", "dim"))
        total = self.counts.total()
        label_of_whole = Text(f"{self.done} of {count_jobs(total)}", "bold")
        width = max(label_width, len(label_of_whole))
        elapsed = format_duration(time.monotonic() - self.started)
        parts.append(make_progress_line(label_of_whole, width, self.done, total, elapsed))
        return Group(*parts)

    def list_running_jobs(self) -> None:
        """List the running jobs from time to time."""
        while not self.closed.wait(HEARTBEAT_SECONDS):
            for job in list(self.running.values()):
                running = f"{job.rule} {escape(job.about)}"
                progress = escape(job.read_progress())
                if progress:  # its log may be empty yet
                    running += f": {progress}"
                self.console.print(f"  {self.done}/{self.counts.total()} done; {running}")

    def close(self) -> None:
        """End the live part and show how the run ended."""
        if not self.closed.is_set():
            self.closed.set()
            self.live.stop()
            if self.common_settings.dryrun:
                self.show_jobs_to_run()
            else:
                self.write_failed_jobs()
                self.show_end()
        super().close()

    def write_failed_jobs(self) -> None:
        """Write which jobs have failed, and what they said; nothing after Ctrl-C."""
        if not self.failed or self.cancelled:
            return
        failed_jobs = []
        for job in self.failed.values():
            failed_job = {
                "rule": job.rule,
                "wildcards": job.wildcards,
                "message": job.message,
                "log": job.log,
                "slurm_state": job.slurm_state,
                "was_killed": job.was_killed,
            }
            failed_jobs.append(failed_job)
        FAILED_JOBS.write_text(json.dumps(failed_jobs, indent=1), encoding="utf-8")

    def show_jobs_to_run(self) -> None:
        """Show the jobs of a dry run, and their number by rule."""
        # With their commands all jobs are listed.
        is_grouped = (
            len(self.jobs_to_run) > MOST_JOBS_LISTED and not self.common_settings.printshellcmds
        )
        if self.jobs_to_run:
            # As one text, because thousands of prints are slow.
            lines = align_jobs_to_run(self.jobs_to_run, is_grouped=is_grouped)
            self.console.print("\n".join(lines))
        if self.counts:
            note = "not run: -n"
            if is_grouped:
                note += "; -n -p lists every job with its command"
            if self.has_changes:
                note += f"; {WHY} says what changed"
            self.console.print(f"{self.summarise()} [dim]({note})[/]")

    def show_end(self) -> None:
        """Show how many jobs are done, and whether others are not; nothing if there were none."""
        took = f"in {format_duration(time.monotonic() - self.started)}"
        if self.failed or self.running or self.cancelled:
            end = f"{len(self.failed)} failed" if self.failed else "stopped"
            done = f"{self.done} of {count_jobs(self.counts.total())} done {took}"
            self.console.print(
                f"[bold red]{end}[/], {done}; run the same command again to continue"
            )
        elif self.done and self.is_touching:
            self.console.print(
                f"[bold green]{count_jobs(self.done)} recorded as current[/]; none was run"
            )
        elif self.done:
            self.console.print(f"[bold green]{count_jobs(self.done)} done[/] {took}")
