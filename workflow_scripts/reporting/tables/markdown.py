"""Tables as GitHub Markdown."""

import re

from workflow_scripts.reporting.tables.cells import MEASURED, Cell
from workflow_scripts.reporting.tables.item_bootstrap import ExampleTest
from workflow_scripts.reporting.tables.layout import (
    MARKERS,
    Grid,
    difference_text,
    published_text,
    reproduced_text,
    seeds_text,
)


def escape(text: str) -> str:
    """Escape text for Markdown, inside table cells too."""
    return re.sub(r"([\\`*_\[\]|~<>])", r"\\\1", text)


def markdown_table(title: str, grid: Grid, tests: dict[str, ExampleTest], notes: list[str]) -> str:
    """Format a heading, the table with the paper's and our column under each head, and the notes."""
    heads, bars = [""], ["---"]
    for head, published in zip(grid.heads, grid.published, strict=True):
        for who in ("paper", "ours") if published else ("",):
            heads.append(escape(f"{head}, {who}" if who else head))
            bars.append("---:" if who == "paper" else "---")
    lines = [f"## {escape(title)}", "", _line(heads), _line(bars)]
    group = ""
    for line in grid.lines:
        if line.group != group:
            group = line.group
            lines.append(_line([f"**{escape(group)}**"] + [""] * (len(heads) - 1)))
        texts = [escape(line.label)]
        for cell, published in zip(line.cells, grid.published, strict=True):
            texts += [escape(published_text(cell))] if published else []
            texts.append(_ours(cell, tests))
        lines.append(_line(texts))
    return "\n".join([*lines, "", *(f"- {escape(note)}" for note in notes), ""])


def _ours(cell: Cell | None, tests: dict[str, ExampleTest]) -> str:
    if cell is None or cell.status != MEASURED:
        return escape(reproduced_text(cell))
    marker = MARKERS[tests[cell.key].outcome] if cell.key in tests else ""
    difference = f"; {difference_text(cell)}" if cell.difference is not None else ""
    return f"**{reproduced_text(cell)}**{marker} ({seeds_text(cell)}{difference})"


def _line(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"
