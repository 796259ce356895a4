"""Tables as GitHub Markdown."""

import re

from workflow_scripts.reporting.tables.cells import MEASURED, Cell
from workflow_scripts.reporting.tables.item_bootstrap import ExampleTest
from workflow_scripts.reporting.tables.layout import (
    MARKERS,
    Grid,
    format_difference,
    format_published,
    format_reproduced,
    format_seeds,
)


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, inside table cells too."""
    return re.sub(r"([\\`*_\[\]|~<>])", r"\\\1", text)


def format_markdown_table(title: str, grid: Grid, tests: dict[str, ExampleTest], notes: list[str]) -> str:
    """Format a heading, the table with the paper's and our column under each head, and the notes."""
    heads, bars = [""], ["---"]
    for head, published in zip(grid.heads, grid.published, strict=True):
        for who in ("paper", "ours") if published else ("",):
            heads.append(escape_markdown(f"{head}, {who}" if who else head))
            bars.append("---:" if who == "paper" else "---")
    lines = [f"## {escape_markdown(title)}", "", _line(heads), _line(bars)]
    group = ""
    for line in grid.lines:
        if line.group != group:
            group = line.group
            lines.append(_line([f"**{escape_markdown(group)}**"] + [""] * (len(heads) - 1)))
        texts = [escape_markdown(line.label)]
        for cell, published in zip(line.cells, grid.published, strict=True):
            texts += [escape_markdown(format_published(cell))] if published else []
            texts.append(_ours(cell, tests))
        lines.append(_line(texts))
    return "\n".join([*lines, "", *(f"- {escape_markdown(note)}" for note in notes), ""])


def _ours(cell: Cell | None, tests: dict[str, ExampleTest]) -> str:
    if cell is None or cell.status != MEASURED:
        return escape_markdown(format_reproduced(cell))
    marker = MARKERS[tests[cell.key].outcome] if cell.key in tests else ""
    difference = f"; {format_difference(cell)}" if cell.difference is not None else ""
    return f"**{format_reproduced(cell)}**{marker} ({format_seeds(cell)}{difference})"


def _line(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"
