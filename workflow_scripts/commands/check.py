"""Compare the fingerprint of each result with the fingerprint that its job has now, and list the
differences. Tables, figures and analyses are also compared by the runs that they show. Files that a
result should have and has not are named, and data, weights and scores that are others than those
that it was made from.

The options that choose papers, claims or a scale choose what is compared: what ./reproduce makes or
reads with the same options. Without them it is all that is there.

Snakemake compares jobs with its own records in .snakemake/metadata. This command reads the record
that each result has, so it also tells whether results are current that were copied here without
.snakemake. It changes nothing.
"""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.result_folders import JobFolder
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.overrides import read_overrides
from workflow_scripts.config.schema import Config
from workflow_scripts.data.sources.declared import load_repositories, load_sources
from workflow_scripts.workflow.changes import describe_changes
from workflow_scripts.workflow.damaged_files import (
    find_damaged_files,
    find_missing_files,
    has_output_digests,
)
from workflow_scripts.workflow.dry_run import (
    add_config_arguments,
    list_jobs_to_run,
    list_overrides,
    load_call_config,
)
from workflow_scripts.workflow.job_specs import fingerprint_workflow_job
from workflow_scripts.workflow.other_inputs import InputComparison
from workflow_scripts.workflow.result_patterns import KEPT_FILES, RECORDS, locate_record
from workflow_scripts.workflow.shown_runs import find_run_changes

# Keys of config.yaml that choose what is made.
CHOOSING_KEYS = {"scale", "papers", "claims"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_config_arguments(parser)
    parser.add_argument(
        "--deep",
        action="store_true",
        help="also hash the files of all results and downloads: has one changed since it was made? "
        "(not index.html, config.json, specs and logs)",
    )


def main(args: argparse.Namespace) -> None:
    """Print one line for each result that differs, and each file that is missing or has changed.

    Raises UserError if there are any.
    """
    catalogue = load_catalogue()
    config = load_call_config(args)
    results = list(list_results(catalogue, config))
    overrides = list_overrides(args)
    is_selection = bool(CHOOSING_KEYS & read_overrides(overrides).keys())
    if is_selection:
        results = select_results(results, overrides)
        if not results:
            print("no result that these options choose is there")
            return
    checked = Checked()
    for result in results:
        own_config = choose_judged_papers(config, result)
        if own_config != config:
            choice = f"--papers {' '.join(own_config.papers)}"
            done = "not checked; it is of" if is_selection else "checked as that of"
            print(f"{result.record}: {done} another choice of papers, {choice}")
            if is_selection:
                continue
        check_result(checked, catalogue, own_config, result, args.deep)
    for line in checked.missing + checked.damaged:
        print(line)
    if checked.without_digests:
        print(
            f"{checked.without_digests} of {checked.count} results are of an earlier version, "
            "which recorded no sha256 of tables, figures, claims, manifests and records: these "
            "were not compared"
        )
    faults = list(describe_faults(checked))
    if faults:
        raise UserError("\n".join(faults))
    and_files = ", and their files with the recorded sha256" if args.deep else ""
    print(f"{checked.count} results agree with the current configuration{and_files}")


@dataclass
class Checked:
    """What the results that are checked come to.

    differing: number of results of other settings or code. of_other_inputs: number of results that
    were made from other files. missing, damaged: a sentence for each file. without_digests: number
    of results of earlier versions.
    """

    count: int = 0
    differing: int = 0
    of_other_inputs: int = 0
    missing: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    without_digests: int = 0
    inputs: InputComparison = field(default_factory=InputComparison)


def check_result(
    checked: Checked,
    catalogue: Catalogue,
    config: Config,
    result: "ExistingResult",
    is_deep: bool,
) -> None:
    """Add a result to those that are checked, and print how it differs from its job."""
    checked.count += 1
    checked.missing += describe_missing_files(result)
    if is_deep:
        checked.damaged += find_damaged_files(result.rule, result.wildcards)
        if not has_output_digests(result.rule, result.wildcards):
            checked.without_digests += 1
    if not result.record.exists():
        return
    changes = find_changes(catalogue, config, result)
    other_inputs = checked.inputs.find_other_inputs(result.rule, result.wildcards)
    checked.differing += bool(changes)
    checked.of_other_inputs += bool(other_inputs)
    if changes or other_inputs:
        print(f"{result.record}: {'; '.join([*changes, *other_inputs])}")


def describe_faults(checked: Checked) -> Iterator[str]:
    """Yield a sentence for each kind of fault, and what to do."""
    if checked.missing:
        n_missing = len(checked.missing)
        files = "1 file is" if n_missing == 1 else f"{n_missing} files are"
        yield (
            f"{files} missing; `./reproduce -n` with the same options lists what it will make again"
        )
    if checked.damaged:
        n_damaged = len(checked.damaged)
        files = "1 file has" if n_damaged == 1 else f"{n_damaged} files have"
        yield (
            f"{files} changed; delete them with the manifest, or with the folder if it is a "
            f"{JobFolder(Path()).record}, and run ./reproduce again"
        )
    if checked.of_other_inputs:
        n_other = checked.of_other_inputs
        results = "1 result was" if n_other == 1 else f"{n_other} results were"
        yield (
            f"{results} made from other files than those that are there; `./reproduce -n` with the "
            "same options lists those that it will make again; delete the others, and run "
            "./reproduce again"
        )
    if checked.differing:
        yield (
            f"{checked.differing} of {checked.count} results differ from the current "
            "configuration; `./reproduce -n` with the same options lists those that it will make "
            "again; --touch keeps them, and others can be deleted by hand"
        )


class ExistingResult(NamedTuple):
    """The rule and the wildcards of the job that makes a result, and the record that it wrote.

    The record may be missing.
    """

    rule: str
    wildcards: dict[str, str]
    record: Path


def list_results(catalogue: Catalogue, config: Config) -> Iterator[ExistingResult]:
    """Yield each existing result, in the order of the data flow.

    One without a record is yielded if the workflow still has its job.
    """
    downloads = [("fetch", {"source": name}) for name in load_sources()]
    downloads += [("fetch_model", {"model": name}) for name in load_repositories()]
    for rule, wildcards in downloads:
        record = locate_record(rule, wildcards)
        if record.exists():
            yield ExistingResult(rule, wildcards, record)
    for rule, kept_files in KEPT_FILES.items():
        found: dict[Path, dict[str, str]] = {}
        for pattern in (RECORDS[rule], *kept_files):
            for wildcards in find_wildcards(pattern):
                if wildcards["scale"] in catalogue.scales:
                    found[locate_record(rule, wildcards)] = wildcards
        for record in sorted(found):
            wildcards = found[record]
            if record.exists() or has_job(catalogue, config, rule, wildcards):
                yield ExistingResult(rule, wildcards, record)


def find_wildcards(pattern: Path) -> Iterator[dict[str, str]]:
    """Yield the wildcards of each file that is there and matches a pattern of a rule."""
    groups = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", str(pattern)))
    for file in Path().glob(re.sub(r"\{\w+\}", "*", str(pattern))):
        match = groups.fullmatch(str(file))
        if match:
            yield match.groupdict()


def has_job(catalogue: Catalogue, config: Config, rule: str, wildcards: dict[str, str]) -> bool:
    """Whether the catalogue and the papers still define the job of a result."""
    try:
        return fingerprint_workflow_job(catalogue, config, rule, wildcards) is not None
    except (KeyError, UserError):
        return False


def describe_missing_files(result: ExistingResult) -> Iterator[str]:
    """Yield a sentence for each file that a result should have and has not."""
    for file in find_missing_files(result.rule, result.wildcards):
        is_of_folder = file == JobFolder(file.parent).record
        if is_of_folder:  # no output of a rule, so Snakemake does not miss it
            yield f"{file} is missing; delete {file.parent} to make this result again"
        else:
            yield f"{file} is missing"


def select_results(results: list[ExistingResult], overrides: list[str]) -> list[ExistingResult]:
    """Return the results that a call of ./reproduce makes or reads.

    overrides: its words of --config.
    """
    jobs = list_jobs_to_run("--forceall", "--config", *overrides, "--")
    chosen = {locate_record(job.stage, job.wildcards) for job in jobs if job.stage in RECORDS}
    return [result for result in results if result.record in chosen]


def find_changes(catalogue: Catalogue, config: Config, result: ExistingResult) -> list[str]:
    """Return a sentence for each way in which a result differs from what its job makes now."""
    try:
        now = fingerprint_workflow_job(catalogue, config, result.rule, result.wildcards)
        if not now:
            return [f"no {result.rule} is needed now"]
        changes = describe_changes(result.record, now)
        changes += find_run_changes(catalogue, config, result.rule, result.wildcards)
        if result.rule != "fetch":
            return changes
        if changes and _is_of_other_packing(result):
            return []
        return changes
    except UserError as error:
        return [str(error)]
    except KeyError as error:
        return [f"{error} is not in catalogue/ or papers/"]


def choose_judged_papers(config: Config, result: ExistingResult) -> Config:
    """Return the configuration with the papers that a result of claims has, if they are others."""
    if result.rule != "claims":
        return config
    try:
        spec = read_json(result.record).get("spec")
    except UserError:  # find_changes says it
        return config
    papers = list(spec.get("claims") or ()) if isinstance(spec, dict) else []
    if not papers or set(papers) == set(config.papers):
        return config
    return config.model_copy(update={"papers": papers})


def _is_of_other_packing(download: ExistingResult) -> bool:
    """Return whether a download is another archive of the same file, which is as good."""
    sha256 = read_json(download.record).get("sha256")
    packings = load_sources()[download.wildcards["source"]].packings
    return any(sha256 == packing.sha256 for packing in packings)
