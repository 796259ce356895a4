"""Compare the fingerprint of each result with the fingerprint that its job has now, and list the
differences.

Snakemake compares jobs with its own records in .snakemake/metadata. This command reads the record
that each result has, so it also tells whether results are current that were copied here without
.snakemake. It changes nothing.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.schema import Config
from workflow_scripts.data.sources.declared import load_repositories, load_sources
from workflow_scripts.workflow.changes import describe_changes
from workflow_scripts.workflow.damaged_files import find_damaged_files
from workflow_scripts.workflow.dry_run import add_config_arguments, load_call_config
from workflow_scripts.workflow.job_specs import fingerprint_workflow_job
from workflow_scripts.workflow.result_patterns import RECORDS, locate_record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_config_arguments(parser)
    parser.add_argument(
        "--deep",
        action="store_true",
        help="also hash the files of all results and downloads: has one changed since it was made?",
    )


def main(args: argparse.Namespace) -> None:
    """Print one line for each result that differs, and for each file that has changed.

    Raises UserError if there are any.
    """
    catalogue = load_catalogue()
    config = load_call_config(args)
    count = 0
    differing = 0
    damaged: list[str] = []
    for result in list_results(catalogue):
        count += 1
        if args.deep:
            damaged += find_damaged_files(result.rule, result.wildcards)
        changes = find_changes(catalogue, config, result)
        if changes:
            differing += 1
            print(f"{result.record}: {'; '.join(changes)}")
    for line in damaged:
        print(line)
    faults = []
    if damaged:
        files = "1 file has" if len(damaged) == 1 else f"{len(damaged)} files have"
        faults.append(f"{files} changed; delete them with the manifest and run ./reproduce again")
    if differing:
        faults.append(
            f"{differing} of {count} results differ from the current configuration; "
            "`./reproduce -n` with the same options lists those that it will make again; "
            "--touch keeps them, and others can be deleted by hand"
        )
    if faults:
        raise UserError("\n".join(faults))
    and_files = ", and their files with their manifests" if args.deep else ""
    print(f"{count} results agree with the current configuration{and_files}")


class ExistingResult(NamedTuple):
    """The rule and the wildcards of the job that makes a result, and the record that it wrote."""

    rule: str
    wildcards: dict[str, str]
    record: Path


def list_results(catalogue: Catalogue) -> Iterator[ExistingResult]:
    """Yield each existing result, in the order of the data flow."""
    downloads = [("fetch", {"source": name}) for name in load_sources()]
    downloads += [("fetch_model", {"model": name}) for name in load_repositories()]
    for rule, wildcards in downloads:
        record = locate_record(rule, wildcards)
        if record.exists():
            yield ExistingResult(rule, wildcards, record)
    for rule, record_pattern in RECORDS.items():
        pattern = str(record_pattern)
        if "{scale}" not in pattern:
            continue
        groups = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern))
        for record in sorted(Path().glob(re.sub(r"\{\w+\}", "*", pattern))):
            match = groups.fullmatch(str(record))
            if match and match["scale"] in catalogue.scales:
                yield ExistingResult(rule, match.groupdict(), record)


def find_changes(catalogue: Catalogue, config: Config, result: ExistingResult) -> list[str]:
    """Return a sentence for each way in which a result differs from what its job makes now."""
    if result.rule == "claims":
        papers = list_judged_papers(result.record)
        if papers and set(papers) != set(config.papers):
            option = f"--papers {' '.join(papers)}"
            return [f"has the claims of {', '.join(papers)} alone; check it with `{option}`"]
    try:
        now = fingerprint_workflow_job(catalogue, config, result.rule, result.wildcards)
        if not now:
            return [f"no {result.rule} is needed now"]
        changes = describe_changes(result.record, now)
        if result.rule != "fetch":
            return changes
        if changes and _is_of_other_packing(result):
            return []
        return changes
    except UserError as error:
        return [str(error)]
    except KeyError as error:
        return [f"{error} is not in catalogue/ or papers/"]


def list_judged_papers(record: Path) -> list[str]:
    """List the papers whose claims were judged together; none if the record does not tell."""
    spec = read_json(record).get("spec")
    if not isinstance(spec, dict):
        return []
    return list(spec.get("claims") or ())


def _is_of_other_packing(download: ExistingResult) -> bool:
    """Return whether a download is another archive of the same file, which is as good."""
    sha256 = read_json(download.record).get("sha256")
    packings = load_sources()[download.wildcards["source"]].packings
    return any(sha256 == packing.sha256 for packing in packings)
