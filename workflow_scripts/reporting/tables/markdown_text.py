"""Text in the Markdown of tables, and what the file of a table says around it."""

import re
from typing import NamedTuple

SPECIAL_LETTERS = r"([\\`*_\[\]|~<>])"


class TableText(NamedTuple):
    """The heading of a table, and the notes below it."""

    title: str
    notes: list[str]


def restore_markdown_text(text: str) -> str:
    """Undo `formats.escape_markdown`, which needs more than results in Python have to import."""
    return re.sub(rf"\\{SPECIAL_LETTERS}", r"\1", text)


def parse_table_text(markdown: str) -> TableText:
    """Parse what `format_markdown_table` has written around a table."""
    title = ""
    notes = []
    for line in markdown.splitlines():
        text = restore_markdown_text(line)
        if line.startswith("## "):
            title = text.removeprefix("## ")
        elif line.startswith("- "):
            notes.append(text.removeprefix("- "))
    return TableText(title, notes)
