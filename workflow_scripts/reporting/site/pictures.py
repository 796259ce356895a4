"""README's pictures: the primary claims of all papers with their effects, as SVG."""

import re
import textwrap
from pathlib import Path

from workflow_scripts.common.files import write_text_file
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.reporting.site.drawings import draw_effect, draw_text
from workflow_scripts.reporting.site.measured_claims import MeasuredClaim, read_measured_claims
from workflow_scripts.reporting.site.page_sources import count_by_verdict, name_paper

# In pixels: the picture, a column, what is free at either side, and the heights of head and line.
WIDTH = 940
COLUMN = 455
SIDE = 10
HEAD = 60
LINE = 19
FONT = "font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
CHARACTERS = 62  # in a line of a statement
KEY = (
    "◆ the paper's effect · line: the claim begins · dotted: smallest effect of interest · "
    "ring: planned seed"
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
    """Draw the primary claims in two columns of about one height, below their number by verdict."""
    counts = count_by_verdict(primary)
    parts = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    title = f"{len(primary)} primary claims at {scale}: {', '.join(parts)}"
    body = draw_text(SIDE, 28, title, "name") + draw_text(SIDE, 50, KEY, "tick")
    claims_of_paper: dict[str, list[MeasuredClaim]] = {paper: [] for paper in catalogue.papers}
    for claim in primary:
        claims_of_paper[claim.row.paper].append(claim)
    heights = [HEAD, HEAD]
    # The paper with the most claims comes first, so that both columns become even.
    for paper in sorted(claims_of_paper, key=lambda paper: -len(claims_of_paper[paper])):
        if not claims_of_paper[paper]:
            continue
        column = heights.index(min(heights))
        x = SIDE + column * (WIDTH - COLUMN - 2 * SIDE)
        y = heights[column] + 24
        body += draw_text(x, y, name_paper(catalogue, paper), "name")
        for claim in claims_of_paper[paper]:
            drawing, height = draw_primary_claim(claim, x, y)
            body += drawing
            y += height
        heights[column] = y + 14
    box = f'viewBox="0 0 {WIDTH} {max(heights)}" role="img"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box}><title>{title}</title>'
    return f"{head}{_make_style(theme)}{body}</svg>\n"


def draw_primary_claim(claim: MeasuredClaim, x: int, top: int) -> tuple[str, int]:
    """Draw statement, verdict and effect of a claim below `top`; return it with its height."""
    body = ""
    y = top
    for line in textwrap.wrap(f"{claim.row.statement}: {claim.row.verdict}", CHARACTERS):
        y += LINE
        body += draw_text(x, y, line, "label")
    effect = draw_effect(claim, COLUMN, gutter=0)
    height = int(re.findall(r'viewBox="0 0 \d+ (\d+)"', effect)[0])
    plain = re.sub(r"<title>.*?</title>| style=\"[^\"]*\"", "", effect)
    place = f'<svg x="{x}" y="{y + 4}" width="{COLUMN}" height="{height}" '
    body += re.sub(r"<svg ", place, plain)
    return body, y + height + 6 - top


def _make_style(theme: str) -> str:
    """Return the style sheet of the drawings with the colours of one theme."""
    css = (Path(__file__).parent / "static/drawings.css").read_text(encoding="utf-8")
    if theme == "light":
        css = re.sub(r'html\[data-theme="dark"\] {[^}]*}', "", css)
    without_comments = re.sub(r"/\*.*?\*/", "", css)
    css = re.sub(r'html(\[data-theme="dark"\])?', ":root", without_comments)
    own = f":root {{ {FONT} }} .name {{ font-size: 18px; font-weight: 600; }}"
    return f"<style>{css.strip()}\n{own}</style>"
