"""Make tables, figures and claims from the runs that are finished, and say why others are not.

./reproduce calls this after jobs have failed.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from workflow_scripts.common.result_folders import RESULTS
from workflow_scripts.common.run_names import Run
from workflow_scripts.common.wording import count_nouns
from workflow_scripts.config.displays import find_analysis, select_display_runs
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.requested import list_paper_runs
from workflow_scripts.provenance.unfinished import Cause, Unfinished, write_unfinished
from workflow_scripts.workflow.dry_run import list_jobs_to_run
from workflow_scripts.workflow.failures import (
    ENDS_OF_SEVERAL,
    FAILED_JOBS,
    FailedJob,
    JobKey,
    Waiting,
    find_failures,
    make_job_key,
    read_failed_jobs,
    write_failed_jobs,
)
from workflow_scripts.workflow.job_specs import list_read_files
from workflow_scripts.workflow.snakemake_call import (
    LOGGER,
    SnakemakeCall,
    add_snakemake_arguments,
    drop_force_words,
    format_own_call,
    get_snakemake_arguments,
    parse_call,
    set_config_value,
)
from workflow_scripts.workflow.snakemake_job import (
    RUN_RULES,
    SnakemakeJob,
    format_job_count,
    set_needed_jobs,
)
from workflow_scripts.workflow.snakemake_process import collect_stop_signals, run_snakemake

# What is made of finished runs. No other job is started.
SHOWING_RULES = ("analyse", "table", "figure", "claims", "claim", "record_config", "page")
TARGET_RULE = "all"
SHOWN_NAMES = 3  # of jobs that failed for the same reason


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    always = "also where no job has failed, for example after Ctrl-C"
    parser.add_argument("--always", action="store_true", help=always)
    add_snakemake_arguments(parser)


def main(args: argparse.Namespace) -> None:
    """Make what can be made, say what is not finished, and exit with 1 if anything is not."""
    words = get_snakemake_arguments(args)
    failures = read_failed_jobs()
    if not failures and not args.always:
        return
    call = parse_call(drop_force_words(words))
    arguments = [word for word in call.arguments if word != LOGGER]
    open_jobs = set_needed_jobs(list_jobs_to_run(*arguments))
    open_keys = {make_job_key(job.rule, job.wildcards) for job in open_jobs}
    failures = [failure for failure in failures if failure.key in open_keys]
    shows_nothing = select_targets(call, open_jobs, Unfinished()) is None
    if shows_nothing and all("/" in target for target in call.targets):
        return  # a file of a run, or the like: Snakemake has said why it is not there
    with collect_stop_signals() as received:
        while True:
            waiting = find_failures(open_jobs, failures)
            unfinished = list_unfinished(call, waiting)
            write_unfinished(RESULTS.scale(call.config.scale), unfinished)
            targets = select_targets(call, open_jobs, unfinished)
            if targets is None or received:
                break
            FAILED_JOBS.unlink(missing_ok=True)
            run_snakemake(make_arguments(call, targets), received, dict(os.environ))
            earlier_failures = {failure.key for failure in failures}
            failures += [
                failure for failure in read_failed_jobs() if failure.key not in earlier_failures
            ]
            if len(failures) == len(earlier_failures):
                break
    write_failed_jobs(failures)  # for `--finished`
    lines = describe_unfinished(failures, waiting, words)
    if lines:
        print("\n".join(lines))
        sys.exit(1)


def list_unfinished(call: SnakemakeCall, waiting: Iterable[Waiting]) -> Unfinished:
    """Return the files of the scale that cannot be made now, and why.

    Tables, figures, claims and analyses can be made from the runs that are finished, unless they
    have failed themselves.
    """
    causes: dict[Path, Cause] = {}
    shown = []
    for entry in waiting:
        if entry.job.rule in SHOWING_RULES:
            shown.append(entry)
        else:
            causes |= _list_causes(call, entry)
    failed_rules = {entry.job.rule for entry in shown if entry.has_failed}
    for entry in shown:
        # The page is made after record_config, and has the claims.
        is_end = entry.job.rule in ("record_config", "page") and "claims" in failed_rules
        if entry.has_failed or is_end or not can_show(call, entry.job, Unfinished(causes)):
            causes |= _list_causes(call, entry)
    return Unfinished(causes)


def _list_causes(call: SnakemakeCall, waiting: Waiting) -> dict[Path, Cause]:
    """Return the outputs of a job in the folder of the scale, each with the job's cause."""
    folder = RESULTS.scale(call.config.scale).path
    causes: dict[Path, Cause] = {}
    for file in map(Path, waiting.job.outputs):
        if file.is_relative_to(folder):
            causes[file] = waiting.cause
    return causes


def can_show(call: SnakemakeCall, job: SnakemakeJob, unfinished: Unfinished) -> bool:
    """Whether a job can show what is finished.

    Only an analysis may not: where none of its runs is finished, or what it reads besides runs is
    missing.
    """
    if job.rule != "analyse":
        return True
    if not {needed.stage for needed in job.needed} <= {*RUN_RULES, "prepare"}:
        return False
    paper = job.wildcards["paper"]
    catalogue = load_catalogue()
    entry = find_analysis(catalogue, paper, job.wildcards["analysis"])
    scale = call.config.scale
    runs = select_display_runs(entry, list_paper_runs(catalogue, call.config, paper, scale))
    if not runs:
        return True
    return any(not unfinished.is_missing_any(list_read_files(entry, run, scale)) for run in runs)


def select_targets(
    call: SnakemakeCall, open_jobs: Iterable[SnakemakeJob], unfinished: Unfinished
) -> list[str] | None:
    """Return the targets of the call that show results, without the unfinished ones; none: all.

    None: the call has no such target.
    """
    if not call.targets:
        return []
    shown_files: set[str] = set()
    for job in open_jobs:
        if job.rule in SHOWING_RULES:
            shown_files.update(job.outputs)
    targets = []
    for target in call.targets:
        if target in shown_files and Path(target) not in unfinished:
            targets.append(target)
    return targets or None


def make_arguments(call: SnakemakeCall, targets: Sequence[str]) -> list[str]:
    """Return the arguments of the call, for targets that are made from what is finished."""
    arguments = set_config_value(call.options, "finished_only=true")
    return [*arguments, "--allowed-rules", TARGET_RULE, *SHOWING_RULES, "--", *targets]


def describe_unfinished(
    failures: Iterable[FailedJob], waiting: Iterable[Waiting], words: Iterable[str]
) -> list[str]:
    """Say what is not finished: a line for each reason of failures, and how to try again.

    No lines if everything is finished. words: the user's arguments.
    """
    runs_of: dict[JobKey, set[Run]] = {}
    not_started: set[Run] = set()
    for entry in waiting:
        run = entry.job.run
        if run is None:
            continue
        if entry.failure is None:
            not_started.add(run)
        else:
            runs_of.setdefault(entry.failure.key, set()).add(run)
    lines = []
    for group in group_failures(failures):
        runs: set[Run] = set()
        for failure in group:
            runs |= runs_of.get(failure.key, set())
        not_started -= runs
        lines.append(describe_failures(group, len(runs)))
    if not_started:
        lines.append(f"error: {count_nouns(len(not_started), 'run')} not started yet")
    if lines:
        lines.append(f"Try again with: {format_own_call(words)}")
    return lines


def group_failures(failures: Iterable[FailedJob]) -> list[list[FailedJob]]:
    """Group the failed downloads of each data set, and the jobs of a rule with the same reason."""
    groups: dict[object, list[FailedJob]] = {}
    for failure in failures:
        key = failure.dataset or (failure.rule, failure.cause.word, failure.reason)
        groups.setdefault(key, []).append(failure)
    return list(groups.values())


def describe_failures(group: list[FailedJob], runs: int) -> str:
    """Say in one line what has happened, how many runs wait for it, and where to read more.

    Of several jobs the line has the message and the log of the first.
    """
    first = group[0]
    is_of_dataset = len(group) > 1 and first.dataset is not None
    line = f"error: {first.cause.sentence}"
    if is_of_dataset:
        line += f", and {count_nouns(len(group) - 1, 'more file')} of {first.dataset}"
    elif len(group) > 1:
        jobs = format_job_count(first.stage, len(group))
        line = f"error: {jobs} {ENDS_OF_SEVERAL[first.cause.word]}"
    if runs:
        line += f", {count_nouns(runs, 'run')} not finished"
    line += f": {first.message.removeprefix('error: ')}"
    if is_of_dataset:
        line += f"; `python -m workflow_scripts fetch --list {first.dataset}` lists all its URLs"
    if len(group) > 1 and not is_of_dataset:
        line += f" ({list_names_of_jobs(group)}"
        return f"{line}; the first log: {first.log[0]})" if first.log else f"{line})"
    return f"{line} ({first.log[0]})" if first.log else line


def list_names_of_jobs(group: list[FailedJob]) -> str:
    """Name what the first jobs are about, and count the others."""
    names = ", ".join(failure.about for failure in group[:SHOWN_NAMES])
    more = len(group) - SHOWN_NAMES
    return f"{names} and {more} more" if more > 0 else names
