"""The first page of Snakemake's report: claims counted by verdict, and each with its effect."""

import re
from collections import Counter
from itertools import groupby
from operator import attrgetter

from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.reporting.claims.claim_rows import (
    ClaimRow,
    format_effect,
    format_published_effect,
)
from workflow_scripts.reporting.claims.comparison import EXPLORATORY, PRIMARY
from workflow_scripts.reporting.claims.outcome import MEANINGS

OURS = "controls of ours"
KINDS = (PRIMARY, EXPLORATORY, OURS)  # of claims, counted apart
# Snakemake centres this page in the window, so the top of a longer one could not be reached: it
# scrolls in a box.
PAGE = """Recompose
=========

{purpose}

.. raw:: html

   <div style="max-height: 50vh; overflow-y: auto; padding-right: 1em">

{tables}.. raw:: html

   </div>
"""


def format_overview(catalogue: Catalogue, scale: str, rows: list[ClaimRow]) -> str:
    """Format the page of the claims in reStructuredText, which Snakemake takes as a template."""
    tables = format_tally(scale, rows)
    for paper, of_paper in groupby(rows, attrgetter("paper")):
        lines = []
        for row in sorted(of_paper, key=lambda row: (not row.is_primary, row.is_control)):
            statement = row.statement
            if row.is_primary:
                statement += " (primary)"
            elif row.is_control:
                statement += " (control of ours)"
            verdict = f"{row.verdict}; {row.reason}" if row.reason else row.verdict
            lines.append((statement, format_published_effect(row), format_effect(row), verdict))
        title = catalogue.papers[paper].experiments.title
        heads = (title, "Published effect", "Effect (interval)", f"At {scale}")
        tables += format_rst_table(heads, (45, 15, 20, 20), lines)
    entry = catalogue.scales[scale]
    purpose = escape_rst(f"Scale {scale}: {entry.title}. It is for {entry.purpose}.")
    return PAGE.format(purpose=purpose, tables=tables)


def format_tally(scale: str, rows: list[ClaimRow]) -> str:
    """Format the number of claims of each kind by verdict, with what the verdicts mean."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        kind = row.role
        if row.is_control and not row.is_primary:
            kind = OURS
        counts[row.verdict, kind] += 1
    lines = []
    for verdict, meaning in MEANINGS.items():
        numbers = [str(counts[verdict, kind]) for kind in KINDS]
        lines.append((verdict, *numbers, meaning))
    heads = (f"Verdict at {scale}", *KINDS, "It means")
    return format_rst_table(heads, (20, 11, 14, 11, 44), lines)


def format_rst_table(
    heads: tuple[str, ...], widths: tuple[int, ...], rows: list[tuple[str, ...]]
) -> str:
    """Format a table in reStructuredText."""
    lines = [
        ".. list-table::",
        "   :header-rows: 1",
        f"   :widths: {' '.join(map(str, widths))}",
        "",
    ]
    for row in (heads, *rows):
        for number, text in enumerate(row):
            bullet = "* - " if number == 0 else "  - "
            lines.append(f"   {bullet}{escape_rst(text)}")
    return "\n".join([*lines, "", ""])


def escape_rst(text: str) -> str:
    """Escape text for reStructuredText and Jinja."""
    return re.sub(r"([\\*`|_{}<>\[\]])", r"\\\1", text)
