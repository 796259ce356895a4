"""Print why each job would run: the key, file or module that changed, with both values."""

import argparse

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
from workflow_scripts.workflow.snakemake_job import SnakemakeJob

STAGES = (*RECORDS, "record_config", "page", "site", "snakemake_report")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help="files; none: all that config.yaml asks for"
    )
    add_config_arguments(parser)


def main(args: argparse.Namespace) -> None:
    """Print one sentence per job of a dry run, jobs with a reason of their own first."""
    catalogue = load_catalogue()
    config = load_call_config(args)
    jobs = list_jobs(args)
    rerun_files: set[str] = set()
    for job in jobs:
        rerun_files |= set(job.outputs)
    with_own_reason = []
    following = []
    for job in jobs:
        reasons = list(find_rerun_reasons(catalogue, config, job, rerun_files))
        if reasons:
            with_own_reason.append(f"{job.name}: {'; '.join(reasons)}")
        else:
            files = [file for file in job.inputs if file in rerun_files]
            following.append(f"{job.name}: reads {join_first(files, ', ')}, which is rerun too")
    for sentence in with_own_reason + following:
        print(sentence)
    count = {0: "Nothing", 1: "1 job"}.get(len(jobs), f"{len(jobs)} jobs")
    total = f"{count} would run at scale {config.scale}"
    if following:
        total += f", {len(with_own_reason)} of them for a reason of their own"
    print(total)


def list_jobs(args: argparse.Namespace) -> list[SnakemakeJob]:
    """Return the jobs that Snakemake would run, in the order of the data flow."""
    overrides = list_overrides(args)
    words = ["--", *args.targets]
    if overrides:
        words = ["--config", *overrides, *words]
    jobs = list_jobs_to_run(*words)
    return sorted(jobs, key=lambda job: (STAGES.index(job.stage), job.name))
