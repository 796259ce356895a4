"""The first page of Snakemake's report: the number of claims by verdict, and every claim with its effect."""

import re
from collections import Counter
from itertools import groupby

from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.reporting.claims.verdicts import EXPLORATORY, MEANINGS, PRIMARY
from workflow_scripts.reporting.tables.layout import format_effect, format_published_effect

OURS = "controls of ours"
KINDS = (PRIMARY, EXPLORATORY, OURS)  # of claims, counted apart
# Snakemake centres this page in the window, so the top of a longer one could not be reached: it scrolls in a box.
PAGE = """Recompose
=========

{said}

.. raw:: html

   <div style="max-height: 50vh; overflow-y: auto; padding-right: 1em">

{tables}.. raw:: html

   </div>
"""


def format_overview(catalogue: Catalogue, scale: str, rows: list[dict[str, str]]) -> str:
    """Format the page of the `rows` of claims.csv in reStructuredText, which Snakemake fills as a Jinja template."""
    described = catalogue.scales[scale]
    ours = [row["role"] != PRIMARY and row["kind"] == "control" for row in rows]
    counts = Counter(
        (row["verdict"], OURS if own else row["role"]) for row, own in zip(rows, ours, strict=True)
    )
    tally = [
        (name, *(str(counts[name, kind]) for kind in KINDS), text)
        for name, text in MEANINGS.items()
    ]
    tables = format_rst_table(
        (f"Verdict at {scale}", *KINDS, "It means"), (20, 11, 14, 11, 44), tally
    )
    for paper, found in groupby(rows, lambda row: row["paper"]):
        lines = []
        for row in sorted(
            found, key=lambda row: (row["role"] != PRIMARY, row["kind"] == "control")
        ):
            kind = (
                " (primary)"
                if row["role"] == PRIMARY
                else " (control of ours)"
                if row["kind"] == "control"
                else ""
            )
            verdict = "; ".join(filter(None, (row["verdict"], row["reason"])))
            lines.append(
                (row["statement"] + kind, format_published_effect(row), format_effect(row), verdict)
            )
        heads = (
            catalogue.papers[paper].experiments.title,
            "Published effect",
            "Effect (interval)",
            f"At {scale}",
        )
        tables += format_rst_table(heads, (45, 15, 20, 20), lines)
    said = escape_rst(f"Scale {scale}: {described.title}. It is for {described.purpose}.")
    return PAGE.format(said=said, tables=tables)


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
        lines += [f"   {'  ' if i else '* '}- {escape_rst(text)}" for i, text in enumerate(row)]
    return "\n".join([*lines, "", ""])


def escape_rst(text: str) -> str:
    """Escape text for reStructuredText and Jinja."""
    return re.sub(r"([\\*`|_{}<>\[\]])", r"\\\1", text)
