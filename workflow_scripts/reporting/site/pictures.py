"""README's pictures: the primary claims of all papers and their effects, as plain SVG, light and dark."""

import re
import textwrap
from pathlib import Path

from workflow_scripts.common.files import write_atomically
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.reporting.site.drawings import draw_effect, draw_text
from workflow_scripts.reporting.site.measured_claims import MeasuredClaim, make_slug, read_measured_claims
from workflow_scripts.reporting.site.page_sources import count_by_verdict, name_paper

WIDTH, COLUMN, TALLY = 940, 455, 66  # pixels; the height of the tally
FONT = "font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
CHARACTERS = 62  # in a line of a statement


def write_pictures(catalogue: Catalogue, results: Path, scale: str, out: Path) -> None:
    """Write overview-light.svg and overview-dark.svg."""
    primary = [claim for claim in read_measured_claims(catalogue, results) if claim.is_primary]
    for theme in ("light", "dark"):
        with write_atomically(out / f"overview-{theme}.svg") as temporary:
            temporary.write_text(draw_overview(catalogue, primary, scale, theme), encoding="utf-8")


def draw_overview(catalogue: Catalogue, primary: list[MeasuredClaim], scale: str, theme: str) -> str:
    """Draw the number of primary claims by verdict, and below it the claims in two columns of about one height."""
    body = _draw_tally(primary, scale)
    heights = [TALLY, TALLY]
    by_paper = {paper: [claim for claim in primary if claim.row["paper"] == paper] for paper in catalogue.papers}
    for paper, claims in sorted(by_paper.items(), key=lambda item: -len(item[1])):  # so that both columns become even
        if not claims:
            continue
        column = heights.index(min(heights))
        x, y = 10 + column * (WIDTH - COLUMN - 20), heights[column] + 24
        body += draw_text(x, y, name_paper(catalogue, paper), "name")
        for claim in claims:
            for line in textwrap.wrap(f"{claim.row['statement']}: {claim.row['verdict']}", CHARACTERS):
                y += 19
                body += draw_text(x, y, line, "label")
            drawn = draw_effect(claim, COLUMN, 0)
            height = int(re.search(r'viewBox="0 0 \d+ (\d+)"', drawn)[1])
            place = f'<svg x="{x}" y="{y + 4}" width="{COLUMN}" height="{height}"'
            body += re.sub(r"<svg ", f"{place} ", re.sub(r"<title>.*?</title>| style=\"[^\"]*\"", "", drawn))
            y += height + 6
        heights[column] = y + 14
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {max(heights)}" role="img">'
    title = (
        f"<title>{len(primary)} primary claims at {scale}: published effects, margins, planned seeds, verdicts</title>"
    )
    return f"{head}{title}{_make_style(theme)}{body}</svg>\n"


def _draw_tally(claims: list[MeasuredClaim], scale: str) -> str:
    counts = {verdict: count for verdict, count in count_by_verdict(claims).items() if count}
    room = WIDTH - 20 - 130 * len(counts)  # what remains when each verdict has room for its name
    x, body = 10.0, ""
    for verdict, count in counts.items():
        width = 130 + room * count / len(claims)
        body += f'<rect x="{x:.0f}" y="8" width="{width - 3:.0f}" height="34" rx="5" class="dot {make_slug(verdict)}"/>'
        body += draw_text(x + 10, 30, f"{count} {verdict}", "on")
        x += width
    key = "◆ the paper's effect · line: the claim begins · dotted: smallest effect of interest"
    return body + draw_text(10, 60, f"primary claims at {scale} · {key}", "tick")


def _make_style(theme: str) -> str:
    """Return the style sheet of the drawings with the colours of one theme."""
    css = (Path(__file__).parent / "static/drawings.css").read_text(encoding="utf-8")
    if theme == "light":
        css = re.sub(r'html\[data-theme="dark"\] {[^}]*}', "", css)
    css = re.sub(r'html(\[data-theme="dark"\])?', ":root", re.sub(r"/\*.*?\*/", "", css))
    own = f":root {{ {FONT} }} .name {{ font-size: 18px; font-weight: 600; }} .on {{ fill: var(--on); }}"
    return f"<style>{css.strip()}\n{own}</style>"
