"""Resolve the names with which a person calls a job's command to what the job's spec file holds.

The commands of jobs read spec files alone: they must not import what reads the catalogue. So
`__main__` calls this.
"""

import argparse
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_mapping
from workflow_scripts.common.result_folders import RunFolder
from workflow_scripts.common.run_names import VariantKey
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.displays import select_paper_runs
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_candidates, resolve_data
from workflow_scripts.workflow.job_specs import (
    resolve_analysis_job_spec,
    resolve_run_job_spec,
    resolve_search_job_spec,
)


def set_job_spec(command: str, args: argparse.Namespace) -> None:
    """Set `args.job_spec` to what `--run`, `--task` or `--paper` means at `--scale`.

    Without these, it is set for a trained run that is scored, if there are no other settings.
    """
    for name in ("run", "task", "paper"):
        if getattr(args, name, None) is not None:
            if not args.scale:
                raise UserError(f"--{name} needs --scale, e.g. --scale demo")
            _resolve_names(command, args)
            return
    if command not in ("evaluate", "intervene"):
        return
    if args.spec or args.settings:
        return
    if args.run_dir:
        _resolve_trained_run(args, RunFolder(args.run_dir).manifest)


def _resolve_names(command: str, args: argparse.Namespace) -> None:
    catalogue = load_catalogue()
    if command == "prepare":
        args.job_spec = resolve_data(catalogue, args.task, args.scale)
    elif command == "candidates":
        args.job_spec = resolve_candidates(catalogue, args.task, args.scale)
    elif command == "analyse":
        if not args.analysis:
            raise UserError(
                "--paper needs --analysis, a name under `analyses` in the paper's displays.yaml"
            )
        runs = select_paper_runs(catalogue, args.paper, args.scale, args.runs)
        job_spec = resolve_analysis_job_spec(catalogue, args.paper, args.analysis, args.scale, runs)
        reads_runs = job_spec.published is None
        if args.runs and reads_runs and not job_spec.runs:
            variants = ", ".join(sorted(map(str, job_spec.entry.variants)))
            raise UserError(
                f"analysis {args.analysis} of {args.paper} reads none of --runs; it reads runs of "
                f"{variants}: name some of these, or add yours to its `runs` in displays.yaml"
            )
        args.job_spec = job_spec
    elif command == "search":
        variant = _parse_variant(args.run)
        args.job_spec = resolve_search_job_spec(catalogue, variant, args.scale, args.precision)
    else:
        precision = args.precision if command == "train" else "auto"
        args.job_spec = resolve_run_job_spec(
            catalogue, parse_run(catalogue, args.run), args.scale, precision
        )


def _parse_variant(name: str) -> VariantKey:
    """Parse the name of what `search --run` searches for."""
    try:
        return VariantKey.parse(name)
    except UserError:
        raise UserError(
            f"--run {name}: expected <task>/<method>/<variant> without a seed"
        ) from None


def _resolve_trained_run(args: argparse.Namespace, file: Path) -> None:
    """Plan the run of a run.json.

    The file says itself what was trained: only how it is scored is read of the plan.
    """
    content = read_mapping(file, "run", "scale")
    if content["scale"] is None:
        raise UserError(
            f"{args.run_dir} was trained from a spec file without a scale; pass --settings FILE"
        )
    catalogue = load_catalogue()
    args.job_spec = resolve_run_job_spec(
        catalogue, parse_run(catalogue, content["run"]), content["scale"]
    )
