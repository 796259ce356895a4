"""What ./reproduce shows of a Snakemake run: a line per finished job and, below, what the running jobs last logged.

Snakemake finds a logger by the name of its package on PYTHONPATH; ./reproduce puts profiles/logger there and passes
`--logger terminal`. The jobs themselves write to their log files only, so that nothing else touches the terminal.
"""

import logging
import re
import threading
import time
from collections import Counter
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

# Where nobody watches (a file, CI) the running jobs are named this often.
HEARTBEAT_SECONDS = 60
# Columns of a bar, and of what a training says: `1,200/4,000 steps  6.2/s  7:31 left  loss 0.1234 exact_match 12.34%`.
BAR_WIDTH, TEXT_WIDTH = 20, 66
# `step 1,200/4,000` in the last line of a log becomes a bar.
STEPS = re.compile(r"([\d,]+)/([\d,]+)")
# What Snakemake raises for a --config that is not KEY=VALUE.
CONFIG_ERROR = re.compile(r"^ValueError: (Invalid config definition: .+)", re.MULTILINE)
# What our own code raises while Snakemake reads the Snakefile, and a target that nothing makes.
USER_ERROR = re.compile(r"^(?:UserError in file .*\n| *UserError: )(.+)", re.MULTILINE)
# What the SLURM executor says of a job that failed, or was refused.
SLURM_END = re.compile(r"SLURM-job '(\d+)' ended as (.+?)\.(?:\s|$)")
SLURM_ERROR = re.compile(r"^WorkflowError:\n(.+?)\n +File .*recompose_slurm", re.DOTALL)
SLURM_REFUSAL = re.compile(r"SLURM sbatch failed\. The error message was '(.+?)'\.\n", re.DOTALL)
SLURM_ACCOUNT = re.compile(r"The given account (\S+) appears to be invalid\. Available accounts:\s*(.+)")
SLURM_SUBMITTED = re.compile(r"^Job \d+ has been submitted with SLURM jobid")
NO_RULE = re.compile(r"^No rule to produce (.+) \(if you use", re.MULTILINE)
# Messages without an event that say nothing to a reader of this view; Snakemake's own log file has them all.
NOISE = (
    "--keep-incomplete mode is set",
    "Adding ",
    "Assuming unrestricted shared filesystem",
    "Building DAG of jobs",
    "Cleaning up SLURM log files",
    "Complete log(s):",
    "Config file ",
    "Creating report",
    "Conda environments: ignored",
    "Elapsed time:",
    "Error: Directory cannot be locked.",  # only a warning to a dry run beside another call
    "Exiting because a job execution failed",
    "Falling back to 'sacct'",
    "Loading trusted IOCache",
    # It is the cluster that must know its accounts: where one is needed, sbatch says so.
    "MinJobAge ",  # workflow_scripts/cluster/status.py copes with a short one
    "No SLURM account given",
    "No account was given",
    "Removing output files of failed job",
    "Removing temporary output",
    "Report created",
    "Reasons:",
    "SLURM run ID:",
    "Rules with provenance triggered jobs",
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
    """One job as it was announced."""

    rule: str
    about: str
    log: list[str]
    command: str
    started: float = field(default_factory=time.monotonic)
    announced: float = field(default_factory=time.time)

    def duration(self) -> str:
        return duration(time.monotonic() - self.started)

    def last_line(self) -> str:
        """The last line that the job logged; empty if it has logged nothing yet."""
        for file in self.log:
            try:
                # What an earlier call left says nothing of a job that never began. Clocks of a cluster agree roughly.
                if Path(file).stat().st_mtime < self.announced - 5:
                    continue
                with open(file, "rb") as stream:
                    stream.seek(max(0, Path(file).stat().st_size - 4096))
                    lines = stream.read().decode(errors="replace").strip().splitlines()
            except OSError:
                continue
            if lines:
                return lines[-1].removeprefix(f"{self.about}: ")
        return ""


def duration(seconds: float) -> str:
    """`m:ss`, or `h:mm:ss` from an hour on."""
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


def jobs(count: int) -> str:
    return f"{count} job" if count == 1 else f"{count} jobs"


def progress_line(name: Text, width: int, done: int, total: int, told: str) -> Table:
    """`name` in `width` columns, a bar if there is a total, and what is told of it."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, width=width)
    table.add_column(width=BAR_WIDTH)
    table.add_column(no_wrap=True, overflow="ellipsis")
    bar = ProgressBar(total=total, completed=done, width=BAR_WIDTH) if total else ""
    table.add_row(name, bar, Text(told, "dim"))
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
        self.errors = Console(stderr=True, **options) if settings.stdout else self.console
        self.running: dict[int, Job] = {}
        self.failed: dict[int, Job] = {}
        self.planned: list[str] = []  # of a dry run: shown at its end, for thousands of lines are fast as one text only
        self.counts: Counter[str] = Counter()
        self.done = 0
        self.cancelled = False
        self.started = time.monotonic()
        self.closed = threading.Event()
        self.live = Live(get_renderable=self.view, console=self.console, refresh_per_second=4, transient=True)

    def emit(self, record: logging.LogRecord) -> None:
        """Show one record; whatever has no view of its own here and is no noise is printed as it is."""
        views = {
            LogEvent.RUN_INFO: self.run_info,
            LogEvent.JOB_INFO: self.job_info,
            LogEvent.JOB_FINISHED: self.job_finished,
            LogEvent.JOB_ERROR: self.job_error,
            LogEvent.ERROR: self.error,
            LogEvent.SHELLCMD: self.shell_command,
            None: self.message,
        }
        try:
            if view := views.get(getattr(record, "event", None)):
                view(record)
        except Exception:
            # As every logging handler does: what cannot be shown must not end the thread that shows the rest.
            self.handleError(record)

    def run_info(self, record: logging.LogRecord) -> None:
        """How many jobs of which rule. Rules without a command only name targets and are no work."""
        self.counts = Counter(
            {rule: count for rule, count in record.stats.items() if rule not in ("total", "all", "runs")}
        )
        if self.common_settings.dryrun:
            return  # said when all jobs have been listed
        self.console.print(self.summary())
        if self.console.is_terminal:
            self.live.start()
        else:
            threading.Thread(target=self.heartbeat, daemon=True).start()

    def summary(self) -> str:
        return f"[bold]{jobs(self.counts.total())}[/]: " + ", ".join(f"{n} {rule}" for rule, n in self.counts.items())

    def job_info(self, record: logging.LogRecord) -> None:
        about = "/".join(value for name, value in record.wildcards.items() if name != "scale")
        job = Job(record.rule_name, about, record.log, record.shellcmd or "")
        if not self.common_settings.dryrun:
            self.running[record.jobid] = job
            self.failed.pop(record.jobid, None)
        elif job.command and not self.common_settings.quiet:
            reason = record.reason.split(":")[0].strip()
            self.planned.append(f"{job.rule:10} {escape(about)}  [dim]{escape(reason)}[/]")

    def shell_command(self, record: logging.LogRecord) -> None:
        if self.common_settings.printshellcmds and getattr(record, "shellcmd", None):
            self.console.print(f"[dim]{escape(record.shellcmd)}[/]")

    def job_finished(self, record: logging.LogRecord) -> None:
        job = self.running.pop(record.job_id)
        if not job.command:
            return
        self.done += 1
        if not self.common_settings.quiet:
            total = self.counts.total()
            count = f"{self.done:{len(str(total))}}/{total}"
            self.console.print(f"[green]✓[/] {count} {job.rule:10} {escape(job.about)}  [dim]{job.duration()}[/]")

    def job_error(self, record: logging.LogRecord) -> None:
        """What failed, why (the log's last line), where to read more, how to repeat it alone."""
        job = self.running.pop(record.jobid)
        # On a cluster the last is SLURM's own log of the job, for what happened before the command began.
        job.log = record.log
        if self.cancelled:
            self.console.print(f"  {job.rule} {escape(job.about)}  [dim]{escape(job.last_line())}[/]")
            return
        self.failed[record.jobid] = job
        self.console.print(f"[red]✗ {job.rule} {escape(job.about)} failed[/] after {job.duration()}")
        said = record.rule_msg or ""
        if refusal := SLURM_REFUSAL.search(said):
            self.console.print(f"    SLURM refused it: {escape(' '.join(refusal[1].split()))}")
        else:
            self.console.print(f"    {escape(job.last_line() or 'it logged nothing')}")
        if end := SLURM_END.search(said):
            self.console.print(f"    SLURM:   job {end[1]} ended as {end[2]}")
        for file in job.log:
            self.console.print(f"    log:     {escape(file)}")
        self.console.print(f"    command: [dim]{escape(' '.join(job.command.split()))}[/]")

    def error(self, record: logging.LogRecord) -> None:
        """An exception. Of one that the user can mend, the line that says how is left, without the traceback."""
        text = record.getMessage()
        if "CalledProcessError in" in text or (
            (self.failed or self.cancelled) and text.startswith("WorkflowError:\nAt least one job")
        ):
            return  # job_error has said it
        if found := USER_ERROR.search(text) or CONFIG_ERROR.search(text) or SLURM_ERROR.search(text):
            text = f"error: {found[1]}"
        elif found := NO_RULE.search(text):
            where = "catalogue/ and papers/ name what can be made; settings go behind --config"
            text = f"error: no rule makes {found[1]}; {where}"
        self.errors.print(text, style="red", markup=False)

    def message(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if found := SLURM_ACCOUNT.search(text):  # with a traceback
            text = f"error: SLURM has no account {found[1]} for you, but {found[2]}; docs/cluster.md: how to name one"
        if text.startswith("Terminating processes on user request"):
            self.cancelled = True
            text = "Stopping; a running training saves its state first"
        if not text or (record.levelno > logging.DEBUG and (text.startswith(NOISE) or SLURM_SUBMITTED.match(text))):
            return
        style = {logging.WARNING: "yellow", logging.ERROR: "red"}.get(record.levelno, "")
        self.console.print(text, style=style, markup=False)

    def rows(self) -> list[tuple[Job, str]]:
        """The running jobs with the last line of their logs."""
        return [(job, job.last_line()) for job in list(self.running.values())]

    def view(self) -> Group:
        """The running jobs, in a line each or, on a narrow terminal, in two; and how far everything is."""
        rows = [(f"  {job.rule:10} {job.about}", job, line) for job, line in self.rows()]
        width = max((len(name) for name, _, _ in rows), default=0)
        apart = width + 1 + BAR_WIDTH + 1 + TEXT_WIDTH > self.console.width
        parts: list[Text | Table] = []
        for name, job, line in rows:
            steps = STEPS.search(line)
            done, total = (int(number.replace(",", "")) for number in steps.groups()) if steps else (0, 0)
            if apart:
                parts.append(Text(name, no_wrap=True, overflow="ellipsis"))
            label = Text("" if apart else name)
            parts.append(progress_line(label, 3 if apart else width, done, total, line or job.duration()))
        name, total = Text(f"{self.done} of {jobs(self.counts.total())}", "bold"), self.counts.total()
        elapsed = duration(time.monotonic() - self.started)
        return Group(*parts, progress_line(name, max(width, len(name)), self.done, total, elapsed))

    def heartbeat(self) -> None:
        while not self.closed.wait(HEARTBEAT_SECONDS):
            for job, line in self.rows():
                self.console.print(
                    f"  {self.done}/{self.counts.total()} done; {job.rule} {escape(job.about)}: {escape(line)}"
                )

    def close(self) -> None:
        """End the live part and say how the run ended."""
        if not self.closed.is_set():
            self.closed.set()
            self.live.stop()
            took = f"in {duration(time.monotonic() - self.started)}"
            if self.common_settings.dryrun:
                if self.planned:
                    self.console.print("\n".join(self.planned))
                if self.counts:
                    self.console.print(f"{self.summary()} [dim](not run: -n)[/]")
            elif self.failed or self.running or self.cancelled:
                what = f"{len(self.failed)} failed" if self.failed else "stopped"
                self.console.print(
                    f"[bold red]{what}[/], {self.done} of {jobs(self.counts.total())} done {took}; "
                    "the same command goes on from here"
                )
            elif self.done:
                self.console.print(f"[bold green]{jobs(self.done)} done[/] {took}")
        super().close()
