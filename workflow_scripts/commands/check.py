"""Compare the fingerprint of each result with the fingerprint that its job has now, and list the differences.

Snakemake compares jobs with its own records in .snakemake/metadata. This command reads the record that each result has,
so it also tells whether results are current that were copied here without .snakemake. It changes nothing.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.paths import RECORDS
from workflow_scripts.data.sources.declared import load_repositories, load_sources
from workflow_scripts.workflow.changes import describe_changes
from workflow_scripts.workflow.dry_run import add_config_arguments, load_call_config
from workflow_scripts.workflow.planning import fingerprint_planned_job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_config_arguments(parser)


def main(args: argparse.Namespace) -> None:
    """Print one line for each result that differs. Raises UserError if there are any."""
    catalogue, config = load_catalogue(), load_call_config(args)
    found = differing = 0
    for rule, wildcards, record in list_results(catalogue):
        try:
            now = fingerprint_planned_job(catalogue, config, rule, wildcards)
            changes = describe_changes(record, now) if now else [f"no {rule} is needed now"]
            packings = (
                load_sources()[wildcards["source"]].packings if changes and rule == "fetch" else ()
            )
            changes = (
                []
                if any(read_json(record).get("sha256") == one.sha256 for one in packings)
                else changes
            )
        except UserError as error:
            changes = [str(error)]
        except KeyError as error:
            changes = [f"{error} is not in catalogue/ or papers/"]
        found += 1
        if changes:
            differing += 1
            print(f"{record}: {'; '.join(changes)}")
    if differing:
        advice = "`./reproduce -n` with the same options lists those that it will make again; delete the others by hand"
        raise UserError(
            f"{differing} of {found} results differ from the current configuration; {advice}"
        )
    print(f"{found} results agree with the current configuration")


def list_results(catalogue: Catalogue) -> Iterator[tuple[str, dict[str, str], Path]]:
    """Yield (rule, wildcards, record) of each existing result, in the order of the data flow."""
    downloads = [("fetch", {"source": name}) for name in load_sources()]
    downloads += [("fetch_model", {"model": name}) for name in load_repositories()]
    for rule, wildcards in downloads:
        if (record := Path(RECORDS[rule].format(**wildcards))).exists():
            yield rule, wildcards, record
    for rule, pattern in RECORDS.items():
        if "{scale}" not in pattern:
            continue
        for record in sorted(Path().glob(re.sub(r"\{\w+\}", "*", pattern))):
            found = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern), str(record))
            if found and found["scale"] in catalogue.scales:
                yield rule, found.groupdict(), record
