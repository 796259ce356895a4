"""Write index.html, the page of the results of a scale: tables, figures and claims, in the site's
design, without Sphinx and a network.
"""

import argparse
from collections import Counter
from pathlib import Path

from workflow_scripts.commands.summary import (
    count_made,
    describe_committed,
    find_suggested_claim,
    format_time_taken,
    is_committed,
    select_suggested_papers,
)
from workflow_scripts.common.files import read_json, read_mapping, write_text_file
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.reporting.claims.claim_rows import (
    STATES,
    ClaimRow,
    describe_primary_claims,
    read_claim_rows,
)
from workflow_scripts.reporting.site.run_page import Continuation, WhatRan, format_run_page

DAY = len("2026-11-28")  # of a time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--results",
        type=Path,
        required=True,
        metavar="DIR",
        help="results/<scale>, with the config.json of a complete call",
    )


def main(args: argparse.Namespace) -> None:
    """Write the page. Raises UserError without config.json, and for missing files of claims."""
    catalogue = load_catalogue()
    results = ScaleFolder(args.results)
    config = load_config(read_mapping(results.config))
    verdicts = ""
    if catalogue.scales[config.scale].verdicts:
        verdicts = count_primary_verdicts(read_claim_rows(results.claims.table))
    else:
        verdicts = describe_committed(config)
    ran = describe_runs(catalogue, config, results)
    continuation = suggest_claim(catalogue, config)
    page = format_run_page(catalogue, config, results, ran, verdicts, continuation)
    write_text_file(results.page, page)


def suggest_claim(catalogue: Catalogue, config: Config) -> Continuation:
    """Return the claim with which the page continues, and whether it has a committed result."""
    claim = find_suggested_claim(catalogue, select_suggested_papers(catalogue, config))
    return Continuation(claim, claim is not None and is_committed(claim))


def count_primary_verdicts(rows: list[ClaimRow]) -> str:
    """Count the primary claims by verdict, and those that are planned, in words."""
    primary = [row for row in rows if row.is_primary]
    counts = Counter(row.state for row in primary)
    parts = [f"{counts[state]} {state}" for state in STATES if counts[state]]
    return f"of {describe_primary_claims(primary)} {', '.join(parts)}" if parts else ""


def describe_runs(catalogue: Catalogue, config: Config, results: ScaleFolder) -> WhatRan:
    """Say how the requested trainings that are finished were made, from their records."""
    seconds = 0.0
    devices: set[str] = set()
    commits: set[str] = set()
    finished: set[str] = set()
    for run in list_requested_runs(catalogue, config):
        record_file = results.run(run).record
        if run.weights or not record_file.exists():
            continue
        record = read_json(record_file)
        seconds += record.get("seconds") or 0
        devices.add(record.get("device_name") or record.get("device") or "a device without a name")
        commits.add(record.get("commit") or "")
        finished.add(str(record.get("finished") or "")[:DAY])
    return WhatRan(
        made=str(count_made(catalogue, config, results)),
        finished=max(finished, default=""),
        hours=format_time_taken(round(seconds)),
        devices=sorted(devices),
        commits=sorted(commits - {""}),
        is_unfinished=results.unfinished.exists(),
    )
