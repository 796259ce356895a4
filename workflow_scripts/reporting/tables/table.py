"""Make a table of published next to reproduced numbers, as CSV, Markdown, LaTeX and HTML."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace

from workflow_scripts.common.files import format_csv
from workflow_scripts.common.result_folders import RESULTS
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.displays import find_table
from workflow_scripts.evaluation.protocol import PROTOCOLS
from workflow_scripts.reporting.evidence.evidence import read_evidence
from workflow_scripts.reporting.evidence.paper_results import PaperResults
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

Tests = dict[str, ExampleTest]  # over examples, by cell


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """A row of a table's CSV, with its columns in their order: a cell. Absent numbers are None."""

    row: str
    column: str
    metric: str
    unit: str
    published: float | None = None
    published_std: float | None = None
    reproduced: float | None = None
    std: float | None = None
    n_seeds: int | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    difference: float | None = None
    protocol: str
    status: str
    note: str


TABLE_COLUMNS = tuple(column.name for column in fields(TableRow))


@dataclass(frozen=True)
class RenderedTable:
    """A table: rows of its CSV, tests, and the text of each file by its ending."""

    rows: list[TableRow]
    tests: Tests
    files: dict[str, str]


def make_table(
    results: PaperResults, name: str, runs: list[Run], tests: Tests | None = None
) -> RenderedTable:
    """Make a table of the paper, of `runs`.

    Without earlier `tests` these are made from the runs' predictions.
    """
    catalogue = results.catalogue
    paper = results.paper
    scale = results.scale
    display = find_table(catalogue, paper, name)
    evidence = read_evidence(results, runs, [display])
    cells = make_cells(name, display, evidence)
    if tests is None:
        tests = {}
        if display.baseline:
            tests = compare_with(display.baseline, cells, results.folder)
    measured = [cell for cell in cells if cell.status == MEASURED]
    trained = summarise_trainings(results, list_measured_runs(measured))
    data = [*describe_reduced_data(results, cells), *describe_precision(trained)]
    notes = explain_table(display, cells, tests, scale, data)
    grid = build_grid(display, cells, tests)
    scale_and_protocol = f"scale {scale}"
    protocols = {cell.protocol for cell in measured}
    if protocols:
        names = [protocol for protocol in PROTOCOLS if protocol in protocols]
        scale_and_protocol += f", protocol {' and '.join(names)}"
    title = f"{display.source}: {display.title} ({scale_and_protocol})"
    paper_title = catalogue.papers[paper].experiments.title
    subtitle = f"{paper_title}, {display.source}, {scale_and_protocol}"
    command = f"./reproduce {RESULTS.scale(scale).table(paper, name).html}"
    rows = [make_table_row(cell, tests.get(cell.key), display.baseline) for cell in cells]
    files = {
        "csv": format_table_rows(rows),
        "md": format_markdown_table(title, grid, notes),
        "tex": format_latex_table(f"{paper}/{name}", title, grid, notes),
        "html": format_html_page(display.title, subtitle, grid, notes, trained, command),
    }
    return RenderedTable(rows, tests, files)


def list_measured_runs(measured: Iterable[Cell]) -> Iterator[Run]:
    """Yield the runs whose scores cells show."""
    for cell in measured:
        for seed in cell.seeds:
            yield cell.variant_key.make_run(seed)


def make_table_row(cell: Cell, test: ExampleTest | None, baseline: str | None) -> TableRow:
    """Return the row of a cell."""
    notes = [cell.note]
    if cell.block is not None:
        notes.append(f"block {cell.block}")
    if test:
        notes.append(describe_test(test, baseline))
    row = TableRow(
        row=cell.row,
        column=cell.column,
        metric=cell.metric,
        unit=cell.unit,
        difference=cell.difference,
        protocol=cell.protocol,
        status=cell.status,
        note="",
    )
    if cell.published:
        notes.append(cell.published.note)
        row = replace(row, published=cell.published.value, published_std=cell.published.std)
    if cell.status in (MEASURED, COMPUTED):
        row = replace(row, reproduced=cell.mean)
    summary = cell.summary
    if cell.status == MEASURED and summary is not None:
        row = replace(row, std=summary.std, ci_low=summary.low, ci_high=summary.high)
        row = replace(row, n_seeds=len(cell.seeds))
    return replace(row, note="; ".join(filter(None, notes)))


def describe_test(test: ExampleTest, baseline: str | None) -> str:
    """Return the result of the bootstrap over examples, and the difference over seeds."""
    outcome = f"not different from {baseline}"
    if test.outcome:
        outcome = f"{test.outcome} than {baseline}"
    p_value = test.p_better
    if test.over_examples == "worse":
        p_value = test.p_worse
    effect = test.over_seeds
    limits = "one seed has no interval"
    if effect.n > 1:
        limits = f"95% interval {effect.low:.4f} to {effect.high:.4f}"
    bootstrap = f"bootstrap over {test.examples} examples, one-sided p {p_value:.4f}"
    return f"{outcome}: {bootstrap}; difference over seeds {effect.value:.4f}, {limits}"


def format_table_rows(rows: Iterable[TableRow]) -> str:
    """Return the CSV of a table; numbers have at most six decimals, missing ones are empty."""
    lines = []
    for row in rows:
        lines.append({name: _format_value(getattr(row, name)) for name in TABLE_COLUMNS})
    return format_csv(TABLE_COLUMNS, lines)


def _format_value(value: str | float | None) -> str:
    """Format a value of a column: a number without ending zeros, empty for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    return str(value)
