"""Layout and wording of tables, for all formats."""

from collections.abc import Sequence
from dataclasses import dataclass

from workflow_scripts.config.display_schema import TableDisplay
from workflow_scripts.evaluation.statistics import BOOTSTRAP_RESAMPLES, SEED_INTERVAL
from workflow_scripts.reporting.tables.cells import (
    COMPUTED,
    MEASURED,
    NOT_RUN,
    UNDEFINED,
    WITHHELD,
    Cell,
)
from workflow_scripts.reporting.tables.item_bootstrap import ALPHA, ExampleTest

MARKERS = {"better": "†", "worse": "‡", "": ""}
PROTOCOL_NOTES = {
    "paper": "Protocol paper: the paper's own data, models and schedules. "
    "Signed numbers are ours less the published one.",
    "reduced": "Protocol reduced: smaller models, data or schedules than the paper's. "
    "Published numbers are shown next to them, without a difference.",
    "stand_in": "Protocol stand_in: generated data. These numbers only show that every step works.",
}


@dataclass(frozen=True)
class CellText:
    """The texts of a cell, empty where it has none. `marker` is the result of the test over examples."""

    status: str = ""
    protocol: str = ""
    published: str = ""
    source: str = ""
    ours: str = ""
    marker: str = ""
    seeds: str = ""
    difference: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether the cell has scores of runs."""
        return self.status == MEASURED

    @property
    def is_grey(self) -> bool:
        """Whether the published number was made by another protocol than ours, so that no difference is shown."""
        return self.is_measured and self.protocol != "paper"


@dataclass(frozen=True)
class Line:
    """A row of a table. `heading` is the group that starts with it, empty for the other rows of a group."""

    heading: str
    label: str
    cells: list[CellText]


@dataclass(frozen=True)
class Grid:
    """Rows and heads of a table. `published[i]` says whether head i has a published number, and so a column for it."""

    heads: list[str]
    published: list[bool]
    lines: list[Line]


def build_grid(display: TableDisplay, cells: list[Cell], tests: dict[str, ExampleTest]) -> Grid:
    """Arrange rows downwards and columns across, or transposed. Rows without any cell are left out."""
    rows = [(row.group or "", row.row) for row in display.rows]
    columns = [(column.group or "", column.column) for column in display.columns]
    found = {(cell.row, cell.column): _make_texts(cell, tests.get(cell.key)) for cell in cells}
    if display.transposed:
        rows, columns = columns, rows
        found = {(column, row): texts for (row, column), texts in found.items()}
    heads, lines, last = [head for _, head in columns], [], ""
    for group, label in rows:
        if any((label, head) in found for head in heads):
            texts = [found.get((label, head), CellText()) for head in heads]
            lines.append(Line(group if group != last else "", label, texts))
            last = group
    return Grid(
        heads, [any(line.cells[i].published for line in lines) for i in range(len(heads))], lines
    )


def _make_texts(cell: Cell, test: ExampleTest | None) -> CellText:
    seeds, summary = "", cell.summary
    if cell.status == MEASURED:
        ends = [
            format_number(end, cell.decimals)
            for end in (summary.low, summary.high)
            if end is not None
        ]
        seeds = f"{summary.n} seeds, {' to '.join(ends)}" if ends else "1 seed"
    source = (
        ". ".join(filter(None, (cell.published.source, cell.published.note)))
        if cell.published
        else ""
    )
    marker = MARKERS[test.outcome] if test else ""
    difference = (
        ""
        if cell.difference is None
        else format_number(cell.difference, cell.decimals, signed=True)
    )
    texts = (format_published(cell), source, format_reproduced(cell), marker, seeds, difference)
    return CellText(cell.status, cell.protocol, *texts)


def format_number(value: float, decimals: int, signed: bool = False) -> str:
    """Format with fixed decimals, a true minus sign, and no negative zero."""
    return f"{round(value, decimals) + 0.0:{'+' if signed else ''}.{decimals}f}".replace("-", "−")


def format_published(cell: Cell) -> str:
    """Format the number as printed, with spaces around ±, and with TeX replaced by words; empty without one."""
    printed = cell.published.printed if cell.published else ""
    return printed.replace("±", " ± ").replace("\\sim", "about").replace("\\%", "%")


def format_reproduced(cell: Cell) -> str:
    """Format mean ± standard deviation, the computed number, or the reason why there is none."""
    if cell.status == MEASURED:
        deviation = (
            f" ± {format_number(cell.summary.std, cell.decimals)}"
            if cell.summary.std is not None
            else ""
        )
        return format_number(cell.summary.mean, cell.decimals) + deviation
    if cell.status == COMPUTED:
        return format_number(cell.computed, cell.decimals)
    return cell.note if cell.status in (NOT_RUN, UNDEFINED, WITHHELD) else ""


def use_non_breaking_spaces(text: str) -> str:
    """Use non-breaking spaces, except after commas."""
    return text.replace(" ", "\u00a0").replace(",\u00a0", ", ")


def describe_units(cells: list[Cell]) -> str:
    """Format `Numbers in percent.`, or the metrics of each unit."""
    measures: dict[str, list[str]] = {}
    for metric, unit in {cell.metric: cell.unit for cell in cells}.items():
        measures.setdefault(unit, []).append(metric.replace("_", " "))
    if len(measures) == 1:
        return f"Numbers in {cells[0].unit}."
    named = [f"{unit} ({', '.join(names)})" for unit, names in measures.items()]
    return f"Units: {', '.join(named)}."


def describe_blocks(measured: list[Cell]) -> str:
    """Name the blocks of the columns under an intervention: in small models several depths are one block."""
    blocks: dict[str, set[int]] = {}
    for cell in measured:
        if cell.block is not None:
            blocks.setdefault(cell.column, set()).add(cell.block)
    if len(blocks) < 2:
        return ""
    said = {column: " or ".join(map(str, sorted(found))) for column, found in blocks.items()}
    note = f"Counted from 0, the blocks are: {'; '.join(f'{column}: {text}' for column, text in said.items())}."
    alike = len(set(said.values())) < len(said)
    return (
        f"{note} Columns of one task with the same block are the same numbers." if alike else note
    )


def explain_table(
    display: TableDisplay,
    cells: list[Cell],
    tests: dict[str, ExampleTest],
    scale: str,
    data: Sequence[str] = (),
) -> list[str]:
    """Return the sentences below a table; `data` are those on data sets and precision."""
    measured = [cell for cell in cells if cell.status == MEASURED]
    found = (
        [display.note.strip(), describe_units(cells)] if display.note else [describe_units(cells)]
    )
    if measured:
        found.append(
            f"Ours, at scale {scale}: mean ± standard deviation over seeds (n − 1), {SEED_INTERVAL}."
        )
    elif not any(cell.status in (COMPUTED, WITHHELD) for cell in cells):
        rest = (
            ": it holds the published numbers only" if any(cell.published for cell in cells) else ""
        )
        found.append(f"Nothing of this table is run at scale {scale}{rest}.")
    if any(cell.status == WITHHELD for cell in cells):
        found.append("Planned seeds are not shown before the last one is done.")
    if blocks := describe_blocks(measured):
        found.append(blocks)
    protocols = {cell.protocol for cell in measured} or {cell.protocol for cell in cells} - {
        "paper"
    }
    found += [*(sentence for name, sentence in PROTOCOL_NOTES.items() if name in protocols), *data]
    if tests:
        examples = sorted({test.examples for test in tests.values()})
        span = f"{examples[0]:,}" if len(examples) == 1 else f"{examples[0]:,} to {examples[-1]:,}"
        found.append(
            f"† better, ‡ worse than {display.baseline} by the test of Jiang, Zhou and Bansal (2024; paired bootstrap "
            f"over {span} examples, {BOOTSTRAP_RESAMPLES:,} draws, one-sided, α = {ALPHA}), which takes the trained "
            "models as given, and over seeds too: the 95% interval of the difference does not hold 0."
        )
        found += sorted({f"Over seeds: {test.over_seeds.method}." for test in tests.values()})
    return found
