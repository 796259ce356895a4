"""Entries of displays.yaml (tables, figures, analyses) and the runs that they read. Imports nothing heavy."""

import argparse
from pathlib import Path

from workflow_scripts.catalogue import Catalogue, Paper, Run, load_config, parse_run, requested_runs
from workflow_scripts.errors import UserError
from workflow_scripts.schema import nearest


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of every command that makes something of a paper from its runs; read by `asked_runs`."""
    parser.add_argument("--paper", required=True, help="folder of papers/")
    parser.add_argument("--scale", required=True)
    parser.add_argument("--runs", nargs="*", metavar="ID", help="instead of the runs that config.yaml asks for")
    parser.add_argument("--results", type=Path, required=True, metavar="DIR", help="results/<scale>")


def find_entry(catalogue: Catalogue, paper: str, kind: str, name: str) -> dict:
    """The "table", "figure" or "analysis" called `name`. Raises UserError with the nearest known name."""
    found = find_paper(catalogue, paper)
    if kind == "analysis":
        among = found.analyses
    else:
        among = {key: display for key, display in found.displays.items() if display["kind"] == kind}
    if name not in among:
        raise UserError(f"papers/{paper}/displays.yaml: no {kind} '{name}'; {nearest(name, among)}")
    return among[name]


def find_paper(catalogue: Catalogue, name: str) -> Paper:
    """What papers/<name>/ says. Raises UserError with the nearest known name."""
    if name not in catalogue.papers:
        raise UserError(f"no paper '{name}' in papers/; {nearest(name, catalogue.papers)}")
    return catalogue.papers[name]


def asked_runs(catalogue: Catalogue, paper: str, scale: str, run_ids: list[str] | None) -> dict[Run, list[str]]:
    """The runs of `run_ids`, or else those that the paper asks for at a scale under config.yaml.

    Raises UserError for a scale or a run that the catalogue does not know.
    """
    if scale not in catalogue.scales:
        raise UserError(f"no scale '{scale}' in catalogue/scales.yaml; {nearest(scale, catalogue.scales)}")
    if run_ids is not None:
        return {parse_run(catalogue, run_id): [paper] for run_id in run_ids}
    config = load_config(root=catalogue.root).model_copy(update={"scale": scale, "papers": [paper]})
    return requested_runs(catalogue, config)


def display_selectors(display: dict) -> list[tuple[str, str, str]]:
    """(task, method, variant) of every cell of a table that is measured by a run."""
    found = []
    for row in display.get("rows", ()):
        for column in display.get("columns", ()):
            cell = column | row
            if "method" in cell and "task" in cell and "analysis" not in cell:
                variant = cell["variant"]
                variant = variant.get(cell["task"]) if isinstance(variant, dict) else variant
                if variant:
                    found.append((cell["task"], cell["method"], variant))
    return list(dict.fromkeys(found))


def display_runs(display: dict, runs: dict[Run, list[str]]) -> list[Run]:
    """The requested runs whose scores a display shows; a figure or an analysis names them under `runs`."""
    wanted = set(display_selectors(display))
    wanted |= {(run["task"], run["method"], run["variant"]) for run in display.get("runs", ())}
    return [run for run in runs if (run.task, run.method, run.variant) in wanted]
