"""Layout and wording of tables, for all formats."""

from collections.abc import Iterable, Sequence
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

WITHOUT_INTERVAL = 2  # seeds
CORRELATIONS = ("pearson", "spearman", "matthews")  # metrics, of evaluation.sentence_metrics
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
    """The texts of a cell, empty where it has none. `marker`: result of the test over examples."""

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
        """Whether the published number has another protocol than ours, so that none is better."""
        return self.is_measured and self.protocol != "paper"


@dataclass(frozen=True)
class Line:
    """A row of a table. `heading`: the group that starts with it, empty for its other rows."""

    heading: str
    label: str
    cells: list[CellText]


@dataclass(frozen=True)
class Grid:
    """Rows and heads of a table.

    published: whether each head has a published number, and so a column for it.
    """

    heads: list[str]
    published: list[bool]
    lines: list[Line]


def build_grid(display: TableDisplay, cells: list[Cell], tests: dict[str, ExampleTest]) -> Grid:
    """Arrange rows downwards and columns across, or transposed, without rows that have no cell."""
    rows = [(row.group or "", row.row) for row in display.rows]
    columns = [(column.group or "", column.column) for column in display.columns]
    texts = {(cell.row, cell.column): _make_texts(cell, tests.get(cell.key)) for cell in cells}
    if display.transposed:
        rows, columns = columns, rows
        texts = {(column, row): text for (row, column), text in texts.items()}
    heads = [head for _, head in columns]
    lines = []
    last_group = ""
    for group, label in rows:
        if not any((label, head) in texts for head in heads):
            continue
        of_row = [texts.get((label, head), CellText()) for head in heads]
        heading = ""
        if group != last_group:
            heading = group
        lines.append(Line(heading, label, of_row))
        last_group = group
    published = []
    for i in range(len(heads)):
        published.append(any(line.cells[i].published for line in lines))
    return Grid(heads, published, lines)


def _make_texts(cell: Cell, test: ExampleTest | None) -> CellText:
    """Make the texts of a cell; `test`: that of its difference over examples, if there is one."""
    source = ""
    if cell.published:
        source = ". ".join(filter(None, (cell.published.source, cell.published.note)))
    difference = ""
    if cell.difference is not None:
        difference = format_number(cell.difference, cell.decimals, signed=True)
    return CellText(
        status=cell.status,
        protocol=cell.protocol,
        published=format_published(cell),
        source=source,
        ours=format_reproduced(cell),
        marker=MARKERS[test.outcome] if test else "",
        seeds=format_seed_interval(cell),
        difference=difference,
    )


def format_seed_interval(cell: Cell) -> str:
    """Format `5 seeds, 81.0 to 84.2`, `2 seeds` or `1 seed`; empty unless measured."""
    summary = cell.summary
    if cell.status != MEASURED or summary is None:
        return ""
    if summary.low is None or summary.high is None:
        return "1 seed"
    if summary.n == WITHOUT_INTERVAL:
        return f"{summary.n} seeds"
    low = format_number(summary.low, cell.decimals)
    high = format_number(summary.high, cell.decimals)
    return f"{summary.n} seeds, {low} to {high}"


def format_number(value: float, decimals: int, signed: bool = False) -> str:
    """Format with fixed decimals, a true minus sign, and no negative zero."""
    sign = "+" if signed else ""
    rounded = round(value, decimals) + 0.0
    return f"{rounded:{sign}.{decimals}f}".replace("-", "−")


def format_published(cell: Cell) -> str:
    """Format the number as printed, with spaces around ±, and `~` in words; empty without one."""
    if not cell.published:
        return ""
    return cell.published.printed.replace("±", " ± ").replace("~", "about ")


def format_reproduced(cell: Cell) -> str:
    """Format mean ± standard deviation, the computed number, or the reason why there is none."""
    if cell.status in (MEASURED, COMPUTED):
        mean = format_number(cell.mean, cell.decimals)
        if cell.summary is None or cell.summary.std is None:
            return mean
        return f"{mean} ± {format_number(cell.summary.std, cell.decimals)}"
    if cell.status in (NOT_RUN, UNDEFINED, WITHHELD):
        return cell.note
    return ""


def use_non_breaking_spaces(text: str) -> str:
    """Use non-breaking spaces, except after commas."""
    return text.replace(" ", "\u00a0").replace(",\u00a0", ", ")


def describe_units(cells: list[Cell]) -> str:
    """Format `Numbers in percent.`, or the metrics of each unit; and what a correlation is in."""
    measures: dict[str, list[str]] = {}
    units = {cell.metric: cell.unit for cell in cells}
    for metric, unit in units.items():
        measures.setdefault(unit, []).append(metric.replace("_", " "))
    if len(measures) == 1:
        text = f"Numbers in {cells[0].unit}"
    else:
        named = [f"{unit} ({', '.join(names)})" for unit, names in measures.items()]
        text = f"Units: {', '.join(named)}"
    if units.keys() & set(CORRELATIONS):
        text += "; a correlation is 100 times r"
    return f"{text}."


def describe_blocks(measured: list[Cell]) -> str:
    """Name the blocks of the columns under an intervention; empty for fewer than two columns.

    In small models several depths are one block.
    """
    blocks: dict[str, set[int]] = {}
    for cell in measured:
        if cell.block is not None:
            blocks.setdefault(cell.column, set()).add(cell.block)
    if len(blocks) < 2:
        return ""
    texts = {}
    for column, blocks_of_column in blocks.items():
        texts[column] = " or ".join(map(str, sorted(blocks_of_column)))
    parts = [f"{column}: {text}" for column, text in texts.items()]
    note = f"Counted from 0, the blocks are: {'; '.join(parts)}."
    if len(set(texts.values())) < len(texts):
        note += " Columns of one task with the same block are the same numbers."
    return note


def explain_table(
    display: TableDisplay,
    cells: list[Cell],
    tests: dict[str, ExampleTest],
    scale: str,
    data: Sequence[str] = (),
) -> list[str]:
    """Return the sentences below a table; `data` are those on data sets and precision."""
    measured = [cell for cell in cells if cell.status == MEASURED]
    sentences = []
    if display.note:
        sentences.append(display.note.strip())
    sentences.append(describe_units(cells))
    if measured:
        seeds = f"mean ± standard deviation over seeds (n − 1), {SEED_INTERVAL}"
        sentences.append(f"Ours, always in bold, at scale {scale}: {seeds}.")
    elif not any(cell.status in (COMPUTED, WITHHELD) for cell in cells):
        state = "finished" if any(cell.cause for cell in cells) else "run"
        nothing = f"Nothing of this table is {state} at scale {scale}"
        if any(cell.published for cell in cells):
            nothing += ": it holds the published numbers only"
        sentences.append(f"{nothing}.")
    if any(len(cell.seeds) == WITHOUT_INTERVAL for cell in measured):
        sentences.append(
            f"Of {WITHOUT_INTERVAL} seeds no interval is shown: it is "
            "nine standard deviations wide on either side. The CSV has it."
        )
    if any(cell.status == WITHHELD for cell in cells):
        sentences.append("Planned seeds are not shown before the last one is done.")
    sentences += describe_causes(cells)
    blocks = describe_blocks(measured)
    if blocks:
        sentences.append(blocks)
    protocols = {cell.protocol for cell in measured}
    if not protocols:
        protocols = {cell.protocol for cell in cells} - {"paper"}
    sentences += [note for name, note in PROTOCOL_NOTES.items() if name in protocols]
    sentences += data
    if tests:
        sentences += describe_tests(display.baseline, list(tests.values()))
    return sentences


def describe_causes(cells: Iterable[Cell]) -> list[str]:
    """Say why runs are not run although they were asked for: the cause, and the rows of each."""
    rows: dict[str, dict[str, None]] = {}  # cause -> rows, without repeats
    for cell in cells:
        if cell.cause:
            rows.setdefault(cell.cause.sentence, {})[cell.row] = None
    return [f"Not run, because {cause}: {', '.join(labels)}." for cause, labels in rows.items()]


def describe_tests(baseline: str | None, tests: list[ExampleTest]) -> list[str]:
    """Return what the marks of a table say, and how its differences over seeds are tested."""
    examples = sorted({test.examples for test in tests})
    span = f"{examples[0]:,}"
    if len(examples) > 1:
        span += f" to {examples[-1]:,}"
    marks = (
        f"† better, ‡ worse than {baseline} by the test of Jiang, Zhou and Bansal (2024; paired "
        f"bootstrap over {span} examples, {BOOTSTRAP_RESAMPLES:,} draws, one-sided, α = {ALPHA}), "
        "which takes the trained models as given, and over seeds too: the 95% interval of the "
        "difference does not hold 0."
    )
    return [marks, *sorted({f"Over seeds: {test.over_seeds.method}." for test in tests})]
