"""Entries of displays.yaml (tables, figures, analyses) and the runs that they read."""

import argparse
from collections.abc import Container, Iterable
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.catalogue import Catalogue, Paper, Run, VariantKey, find_scale, parse_run
from workflow_scripts.config.display_schema import (
    list_cell_variants,
    list_claim_cells,
    list_display_analyses,
    list_table_cells,
)
from workflow_scripts.config.loading import load_config
from workflow_scripts.config.paths import evaluation_folder, intervention_folder
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import resolve_data


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of commands that read the runs of a paper. `select_paper_runs` evaluates them."""
    parser.add_argument("--paper", required=True, help="folder of papers/")
    parser.add_argument("--scale", required=True)
    parser.add_argument("--runs", nargs="*", metavar="ID", help="instead of the runs that config.yaml asks for")
    parser.add_argument("--results", type=Path, required=True, metavar="DIR", help="results/<scale>")


def find_entry(catalogue: Catalogue, paper: str, kind: str, name: str) -> dict:
    """Return the "table", "figure" or "analysis" called `name`. Raises UserError with the nearest known name."""
    found = find_paper(catalogue, paper)
    if kind == "analysis":
        among = found.analyses
    else:
        among = {key: display for key, display in found.displays.items() if display["kind"] == kind}
    if name not in among:
        raise UserError(f"papers/{paper}/displays.yaml: no {kind} '{name}'; {suggest_name(name, among)}")
    return among[name]


def find_paper(catalogue: Catalogue, name: str) -> Paper:
    """Return the content of papers/<name>/. Raises UserError with the nearest known name."""
    if name not in catalogue.papers:
        raise UserError(f"no paper '{name}' in papers/; {suggest_name(name, catalogue.papers)}")
    return catalogue.papers[name]


def select_paper_runs(
    catalogue: Catalogue, paper: str, scale: str, run_ids: list[str] | None, config: Config | None = None
) -> dict[Run, list[str]]:
    """Return the runs of `run_ids`; if None, those that the paper requests at a scale with `config` or config.yaml.

    Raises UserError for a paper, a scale or a run that is not there.
    """
    find_paper(catalogue, paper)
    find_scale(catalogue, scale)
    if run_ids is not None:
        return {parse_run(catalogue, run_id): [paper] for run_id in run_ids}
    config = (config or load_config(root=catalogue.root)).model_copy(update={"scale": scale, "papers": [paper]})
    return list_requested_runs(catalogue, config)


def find_intervened_variants(displays: Iterable[dict]) -> set[VariantKey]:
    """Return the variants whose scores under an intervention are displayed."""
    found = {variant for display in displays for variant, cell in list_run_cells(display) if cell.get("intervention")}
    entries = [run for display in displays for run in display.get("runs", ()) if run.get("intervention")]
    return found | {variant for run in entries for variant in list_named_variants(run)}


def list_named_variants(entry: dict) -> list[VariantKey]:
    """Return the variants that an entry of `runs` names, on each of its tasks."""
    tasks = [entry["task"]] if isinstance(entry["task"], str) else entry["task"]
    return [(task, entry["method"], entry["variant"]) for task in tasks]


def select_intervened_runs(catalogue: Catalogue, paper: str, runs: Iterable[Run]) -> list[Run]:
    """Select the runs whose scores under an intervention the paper's displays or analyses read."""
    found = catalogue.papers[paper]
    variants = find_intervened_variants([*found.displays.values(), *found.analyses.values()])
    return [run for run in runs if run.unseeded in variants]


def list_run_cells(display: dict) -> list[tuple[VariantKey, dict]]:
    """Return (variant, cell) for each cell of a table that shows runs, not an analysis."""
    cells = [cell for cell in list_table_cells(display) if "analysis" not in cell]
    return [(variant, cell) for cell in cells for variant in list_cell_variants(cell)]


def select_display_runs(display: dict, runs: Iterable[Run]) -> list[Run]:
    """Select the requested runs whose scores a display shows."""
    wanted = {variant for variant, _ in list_run_cells(display)}
    wanted |= {variant for entry in display.get("runs", ()) for variant in list_named_variants(entry)}
    return [run for run in runs if run.unseeded in wanted]


def select_shown_displays(paper: Paper, runs: Iterable[Run]) -> dict[str, dict]:
    """Select the tables and figures that have something to show: one of `runs`, an analysis of one, or of no run."""
    runs = list(runs)

    def has_results(display: dict) -> bool:
        read = [paper.analyses[name] for name in list_display_analyses(display)]
        return any(select_display_runs(entry, runs) for entry in (display, *read)) or not all(
            "runs" in entry for entry in read
        )

    return {name: display for name, display in paper.displays.items() if has_results(display)}


def select_claimed_displays(paper: Paper, runs: Iterable[Run] | None = None) -> dict[str, dict]:
    """Select the displays whose cells the paper's claims compare; with `runs` those that have something to show."""
    displays = paper.displays if runs is None else select_shown_displays(paper, runs)
    names = dict.fromkeys(cell.split("/")[0] for claim in paper.claims for cell in list_claim_cells(claim))
    return {name: displays[name] for name in names if name in displays}


def list_analysis_sources(catalogue: Catalogue, entry: dict, runs: Iterable[Run], scale: str) -> list[str]:
    """Return the source files that an analysis of `runs` reads; none if all data are stand-ins."""
    real = any(resolve_data(catalogue, run.task, scale).sources for run in runs)
    return list(entry.get("sources", [])) if real else []


def score_files(run: Run, intervened: Container[VariantKey]) -> list[str]:
    """Return the score files of a run: of its evaluation, and of interventions if its variant is in `intervened`."""
    files = [f"{evaluation_folder(run)}/scores.csv"]
    return files + [f"{intervention_folder(run)}/scores.csv"] * (run.unseeded in intervened)
