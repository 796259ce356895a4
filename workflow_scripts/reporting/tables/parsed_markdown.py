"""Read a table from its Markdown, to format it again without the scores that it was made of."""

import re
from collections.abc import Collection
from dataclasses import replace

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.reporting.tables.cells import COMPUTED, MEASURED, NOT_RUN
from workflow_scripts.reporting.tables.formats import format_latex_table
from workflow_scripts.reporting.tables.layout import CellText, Grid, Line
from workflow_scripts.reporting.tables.markdown_text import parse_table_text, restore_markdown_text

FIELD = re.compile(r"(?:[^|\\]|\\.)+")  # a vertical bar in a field is escaped
BOLD = re.compile(r"\*\*([^*]+)\*\*")
MEASURED_FIELD = re.compile(r"\*\*([^*]+)\*\*([†‡]?) \((.*)\)")
RIGHT = "---:"  # under the head of a published number


def format_parsed_table(
    name: str, markdown: str, labels: Collection[str] = (), with_notes: bool = True
) -> str:
    """Return the LaTeX of a table, the same that is made with its Markdown.

    name: `<paper>/<table>`. labels: of the rows to keep; without any, all rows are kept. Raises
    ValueError for a text that `format_markdown_table` has not written, and UserError for an unknown
    label.
    """
    title, notes = parse_table_text(markdown)
    rows = [FIELD.findall(line) for line in markdown.splitlines() if line.startswith("|")]
    if len(rows) < 2:
        raise ValueError("there is no table")
    heads, bars, *body = [[field.strip() for field in row] for row in rows]
    is_published = [bar == RIGHT for bar in bars[1:]]
    protocol = ""
    if "protocol " in title:
        protocol = title.rpartition("protocol ")[2].rpartition(" ")[2].rstrip(")")
    lines = []
    heading = ""
    for label, *fields in body:
        if len(fields) != len(is_published):
            raise ValueError(f"the row {label} has {len(fields)} fields")
        bold = BOLD.fullmatch(label)
        if bold:
            heading = restore_markdown_text(bold[1])
            continue
        cells = _parse_cells(fields, is_published, protocol)
        lines.append(Line(heading, restore_markdown_text(label), cells))
        heading = ""
    if labels:
        lines = _select_lines(lines, labels)
    grid = _make_grid(heads[1:], is_published, lines)
    return format_latex_table(name, title, grid, notes if with_notes else [])


def _select_lines(lines: list[Line], labels: Collection[str]) -> list[Line]:
    """Return the lines with these labels; the first kept line of a group gets its heading.

    Raises UserError for a label that no line has.
    """
    known = [line.label for line in lines]
    for label in labels:
        if label not in known:
            raise UserError(f"the table has no row '{label}'; {suggest_name(label, known)}")
    selected = []
    heading = ""
    for line in lines:
        heading = line.heading or heading
        if line.label in labels:
            selected.append(replace(line, heading=heading))
            heading = ""
    return selected


def _make_grid(heads: list[str], is_published: list[bool], lines: list[Line]) -> Grid:
    """Make the grid: a column of a published number and the next one have one head."""
    names = []
    has_published = []
    for i in range(len(heads)):
        if is_published[i]:
            continue
        follows_published = i > 0 and is_published[i - 1]
        name = heads[i].removesuffix(", ours") if follows_published else heads[i]
        names.append(restore_markdown_text(name))
        has_published.append(follows_published)
    return Grid(names, has_published, lines)


def _parse_cells(fields: list[str], is_published: list[bool], protocol: str) -> list[CellText]:
    """Parse the fields of a row.

    protocol: of its measured cells, but for those with a difference, which are of the paper's.
    """
    cells = []
    published = ""
    for field, of_paper in zip(fields, is_published, strict=True):
        text = restore_markdown_text(field)
        if of_paper:
            published = text
            continue
        measured = MEASURED_FIELD.fullmatch(field)
        if measured:
            seeds, _, difference = measured[3].partition("; ")
            cell = CellText(
                status=MEASURED,
                protocol="paper" if difference else protocol,
                published=published,
                ours=measured[1],
                marker=measured[2],
                seeds=seeds,
                difference=difference,
            )
        else:
            computed = BOLD.fullmatch(field)
            cell = CellText(
                status=COMPUTED if computed else NOT_RUN,
                published=published,
                ours=computed[1] if computed else text,
            )
        cells.append(cell)
        published = ""
    return cells
