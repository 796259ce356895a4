"""What displays.yaml names (tables, figures, analyses), and the runs and numbers that it reads."""

from collections.abc import Container, Iterable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_csv
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.common.run_names import Run, VariantKey
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.catalogue import (
    Catalogue,
    Paper,
    find_scale,
    parse_run,
)
from workflow_scripts.config.display_schema import (
    Analysis,
    Display,
    FigureDisplay,
    TableDisplay,
)
from workflow_scripts.config.loading import load_config
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import resolve_data

Model = TypeVar("Model")


def find_table(catalogue: Catalogue, paper: str, name: str) -> TableDisplay:
    """Return the table called `name`. Raises UserError with the nearest known name."""
    displays = find_paper(catalogue, paper).displays.items()
    tables = {key: display for key, display in displays if isinstance(display, TableDisplay)}
    return _find_entry(tables, paper, "table", name)


def find_figure(catalogue: Catalogue, paper: str, name: str) -> FigureDisplay:
    """Return the figure called `name`. Raises UserError with the nearest known name."""
    displays = find_paper(catalogue, paper).displays.items()
    figures = {key: display for key, display in displays if isinstance(display, FigureDisplay)}
    return _find_entry(figures, paper, "figure", name)


def find_analysis(catalogue: Catalogue, paper: str, name: str) -> Analysis:
    """Return the analysis called `name`. Raises UserError with the nearest known name."""
    return _find_entry(find_paper(catalogue, paper).analyses, paper, "analysis", name)


def _find_entry(entries: dict[str, Model], paper: str, kind: str, name: str) -> Model:
    if name not in entries:
        suggestion = suggest_name(name, entries)
        raise UserError(f"papers/{paper}/displays.yaml: no {kind} '{name}'; {suggestion}")
    return entries[name]


def find_paper(catalogue: Catalogue, name: str) -> Paper:
    """Return the content of papers/<name>/. Raises UserError with the nearest known name."""
    if name not in catalogue.papers:
        raise UserError(f"no paper '{name}' in papers/; {suggest_name(name, catalogue.papers)}")
    return catalogue.papers[name]


def suggest_full_name(catalogue: Catalogue, name: str) -> str | None:
    """Suggest `<paper>/<name>` where papers have a claim, table or figure of this name, else None.

    A list of them if several papers have one.
    """
    full_names = []
    for paper, content in catalogue.papers.items():
        if name in content.displays or name in content.claims_by_name:
            full_names.append(f"'{paper}/{name}'")
    if not full_names:
        return None
    return f"did you mean {' or '.join(full_names)}?"


def select_paper_runs(
    catalogue: Catalogue,
    paper: str,
    scale: str,
    run_ids: list[str] | None,
    config: Config | None = None,
) -> dict[Run, list[str]]:
    """Return the runs of `run_ids`; if None, those that the paper requests at a scale.

    `config`: if None, that of config.yaml. Raises UserError for a paper, a scale or a run that is
    not there.
    """
    find_paper(catalogue, paper)
    find_scale(catalogue, scale)
    if run_ids is not None:
        return {parse_run(catalogue, run_id): [paper] for run_id in run_ids}
    if config is None:
        config = load_config(root=catalogue.root)
    config_of_paper = config.model_copy(update={"scale": scale, "papers": [paper]})
    return list_requested_runs(catalogue, config_of_paper)


def find_intervened_variants(entries: Iterable[Display | Analysis]) -> set[VariantKey]:
    """Return the variants whose scores under an intervention displays or analyses read."""
    variants: set[VariantKey] = set()
    for entry in entries:
        variants |= entry.intervened_variants
    return variants


def select_intervened_runs(catalogue: Catalogue, paper: str, runs: Iterable[Run]) -> list[Run]:
    """Select the runs whose scores under an intervention the paper's displays or analyses read."""
    variants = catalogue.papers[paper].intervened_variants
    return [run for run in runs if run.variant_key in variants]


def select_display_runs(entry: Display | Analysis, runs: Iterable[Run]) -> list[Run]:
    """Select the requested runs whose scores a display shows, or that an analysis reads."""
    return [run for run in runs if run.variant_key in entry.variants]


def list_analysis_sources(
    catalogue: Catalogue,
    analysis: Analysis,
    runs: Iterable[Run],
    scale: str,
) -> list[str]:
    """Return the source files that an analysis of `runs` reads; none if all data are stand-ins."""
    if any(resolve_data(catalogue, run.task, scale).sources for run in runs):
        return list(analysis.sources)
    return []


def list_score_files(
    results: ScaleFolder, run: Run, intervened: Container[VariantKey]
) -> list[Path]:
    """List the score files of a run: of its evaluation, and of interventions.

    `intervened`: the variants whose scores under an intervention are read.
    """
    folder = results.run(run)
    files = [folder.evaluation.scores]
    if run.variant_key in intervened:
        files.append(folder.interventions.scores)
    return files


def read_caption(catalogue: Catalogue, paper: str, display: str) -> str:
    """Return the caption of a display in the report.

    It is the title of the display if papers/<paper>/captions has no file for it.
    """
    file = catalogue.root / "papers" / paper / "captions" / f"{display}.rst"
    if file.exists():
        return file.read_text(encoding="utf-8").strip()
    return catalogue.papers[paper].displays[display].title


def select_published_rows(
    catalogue: Catalogue, paper: str, displays: Iterable[str]
) -> dict[str, dict[str, str]]:
    """Return the lines of published.csv of these displays, as cell -> column -> text.

    Only the displays that show a number depend on it, so that a corrected number reruns only these.
    """
    rows = _read_published(catalogue.root / "papers" / paper / "published.csv")
    names = set(displays)
    return {cell: row for cell, row in rows.items() if cell.split("/")[0] in names}


@lru_cache
def _read_published(file: Path) -> dict[str, dict[str, str]]:
    """Read the lines of published.csv. A cell is named by their first four columns."""
    if not file.exists():
        raise UserError(f"{file} does not exist; copy the header line of another paper's")
    rows = {}
    for row in read_csv(file):
        cell = "/".join(list(row.values())[:4])
        rows[cell] = {column: row[column] for column in list(row)[4:]}
    return rows
