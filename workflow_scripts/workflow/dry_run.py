"""List the jobs of a Snakemake dry run, with the configuration that one call chooses."""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.yaml_files import parse_yaml, read_yaml_mapping
from workflow_scripts.config.loading import load_config
from workflow_scripts.config.schema import Config

# Error of our own code while Snakemake reads the Snakefile, of one line or several.
USER_ERROR = re.compile(r"^UserError in file .*\n((?:\S.*\n)+)", re.MULTILINE)
NO_RULE = re.compile(r"^No rule to produce (.+) \(if you use", re.MULTILINE)


def list_planned_jobs(*arguments: str) -> list[dict[str, Any]]:
    """List the jobs of `snakemake --dry-run`: rule, wildcards, input, output, command, reason.

    Jobs without output are left out. Raises UserError with Snakemake's message if it fails.
    """
    command = [sys.executable, "-m", "snakemake", "--logger=plan", "--dry-run", *arguments]
    # Snakemake finds the loggers of this project there, as under ./reproduce.
    environment = os.environ | {"PYTHONPATH": str(Path("profiles/plugins").resolve())}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        if found := NO_RULE.search(done.stderr):
            where = "catalogue/ and papers/ list what exists; settings go after --config"
            raise UserError(f"no rule makes {found[1]}; {where}")
        if found := USER_ERROR.search(done.stderr):
            raise UserError(found[1].rstrip())
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise UserError(f"snakemake --dry-run failed: {said[-1] if said else done.returncode}")
    jobs = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [job for job in jobs if job["output"]]


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the words that change config.yaml for one call, the same as those of ./reproduce."""
    parser.add_argument("--scale", help="instead of config.yaml's")
    parser.add_argument("--papers", nargs="+", metavar="KEY", help="instead of config.yaml's")
    parser.add_argument(
        "--config", nargs="+", default=[], metavar="KEY=VALUE", help="any key of config.yaml"
    )


def list_overrides(args: argparse.Namespace) -> list[str]:
    """Return the words of `add_config_arguments` as Snakemake's `--config` has them: `scale=small`, `papers=[lrf]`."""
    scale = [f"scale={args.scale}"] if args.scale is not None else []
    return [*args.config, *scale, *([f"papers=[{','.join(args.papers)}]"] if args.papers else [])]


def load_call_config(args: argparse.Namespace) -> Config:
    """Read config.yaml with the changes of one call."""
    return load_config(
        read_yaml_mapping(Path("config.yaml")) | read_overrides(list_overrides(args))
    )


def read_overrides(overrides: list[str]) -> dict[str, Any]:
    """Parse Snakemake's `--config`, `key=value` with values in YAML."""
    pairs = (override.partition("=") for override in overrides)
    return {key: parse_yaml(value.encode(), f"--config {key}") for key, _, value in pairs}
