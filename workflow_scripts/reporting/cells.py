"""Cells of tables: the published number beside the scores of our seeds, with what may be said about the two."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from workflow_scripts.catalogue import Catalogue, Run, worst_protocol
from workflow_scripts.errors import UserError
from workflow_scripts.evaluation.scores import read_scores
from workflow_scripts.reporting.spec import SELECTORS, TableDisplay
from workflow_scripts.reporting.statistics import Summary, summarise

PUBLISHED_COLUMNS = (
    "display",
    "row",
    "column",
    "metric",
    "printed",
    "value",
    "unit",
    "std",
    "n_seeds",
    "source",
    "note",
)
MEASURED, NOT_RUN, PUBLISHED_ONLY = "measured", "not run", "published only"
Key = tuple[str, str, str, str]  # display, row, column, metric


@dataclass(frozen=True)
class Published:
    """A number of the paper: `printed` verbatim; `value` is None where it prints no number but a bound or words."""

    printed: str
    value: float | None
    std: float | None
    n_seeds: int | None
    unit: str
    source: str
    note: str


@dataclass(frozen=True)
class Cell:
    """One cell of a table. `seeds` (seed -> value) and `protocol` are filled for measured cells only."""

    paper: str
    display: str
    row: str
    column: str
    metric: str
    unit: str
    decimals: int
    status: str
    note: str = ""
    published: Published | None = None
    selection: dict[str, Any] = field(default_factory=dict)
    seeds: dict[int, float] = field(default_factory=dict)
    protocol: str = ""

    @property
    def key(self) -> str:
        return "/".join((self.display, self.row, self.column, self.metric))

    @cached_property
    def summary(self) -> Summary | None:
        """Mean, deviation and interval over seeds; None unless measured."""
        return summarise(list(self.seeds.values())) if self.seeds else None

    @property
    def difference(self) -> float | None:
        """Reproduced less published. Only numbers of the paper's own protocol may be compared so."""
        if self.protocol != "paper" or self.published is None or self.published.value is None:
            return None
        return self.summary.mean - self.published.value


@dataclass(frozen=True)
class Evidence:
    """What the cells of a paper are made from."""

    paper: str
    scale: str
    published: dict[Key, Published]
    scores: dict[tuple[str, str, str], list[dict]]  # rows of scores.csv by task, method and variant, of runs asked for
    analyses: dict[str, list[dict]]  # rows of scores.csv by name of the analysis


def read_published(path: Path) -> dict[Key, Published]:
    """Read published.csv. Raises UserError naming file and line for a wrong header, line, number or repeated cell."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; restore it from the repository") from error
    found: dict[Key, Published] = {}
    reader = csv.DictReader(lines)
    if tuple(reader.fieldnames or ()) != PUBLISHED_COLUMNS:
        raise UserError(f"{path}:1: the columns must be {','.join(PUBLISHED_COLUMNS)}")
    for row in reader:
        if None in row or None in row.values():
            raise UserError(f"{path}:{reader.line_num}: not {len(PUBLISHED_COLUMNS)} columns; quote texts with commas")
        key = (row["display"], row["row"], row["column"], row["metric"])
        try:
            value, std = (float(row[name]) if row[name] else None for name in ("value", "std"))
            n_seeds = int(row["n_seeds"]) if row["n_seeds"] else None
        except ValueError as error:
            raise UserError(
                f"{path}:{reader.line_num}: {error}; value, std and n_seeds are numbers or empty"
            ) from error
        if key in found:
            raise UserError(f"{path}:{reader.line_num}: the cell {'/'.join(key)} stands here a second time")
        found[key] = Published(row["printed"], value, std, n_seeds, row["unit"], row["source"], row["note"])
    return found


def make_cells(name: str, display: TableDisplay, evidence: Evidence) -> list[Cell]:
    """The cells of a table, row by row; those with neither a published number nor anything to measure are left out.

    Raises UserError where a cell selects two scores of one seed, or none of a run that has been made.
    """
    cells = []
    for row in display.rows:
        for column in display.columns:
            spec = column.model_dump(exclude_unset=True) | row.model_dump(exclude_unset=True)
            cell = _cell(name, spec, evidence)
            if cell.published or cell.status != PUBLISHED_ONLY:
                cells.append(cell)
    return cells


def _cell(name: str, spec: dict[str, Any], evidence: Evidence) -> Cell:
    """The cell of `spec`, the union of a row and a column of the display called `name`."""
    key = (name, spec["row"], spec["column"], spec["metric"])
    task, method, variant = spec.get("task"), spec.get("method"), spec.get("variant")
    variant = variant.get(task) if isinstance(variant, dict) else variant
    cell = Cell(
        evidence.paper,
        *key,
        spec["unit"],
        spec.get("decimals", 2),
        PUBLISHED_ONLY,
        published=evidence.published.get(key),
    )
    if method is None or variant is None:
        return cell
    run = {"task": task, "method": method, "variant": variant}
    selection = run | {name: spec[name] for name in ("metric", *SELECTORS) if name in spec}
    analysis = spec.get("analysis")
    rows = evidence.analyses.get(analysis, []) if analysis else evidence.scores.get(tuple(run.values()), [])
    rows = [row for row in rows if all(row[name] == value for name, value in run.items())]
    chosen = [row for row in rows if all(row[name] == value for name, value in selection.items())]
    if not chosen:
        if rows and not analysis:
            wanted = ", ".join(f"{name} {value}" for name, value in selection.items())
            raise UserError(f"papers/{evidence.paper}/displays.yaml: cell {cell.key}: no score has {wanted}")
        # An analysis may have looked at the run and found nothing of the kind: a model without codes has none to count.
        note = "does not apply" if rows else f"not run at {evidence.scale}"
        return replace(cell, status=NOT_RUN, note=note, selection=selection)
    seeds = {row["seed"]: row["value"] for row in chosen}
    if len(seeds) < len(chosen):
        free = ", ".join(name for name in SELECTORS if name not in selection)
        raise UserError(
            f"papers/{evidence.paper}/displays.yaml: cell {cell.key}: two scores of one seed; fix also {free}"
        )
    return replace(
        cell,
        status=MEASURED,
        selection=selection,
        seeds=dict(sorted(seeds.items())),
        protocol=worst_protocol(*(row["protocol"] for row in chosen)),
    )


def read_evidence(
    catalogue: Catalogue, paper: str, scale: str, runs: Iterable[Run], analyses: Iterable[str], results: Path
) -> Evidence:
    """Read published.csv of a paper, and scores.csv of runs and of analyses under `results`, the folder of the scale.

    Raises UserError when the scores of one of `runs` are missing.
    """
    scores: dict[tuple[str, str, str], list[dict]] = {}
    for run in runs:
        found = scores.setdefault((run.task, run.method, run.variant), [])
        found += read_scores(results / "runs" / str(run) / "eval/scores.csv")
    files = {name: results / "analyses" / paper / name / "scores.csv" for name in analyses}
    return Evidence(
        paper,
        scale,
        read_published(catalogue.root / "papers" / paper / "published.csv"),
        scores,
        {name: read_scores(file) for name, file in files.items()},
    )
