"""Tables as GitHub Markdown."""

import re

from workflow_scripts.reporting.tables.layout import CellText, Grid


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, inside table cells too."""
    return re.sub(r"([\\`*_\[\]|~<>])", r"\\\1", text)


def format_markdown_table(title: str, grid: Grid, notes: list[str]) -> str:
    """Format a heading, the table with the paper's and our column under each head, and the notes."""
    heads, bars = [""], ["---"]
    for head, published in zip(grid.heads, grid.published, strict=True):
        heads += [escape_markdown(text) for text in ([f"{head}, paper", f"{head}, ours"] if published else [head])]
        bars += ["---:", "---"] if published else ["---"]
    lines = [f"## {escape_markdown(title)}", "", _join(heads), _join(bars)]
    for line in grid.lines:
        if line.heading:
            lines.append(_join([f"**{escape_markdown(line.heading)}**"] + [""] * (len(heads) - 1)))
        texts = [escape_markdown(line.label)]
        for cell, published in zip(line.cells, grid.published, strict=True):
            texts += [escape_markdown(cell.published)] * published + [_format_ours(cell)]
        lines.append(_join(texts))
    return "\n".join([*lines, "", *(f"- {escape_markdown(note)}" for note in notes), ""])


def _format_ours(cell: CellText) -> str:
    if not cell.is_measured:
        return escape_markdown(cell.ours)
    return f"**{cell.ours}**{cell.marker} ({'; '.join(filter(None, (cell.seeds, cell.difference)))})"


def _join(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"
