"""List the jobs of a Snakemake dry run, with the configuration that one call chooses."""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.yaml_files import read_yaml_mapping
from workflow_scripts.config.claim_needs import check_claim_names
from workflow_scripts.config.loading import load_catalogue, load_config, name_place
from workflow_scripts.config.overrides import PLACEHOLDERS, merge_overrides
from workflow_scripts.config.schema import Config
from workflow_scripts.workflow.missing_targets import describe_missing_target, find_missing_target
from workflow_scripts.workflow.snakemake_job import SnakemakeJob

# Error of our own code while Snakemake reads the Snakefile, of one line or several.
USER_ERROR = re.compile(r"^UserError in file .*\n((?:\S.*\n)+)", re.MULTILINE)


def list_jobs_to_run(*arguments: str) -> list[SnakemakeJob]:
    """List the jobs of `snakemake --dry-run`.

    Jobs without output are left out. Raises UserError with Snakemake's message if it fails.
    """
    command = [sys.executable, "-m", "snakemake", "--logger=jobs", "--dry-run", *arguments]
    # Snakemake finds the loggers of this project there, as under ./reproduce.
    plugins = str(Path("profiles/plugins").resolve())
    environment = os.environ | {"PYTHONPATH": plugins, "RECOMPOSE_NOTICE": "nothing"}
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", errors="replace", env=environment
    )
    if done.returncode != 0:
        raise UserError(_describe_failure(done))
    jobs = []
    for line in done.stdout.splitlines():
        if not line.startswith("{"):
            continue
        entry = json.loads(line)
        job = SnakemakeJob(
            rule=entry["rule"],
            wildcards=entry["wildcards"],
            inputs=entry["input"],
            outputs=entry["output"],
            reason=entry["reason"],
            command=entry["command"] or "",
        )
        jobs.append(job)
    return [job for job in jobs if job.outputs]


def _describe_failure(dry_run: subprocess.CompletedProcess[str]) -> str:
    """Return what a dry run that failed says of the reason."""
    missing = find_missing_target(dry_run.stderr)
    if missing is not None:
        return describe_missing_target(missing)
    user_error = USER_ERROR.search(dry_run.stderr)
    if user_error:
        return user_error[1].rstrip()
    lines = [line for line in dry_run.stderr.splitlines() if line.strip()]
    if not lines:
        return f"snakemake --dry-run failed: {dry_run.returncode}"
    return f"snakemake --dry-run failed: {lines[-1]}"


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the words that change config.yaml for one call, the same as those of ./reproduce."""
    parser.add_argument("--scale", help="instead of config.yaml's")
    parser.add_argument("--papers", nargs="+", metavar="KEY", help="instead of config.yaml's")
    parser.add_argument(
        "--claim", nargs="+", metavar="PAPER/CLAIM", help="only what these claims need"
    )
    parser.add_argument(
        "--config", nargs="+", default=[], metavar="KEY=VALUE", help="any key of config.yaml"
    )


def list_overrides(args: argparse.Namespace) -> list[str]:
    """Return the words of `add_config_arguments` as Snakemake's `--config` has them.

    For example `scale=small` and `papers=[lrf]`, each after its placeholder.
    """
    words = list(args.config)
    if args.scale is not None:
        words += [PLACEHOLDERS["scale"], f"scale={args.scale}"]
    if args.papers:
        words += [PLACEHOLDERS["papers"], f"papers=[{','.join(args.papers)}]"]
    if args.claim:
        words += [PLACEHOLDERS["claims"], f"claims=[{','.join(args.claim)}]"]
    return words


def load_call_config(args: argparse.Namespace) -> Config:
    """Read config.yaml with the changes of one call.

    Raises UserError for a claim that does not exist, too.
    """
    overrides = list_overrides(args)
    content = merge_overrides(read_yaml_mapping(Path("config.yaml")), overrides)
    config = load_config(content, overrides=overrides)
    if config.claims:
        check_claim_names(load_catalogue(), config.claims, name_place("claims", overrides))
    return config
