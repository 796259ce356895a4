"""The page of the results of a scale, with which ./reproduce ends: one file that needs no network.

This page and the site share one set of templates, which write Markdown. For the site, Sphinx turns
the Markdown into HTML (by MyST-Parser, which is markdown-it with directives). Sphinx is not in
.venv, so for this page markdown-it does it. Figures are the files next to the page.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from workflow_scripts.common.files import read_csv
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.display_schema import Display, TableDisplay
from workflow_scripts.config.requested import list_paper_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.reporting.site.measured_claims import make_claims, read_judged_claims
from workflow_scripts.reporting.site.page_sources import (
    list_common_values,
    list_shown_results,
    make_environment,
    rank_by_table,
    render_markdown,
)
from workflow_scripts.reporting.tables.cells import COMPUTED, MEASURED

STATIC = Path(__file__).parent / "static"
STYLES = ("drawings.css", "site.css", "run.css")
SCRIPTS = ("run.js", "site.js")
SPLIT_OF_LEARNING = "in_distribution"
RAW_HTML = "{raw} html"
TARGET = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)


@dataclass(frozen=True)
class WhatRan:
    """How the results were made.

    made: numbers of trainings, tables and figures, in words. hours: of all trainings, in words.
    finished: the day of the last training, empty without one.
    """

    made: str
    finished: str
    hours: str
    devices: list[str]
    commits: list[str]
    is_unfinished: bool


@dataclass(frozen=True)
class Continuation:
    """The claim `<paper>/<claim>` that the commands at the end of the page name; None: no claim.

    is_committed: whether the committed results have it.
    """

    claim: str | None
    is_committed: bool


@dataclass(frozen=True)
class LearntColumn:
    """A column of a table. decimals: of its numbers in that table."""

    name: str
    unit: str
    decimals: int


@dataclass(frozen=True)
class LearntRow:
    """Scores of a row of a table, one for each column, and how many seeds they are the mean of."""

    name: str
    values: list[float | None]
    seeds: str


@dataclass(frozen=True)
class LearntTable:
    """Columns of a table `<paper>-<name>` next to what a model scores that has learnt nothing."""

    slug: str
    columns: list[LearntColumn]
    rows: list[LearntRow]


def format_run_page(
    catalogue: Catalogue,
    config: Config,
    results: ScaleFolder,
    ran: WhatRan,
    verdicts: str,
    continuation: Continuation,
) -> str:
    """Return the page of the results of a configuration.

    verdicts: a line on them, in words. Raises UserError for missing files of claims.
    """
    scale = config.scale
    claims = make_claims(catalogue, read_judged_claims(catalogue, results))
    environment = make_environment()
    common = list_common_values(catalogue, claims, scale, claim_pages=False)
    sections: list[dict[str, Any]] = []
    learnt: list[LearntTable] = []
    for paper in config.papers:
        entry = catalogue.papers[paper]
        ours = [claim for claim in claims if claim.row.paper == paper]
        displays = entry.select_shown_displays(list_paper_runs(catalogue, config, paper, scale))
        shown = list_shown_results(entry, paper, results, displays)
        learnt += list_learnt_tables(results, paper, displays)
        values = {
            "paper": paper,
            "level": 3,
            "ours": ours,
            "shown": rank_by_table(entry, ours),
            "has_plans": bool(entry.list_plans(scale)),
            "planned_scales": entry.list_planned_scales(),
            "tables": shown.tables,
            "figures": shown.figures,
            "figures_root": "",
        }
        text = render_markdown(environment, "paper_sections", common | values)
        sections.append(values | {"text": text})
    values = {
        "config": config,
        "ran": ran,
        "verdicts": verdicts,
        "continuation": continuation,
        "learnt": learnt,
        "sections": sections,
    }
    body = render_html(render_markdown(environment, "run", common | values))
    frame = environment.get_template("run.html.j2")
    return frame.render(scale=scale, style=_join(STYLES), script=_join(SCRIPTS), body=body)


def list_learnt_tables(
    results: ScaleFolder, paper: str, displays: dict[str, Display]
) -> list[LearntTable]:
    """List the tables with a score on the split `in_distribution` next to a control.

    The control is a number without a training, in the same column. Other columns that have one are
    there, too.
    """
    learnt: list[LearntTable] = []
    for name, display in displays.items():
        file = results.table(paper, name).csv
        if not isinstance(display, TableDisplay) or not file.exists():
            continue
        controlled = _select_controlled_lines(read_csv(file))
        in_distribution = {cell.column for cell in display.cells if cell.split == SPLIT_OF_LEARNING}
        if in_distribution & controlled.keys():
            decimals = {cell.column: cell.decimals for cell in display.cells}
            learnt.append(_make_learnt_table(f"{paper}-{name}", controlled, decimals))
    return learnt


def _select_controlled_lines(lines: list[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Return column -> lines with a number, of the columns with a measured and a computed one."""
    lines_of_column: dict[str, list[dict[str, str]]] = {}
    for line in lines:
        if line["reproduced"]:
            lines_of_column.setdefault(line["column"], []).append(line)
    controlled = {}
    for column, of_column in lines_of_column.items():
        if {MEASURED, COMPUTED} <= {line["status"] for line in of_column}:
            controlled[column] = of_column
    return controlled


def _make_learnt_table(
    slug: str, lines_of_column: dict[str, list[dict[str, str]]], decimals: dict[str, int]
) -> LearntTable:
    """Make the table of the lines of some columns, its rows in the order in which they occur."""
    columns: list[LearntColumn] = []
    values: dict[str, dict[str, float]] = {}
    seeds: dict[str, str] = {}
    for column, lines in lines_of_column.items():
        columns.append(LearntColumn(column, lines[0]["unit"], decimals[column]))
        for line in lines:
            values.setdefault(line["row"], {})[column] = float(line["reproduced"])
            seeds[line["row"]] = line["n_seeds"]
    rows = []
    for row, of_row in values.items():
        rows.append(LearntRow(row, [of_row.get(column.name) for column in columns], seeds[row]))
    return LearntTable(slug, columns, rows)


def render_html(text: str) -> str:
    """Convert the Markdown of the templates to HTML, with the directives that they have.

    These are blocks of HTML, and targets of links.
    """
    parser = MarkdownIt("commonmark").enable("table")
    parser.add_render_rule("fence", _render_fence)
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", _finish_table)
    return parser.render(TARGET.sub(r'<span id="\1"></span>\n', text))


def _render_fence(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """Write a block of HTML as it is, and any other as code."""
    if tokens[index].info == RAW_HTML:
        return tokens[index].content
    return RendererHTML.fence(renderer, tokens, index, options, env)


def _open_table(*_: object) -> str:
    """Begin a table in a box of its own, so that a wide one scrolls there and not the page."""
    return '<div class="wide"><table>\n'


def _finish_table(*_: object) -> str:
    """End a table and its box."""
    return "</table></div>\n"


def _join(names: Sequence[str]) -> str:
    """Return the content of these files of the site."""
    return "\n".join((STATIC / name).read_text(encoding="utf-8") for name in names)
