"""Make a table of a paper, published next to reproduced numbers, as CSV, Markdown, LaTeX and HTML."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.files import format_csv
from workflow_scripts.config.catalogue import Catalogue, Run
from workflow_scripts.config.displays import find_table
from workflow_scripts.evaluation.protocol import PROTOCOLS
from workflow_scripts.reporting.evidence.evidence import read_evidence
from workflow_scripts.reporting.tables.cells import COMPUTED, MEASURED, Cell, make_cells
from workflow_scripts.reporting.tables.formats import format_latex_table, format_markdown_table
from workflow_scripts.reporting.tables.html_page import format_html_page
from workflow_scripts.reporting.tables.item_bootstrap import ExampleTest, compare_with
from workflow_scripts.reporting.tables.layout import build_grid, explain_table
from workflow_scripts.reporting.tables.trainings import (
    describe_precision,
    describe_reduced_data,
    summarise_trainings,
)

TABLE_COLUMNS = (
    "row", "column", "metric", "unit", "published", "published_std", "reproduced", "std", "n_seeds", "ci_low",
    "ci_high", "difference", "protocol", "status", "note",
)  # fmt: skip


Tests = dict[str, ExampleTest]  # over examples, by cell


@dataclass(frozen=True)
class RenderedTable:
    """A table: lines of its CSV, tests, and the text of each file by its ending."""

    rows: list[dict[str, str]]
    tests: Tests
    files: dict[str, str]


def make_table(
    catalogue: Catalogue,
    paper: str,
    name: str,
    scale: str,
    runs: list[Run],
    results: Path,
    tests: Tests | None = None,
) -> RenderedTable:
    """Make the table of `runs` from `results`; without earlier `tests` from the runs' predictions, too."""
    display = find_table(catalogue, paper, name)
    evidence = read_evidence(catalogue, paper, scale, runs, [display], results)
    cells = make_cells(name, display, evidence)
    if tests is None:
        tests = compare_with(display.baseline, cells, results) if display.baseline else {}
    measured = [cell for cell in cells if cell.status == MEASURED]
    trained = summarise_trainings(catalogue, list_measured_runs(measured), scale, results)
    data = [*describe_reduced_data(catalogue, cells, results), *describe_precision(trained)]
    notes = explain_table(display, cells, tests, scale, data)
    grid = build_grid(display, cells, tests)
    setting = f"scale {scale}"
    if protocols := {cell.protocol for cell in measured}:
        setting += f", protocol {' and '.join(name for name in PROTOCOLS if name in protocols)}"
    title = f"{display.source}: {display.title} ({setting})"
    subtitle = f"{catalogue.papers[paper].experiments.title}, {display.source}, {setting}"
    command = f"./reproduce results/{scale}/tables/{paper}/{name}.html"
    rows = [make_table_row(cell, tests.get(cell.key), display.baseline) for cell in cells]
    files = {
        "csv": format_csv(TABLE_COLUMNS, rows),
        "md": format_markdown_table(title, grid, notes),
        "tex": format_latex_table(title, grid, notes),
        "html": format_html_page(display.title, subtitle, grid, notes, trained, command),
    }
    return RenderedTable(rows, tests, files)


def list_measured_runs(measured: Iterable[Cell]) -> Iterator[Run]:
    """Yield the runs whose scores cells show."""
    for cell in measured:
        variant = (cell.selection["task"], cell.selection["method"], cell.selection["variant"])
        yield from (Run(*variant, seed) for seed in cell.seeds)


def make_table_row(cell: Cell, test: ExampleTest | None, baseline: str | None) -> dict[str, str]:
    """Return one line of the table's CSV; numbers have six decimals, missing ones are empty."""
    notes = [cell.note, "" if cell.block is None else f"block {cell.block}"]
    if test:
        outcome = (
            f"{test.outcome or 'not different from'}{' than' if test.outcome else ''} {baseline}"
        )
        p_value = test.p_worse if test.over_examples == "worse" else test.p_better
        effect = test.over_seeds
        limits = (
            f"95% interval {effect.low:.4f} to {effect.high:.4f}"
            if effect.n > 1
            else "one seed has no interval"
        )
        notes.append(
            f"{outcome}: bootstrap over {test.examples} examples, one-sided p {p_value:.4f}; difference over seeds "
            f"{effect.value:.4f}, {limits}"
        )
    values = {"difference": cell.difference}
    if cell.published:
        notes.append(cell.published.note)
        values |= {"published": cell.published.value, "published_std": cell.published.std}
    if cell.status == MEASURED:
        values |= {
            "std": cell.summary.std,
            "ci_low": cell.summary.low,
            "ci_high": cell.summary.high,
        }
    if cell.status in (MEASURED, COMPUTED):
        values["reproduced"] = cell.mean
    row = {
        name: getattr(cell, name)
        for name in ("row", "column", "metric", "unit", "protocol", "status")
    }
    row |= {
        name: f"{value:.6f}".rstrip("0").rstrip(".")
        for name, value in values.items()
        if value is not None
    }
    row |= {
        "n_seeds": str(len(cell.seeds)) if cell.status == MEASURED else "",
        "note": "; ".join(filter(None, notes)),
    }
    return {name: row.get(name, "") for name in TABLE_COLUMNS}
