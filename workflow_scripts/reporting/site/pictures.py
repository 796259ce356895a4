"""README's pictures: the primary claims of all papers and their effects, as plain SVG, light and dark."""

import re
import textwrap
from pathlib import Path

from workflow_scripts.common.files import write_atomically
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.reporting.site.drawings import draw_effect, draw_text
from workflow_scripts.reporting.site.measured_claims import MeasuredClaim, read_measured_claims
from workflow_scripts.reporting.site.page_sources import count_by_verdict, name_paper

WIDTH, COLUMN, HEAD = 940, 455, 60  # pixels
FONT = "font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
CHARACTERS = 62  # in a line of a statement


def write_pictures(catalogue: Catalogue, results: Path, scale: str, out: Path) -> None:
    """Write overview-light.svg and overview-dark.svg."""
    primary = [claim for claim in read_measured_claims(catalogue, results) if claim.is_primary]
    for theme in ("light", "dark"):
        with write_atomically(out / f"overview-{theme}.svg") as temporary:
            temporary.write_text(draw_overview(catalogue, primary, scale, theme), encoding="utf-8")


def draw_overview(
    catalogue: Catalogue, primary: list[MeasuredClaim], scale: str, theme: str
) -> str:
    """Draw the primary claims in two columns of about one height, below their number by verdict."""
    counts = ", ".join(
        f"{count} {verdict}" for verdict, count in count_by_verdict(primary).items() if count
    )
    title = f"{len(primary)} primary claims at {scale}: {counts}"
    key = "◆ the paper's effect · line: the claim begins · dotted: smallest effect of interest · ring: planned seed"
    body = draw_text(10, 28, title, "name") + draw_text(10, 50, key, "tick")
    heights = [HEAD, HEAD]
    by_paper = {
        paper: [claim for claim in primary if claim.row["paper"] == paper]
        for paper in catalogue.papers
    }
    for paper, claims in sorted(
        by_paper.items(), key=lambda item: -len(item[1])
    ):  # so that both columns become even
        if not claims:
            continue
        column = heights.index(min(heights))
        x, y = 10 + column * (WIDTH - COLUMN - 20), heights[column] + 24
        body += draw_text(x, y, name_paper(catalogue, paper), "name")
        for claim in claims:
            for line in textwrap.wrap(
                f"{claim.row['statement']}: {claim.row['verdict']}", CHARACTERS
            ):
                y += 19
                body += draw_text(x, y, line, "label")
            drawn = draw_effect(claim, COLUMN, 0)
            height = int(re.findall(r'viewBox="0 0 \d+ (\d+)"', drawn)[0])
            place = f'<svg x="{x}" y="{y + 4}" width="{COLUMN}" height="{height}"'
            body += re.sub(
                r"<svg ", f"{place} ", re.sub(r"<title>.*?</title>| style=\"[^\"]*\"", "", drawn)
            )
            y += height + 6
        heights[column] = y + 14
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {max(heights)}" role="img">'
    )
    return f"{head}<title>{title}</title>{_make_style(theme)}{body}</svg>\n"


def _make_style(theme: str) -> str:
    """Return the style sheet of the drawings with the colours of one theme."""
    css = (Path(__file__).parent / "static/drawings.css").read_text(encoding="utf-8")
    if theme == "light":
        css = re.sub(r'html\[data-theme="dark"\] {[^}]*}', "", css)
    css = re.sub(r'html(\[data-theme="dark"\])?', ":root", re.sub(r"/\*.*?\*/", "", css))
    own = f":root {{ {FONT} }} .name {{ font-size: 18px; font-weight: 600; }}"
    return f"<style>{css.strip()}\n{own}</style>"
