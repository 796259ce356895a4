"""Print why each job would run: the key, file or module that changed, with both values."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.workflow.changes import join_first
from workflow_scripts.workflow.dry_run import (
    add_config_arguments,
    list_jobs_to_run,
    list_overrides,
    load_call_config,
)
from workflow_scripts.workflow.rerun_reasons import find_rerun_reasons
from workflow_scripts.workflow.result_patterns import RECORDS
from workflow_scripts.workflow.snakemake_call import parse_call
from workflow_scripts.workflow.snakemake_job import SnakemakeJob, count_by_stage, drop_subject

MOST_LISTED = 10
STAGES = (*RECORDS, "record_config", "page", "site", "snakemake_report")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help="files; none: all that config.yaml asks for"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help=f"also name each of more than {MOST_LISTED} jobs that have the same reason",
    )
    add_config_arguments(parser)


@dataclass(frozen=True)
class ExplainedJob:
    """A job that would run.

    sentence: its reason. shared_reason: the same without what only this job has.
    """

    job: SnakemakeJob
    sentence: str
    shared_reason: str


def main(args: argparse.Namespace) -> None:
    """Print why the jobs of a dry run would run, those with a reason of their own first.

    Many jobs with the same reason are counted in one line.
    """
    catalogue = load_catalogue()
    config = load_call_config(args)
    words = list_words(args)
    # The scale of the files that are asked for, if they are of one.
    config = config.model_copy(update={"scale": parse_call(words).config.scale})
    jobs = list_jobs(words)
    rerun_files: set[str] = set()
    for job in jobs:
        rerun_files |= set(job.outputs)
    with_own_reason = []
    following = []
    for job in jobs:
        reasons = "; ".join(find_rerun_reasons(catalogue, config, job, rerun_files))
        if reasons:
            with_own_reason.append(ExplainedJob(job, reasons, drop_subject(reasons, job)))
        else:
            files = [file for file in job.inputs if file in rerun_files]
            are = "is" if len(files) == 1 else "are"
            sentence = f"reads {join_first(files, ', ')}, which {are} rerun too"
            following.append(ExplainedJob(job, sentence, "reads a result that is rerun too"))
    is_shortened = False
    for explained in [*group_by_reason(with_own_reason), *group_by_reason(following)]:
        if len(explained) > MOST_LISTED and not args.all:
            is_shortened = True
            print(
                f"{explained[0].shared_reason}: {count_by_stage(entry.job for entry in explained)}"
            )
            continue
        for entry in explained:
            print(f"{entry.job.name}: {entry.sentence}")
    count = {0: "Nothing", 1: "1 job"}.get(len(jobs), f"{len(jobs)} jobs")
    total = f"{count} would run at scale {config.scale}"
    if following:
        total += f", {len(with_own_reason)} of them for a reason of their own"
    if is_shortened:
        total += "; --all names each"
    print(total)


def group_by_reason(explained_jobs: Iterable[ExplainedJob]) -> list[list[ExplainedJob]]:
    """Return the jobs with the same reason together, in the order of the first of them."""
    groups: dict[str, list[ExplainedJob]] = {}
    for explained in explained_jobs:
        groups.setdefault(explained.shared_reason, []).append(explained)
    return list(groups.values())


def list_words(args: argparse.Namespace) -> list[str]:
    """Return the arguments of Snakemake that have the configuration and the targets of a call."""
    overrides = list_overrides(args)
    words = ["--", *args.targets]
    if overrides:
        words = ["--config", *overrides, *words]
    return words


def list_jobs(words: list[str]) -> list[SnakemakeJob]:
    """Return the jobs that Snakemake would run, in the order of the data flow.

    words: the arguments of Snakemake.
    """
    jobs = list_jobs_to_run(*words)
    return sorted(jobs, key=lambda job: (STAGES.index(job.stage), job.name))
