"""README's pictures: the primary claims of all papers with their effects, as SVG."""

import re
import textwrap
from pathlib import Path

from workflow_scripts.common.files import write_text_file
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.reporting.claims.claim_rows import (
    ClaimRow,
    count_kinds,
    format_effect,
    format_published_effect,
)
from workflow_scripts.reporting.claims.outcome import DECIDED
from workflow_scripts.reporting.site.drawings import (
    draw_diamond,
    draw_interval,
    draw_line,
    draw_text,
    make_axis,
)
from workflow_scripts.reporting.site.measured_claims import MeasuredClaim, read_measured_claims
from workflow_scripts.reporting.site.page_sources import count_by_state, name_paper

# In pixels: the picture, what is free at either side, and the heights of head, paper, line, and of
# a claim whose statement has two lines or fewer.
WIDTH = 960
SIDE = 10
HEAD = 76
PAPER_HEIGHT = 23
CLAIM_HEIGHT = 29
LINE = 13
STRIP_HEIGHT = 22
# The columns: statement, drawing, verdict with numbers.
DRAWING_LEFT = 430
DRAWING_RIGHT = 684
VERDICT_LEFT = 704
PUBLISHED_LEFT = 822  # the paper's effect, after the verdict
CHARACTERS = 66  # in a line of a statement
FONT = "font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
KEY = (
    "● measured here, with its interval · ◆ the paper's effect · thin line: no effect",
    "green: what is claimed, from the thick line, the margin, on · dotted: smallest effect of "
    "interest · each row has a scale of its own",
)


def write_pictures(catalogue: Catalogue, results: Path, scale: str, out: Path) -> None:
    """Write overview-light.svg and overview-dark.svg."""
    claims = read_measured_claims(catalogue, results)
    primary = [claim for claim in claims if claim.row.is_primary]
    for theme in ("light", "dark"):
        picture = draw_overview(catalogue, primary, scale, theme)
        write_text_file(out / f"overview-{theme}.svg", picture)


def draw_overview(
    catalogue: Catalogue, primary: list[MeasuredClaim], scale: str, theme: str
) -> str:
    """Draw a row for each decided primary claim by paper, below their number by verdict."""
    decided = [claim for claim in primary if claim.row.verdict in DECIDED]
    counts = count_by_state(decided)
    parts = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    title = f"{len(decided)} primary claims at {scale}: {', '.join(parts)}"
    body = draw_text(SIDE, 28, title, "name")
    key = [f"{describe_kinds(primary, decided)} · {KEY[0]}", *KEY[1:]]
    for number, line in enumerate(key):
        body += draw_text(SIDE, 50 + LINE * number, line, "tick")
    y = HEAD
    for paper in catalogue.papers:
        of_paper = [claim for claim in decided if claim.row.paper == paper]
        if not of_paper:
            continue
        body += draw_text(SIDE, y + 17, name_paper(catalogue, paper), "paper")
        y += PAPER_HEIGHT
        for claim in of_paper:
            lines = split_statement(claim.row)
            height = max(CLAIM_HEIGHT, LINE * len(lines) + 3)
            body += draw_primary_claim(claim, lines, y, height)
            y += height
    box = f'viewBox="0 0 {WIDTH} {y + SIDE}" role="img"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box}><title>{title}</title>'
    return f"{head}{_make_style(theme)}{body}</svg>\n"


def describe_kinds(primary: list[MeasuredClaim], decided: list[MeasuredClaim]) -> str:
    """Say how many of the decided claims are controls of ours, and how many are only planned."""
    text = count_kinds([claim.row for claim in decided])
    planned = len(primary) - len(decided)
    if planned:
        text += f"; {planned} more are planned"
    return text


def split_statement(row: ClaimRow) -> list[str]:
    """Return the lines of a claim's statement."""
    text = row.statement
    if row.is_control:
        text += " (a control of ours)"
    return textwrap.wrap(text, CHARACTERS)


def draw_primary_claim(claim: MeasuredClaim, statement: list[str], top: int, height: int) -> str:
    """Draw the row of a claim: its statement, its effect, and its verdict with the numbers."""
    row = claim.row
    middle = top + height / 2
    first_line = middle + 5 - LINE * (len(statement) - 1) / 2
    body = "".join(
        draw_text(SIDE, first_line + LINE * number, line, "label")
        for number, line in enumerate(statement)
    )
    body += draw_effect_strip(claim, middle - STRIP_HEIGHT / 2, middle + STRIP_HEIGHT / 2)
    body += draw_text(VERDICT_LEFT, middle - 2, row.verdict, f"verdict {claim.verdict_class}")
    body += draw_text(VERDICT_LEFT, middle + 12, describe_effect(row), "tick")
    published = format_published_effect(row)
    if published:
        body += draw_text(PUBLISHED_LEFT, middle - 2, f"◆ {published}", "tick")
    return body


def draw_effect_strip(claim: MeasuredClaim, top: float, bottom: float) -> str:
    """Draw effect and interval on an axis without numbers, with what is claimed and published."""
    row = claim.row
    values = [row.effect, row.ci_low, row.ci_high, row.margin, row.smallest_effect]
    values.append(row.published_effect)
    axis = make_axis(values, DRAWING_LEFT, DRAWING_RIGHT, anchor=row.null)
    middle = (top + bottom) / 2
    edge = axis.place(row.margin)
    size = f'width="{axis.right - edge:.1f}" height="{bottom - top:g}"'
    body = f'<rect x="{edge:g}" y="{top:g}" {size} class="claimed"/>'
    null = axis.place(row.null)
    body += draw_line(null, top, null, bottom, "zero")
    body += draw_line(edge, top, edge, bottom, "margin")
    if row.smallest_effect is not None and row.smallest_effect != row.margin:
        smallest = axis.place(row.smallest_effect)
        body += draw_line(smallest, top, smallest, bottom, "smallest")
    if row.published_effect is not None:
        body += draw_diamond(axis.place(row.published_effect), middle)
    return body + draw_interval(axis, middle, claim)


def describe_effect(row: ClaimRow) -> str:
    """Return the measured effect in words, after the number of a share of seeds its reason."""
    if row.ci_low is None:
        return row.reason
    return format_effect(row)


def _make_style(theme: str) -> str:
    """Return the style sheet of the drawings with the colours of one theme."""
    css = (Path(__file__).parent / "static/drawings.css").read_text(encoding="utf-8")
    if theme == "light":
        css = re.sub(r'html\[data-theme="dark"\] {[^}]*}', "", css)
    without_comments = re.sub(r"/\*.*?\*/", "", css)
    css = re.sub(r'html(\[data-theme="dark"\])?', ":root", without_comments)
    own = (
        f":root {{ {FONT} }} .name {{ font-size: 16.5px; font-weight: 600; }} "
        "svg .label { font-size: 12px; } .paper { font-size: 14px; font-weight: 600; } "
        "svg .verdict { fill: var(--verdict); font-weight: 600; }"
    )
    return f"<style>{css.strip()}\n{own}</style>"
