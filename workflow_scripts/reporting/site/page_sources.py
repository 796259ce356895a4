"""Write the site's Markdown pages with drawings, from exported results, papers/ and docs/."""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from workflow_scripts.common.result_folders import ExportFolder
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.reporting.claims import verdicts
from workflow_scripts.reporting.claims.claim_rows import format_effect
from workflow_scripts.reporting.site import drawings
from workflow_scripts.reporting.site.documents import LinkRewriter, make_toctree, write_documents
from workflow_scripts.reporting.site.measured_claims import (
    MeasuredClaim,
    make_slug,
    rank_claim,
    read_measured_claims,
)

LONGEST_ABBREVIATION = 6  # letters of the key of a paper
CUT = 0.12  # share of the effects that are beyond either end of the axis that tables share


def name_paper(catalogue: Catalogue, key: str) -> str:
    """Return the short name of a paper: that of its method, else its key."""
    method = catalogue.methods.get(key.replace("_", "-"))
    if method and method.title:
        return method.title
    if len(key) <= LONGEST_ABBREVIATION:
        return key.upper()
    return key.capitalize()


def draw_sides(claim: MeasuredClaim) -> Markup:
    """Draw both sides by seed. Those of a trend have different units, and get a drawing each."""
    if claim.row.relation != "falls_with":
        return Markup(drawings.draw_seeds(claim.cells))
    left = [cell for cell in claim.cells if cell.side == "left"]
    right = [cell for cell in claim.cells if cell.side == "right"]
    return Markup(drawings.draw_seeds(left) + drawings.draw_seeds(right))


def count_by_verdict(claims: Sequence[MeasuredClaim]) -> dict[str, int]:
    """Count the claims of each verdict."""
    counts = Counter(claim.row.verdict for claim in claims)
    return {verdict: counts[verdict] for verdict in verdicts.VERDICTS}


def make_environment() -> Environment:
    """Make the environment of the templates. Every value is escaped."""
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(
        autoescape=True, loader=loader, undefined=StrictUndefined, lstrip_blocks=True
    )
    environment.filters |= {
        "slug": make_slug,
        "tick": drawings.format_tick,
        "signed": lambda value: f"{value:+g}".replace("-", "−"),
        "short": lambda value: drawings.format_tick(float(f"{value:.4g}")),
        "markdown": lambda text: re.sub(r"([\\*_`\[\]<|$])", r"\\\1", text),
    }
    environment.globals |= {
        "draw_effect": _allow_markup(drawings.draw_effect),
        "draw_curves": _allow_markup(drawings.draw_curves),
        "draw_strip": _allow_markup(drawings.draw_strip),
        "draw_sides": draw_sides,
        "format_effect": format_effect,
        "count": count_by_verdict,
    }
    return environment


def _allow_markup(draw: Callable[..., str]) -> Callable[..., Markup]:
    """Return a function whose drawing templates do not escape."""
    return lambda *values: Markup(draw(*values))


class PageWriter:
    """Writes pages from templates. `common`: values that all templates can use."""

    def __init__(self, out: Path, common: dict[str, object]):
        self.out = out
        self.common = common
        self.environment = make_environment()

    def write_page(self, path: str, template: str, **values: object) -> None:
        """Write the page `path` from a template, without repeated empty lines."""
        page = self.environment.get_template(f"{template}.md.j2").render(self.common | values)
        (self.out / path).parent.mkdir(parents=True, exist_ok=True)
        text = re.sub(r"\n\s*\n", "\n\n", page).lstrip()
        (self.out / path).write_text(text, encoding="utf-8")


def write_sources(catalogue: Catalogue, results: Path, scale: str, commands: str, out: Path) -> int:
    """Write all pages to `out`, and return the number of claims.

    commands: the text of the page of the commands.
    """
    claims = read_measured_claims(catalogue, results)
    by_paper: dict[str, list[MeasuredClaim]] = {paper: [] for paper in catalogue.papers}
    for claim in claims:
        by_paper[claim.row.paper].append(claim)
    common = {
        "scale": scale,
        "scales": catalogue.scales,
        "meanings": verdicts.MEANINGS,
        "papers": catalogue.papers,
        "names": {key: name_paper(catalogue, key) for key in catalogue.papers},
        "claims": claims,
        "by_paper": by_paper,
        "strip_axis": make_strip_axis(claims),
    }
    writer = PageWriter(out, common)
    rewriter = LinkRewriter(catalogue.root, results, out)
    write_first_page(writer, claims)
    writer.write_page("claims/index.md", "claims", claims=sorted(claims, key=rank_claim))
    for claim in claims:
        claims_of_table = []
        for other in by_paper[claim.row.paper]:
            if other is not claim and other.table == claim.table:
                claims_of_table.append(other)
        page = f"claims/{claim.slug}.md"
        writer.write_page(
            page, "claim", c=claim, near=claims_of_table, format_cell=rewriter.format_cell
        )
    for paper in catalogue.papers:
        values = describe_paper(catalogue, paper, by_paper[paper], results, rewriter)
        writer.write_page(f"papers/{paper}.md", "paper", **values)
    toctree = make_toctree(catalogue.papers, "Four papers, and tables of our own")
    (out / "papers/index.md").write_text(f"# Papers\n\n{toctree}", encoding="utf-8")
    if (results / "figures").exists():
        without_data = shutil.ignore_patterns("*.csv")
        shutil.copytree(results / "figures", out / "figures", ignore=without_data)
    write_documents(rewriter, commands)
    return len(claims)


def make_strip_axis(claims: Sequence[MeasuredClaim]) -> drawings.Axis:
    """Make the axis that the rows of all tables of claims share, in points."""
    points: list[float | None] = []
    for claim in claims:
        if claim.row.unit == "points":
            points += [claim.row.ci_low, claim.row.ci_high, claim.row.published_effect]
    return drawings.make_axis(points, 6, 144, CUT)


def write_first_page(writer: PageWriter, claims: Sequence[MeasuredClaim]) -> None:
    """Write the page that counts the claims by role and kind."""
    primary = [claim for claim in claims if claim.row.is_primary]
    exploratory = [claim for claim in claims if not claim.row.is_primary]
    writer.write_page(
        "index.md",
        "index",
        primary=primary,
        incomplete=[claim for claim in primary if not claim.row.has_planned_seeds],
        exploratory=[claim for claim in exploratory if not claim.row.is_control],
        own=[claim for claim in exploratory if claim.row.is_control],
    )


def describe_paper(
    catalogue: Catalogue,
    paper: str,
    claims: list[MeasuredClaim],
    results: Path,
    rewriter: LinkRewriter,
) -> dict[str, object]:
    """Return the values of a paper's page, by their names in its template.

    claims: those of the paper. results: the folder with its tables and figures.
    """
    entry = catalogue.papers[paper]
    exported = ExportFolder(results)
    with_effect = [
        claim for claim in claims if claim.row.is_primary or claim.row.effect is not None
    ]
    names = list(entry.displays)
    with_effect.sort(key=lambda claim: (not claim.row.is_primary, names.index(claim.table)))
    tables = []
    figures = []
    for name, display in entry.displays.items():
        title = f"{display.source}: {display.title}"
        file = exported.table(paper, name).markdown
        if file.exists():
            text = _read_below_title(file)
            tables.append((name, title, rewriter.replace_links(text, file)))
        if exported.figure(paper, name).svg.exists():
            figures.append((name, title, display.note or display.title))
    link = Markup("")
    identifier = re.search(r"arXiv (\d{4}\.\d{5})", entry.experiments.citation)
    if identifier:
        link = Markup(f" · [arXiv](https://arxiv.org/abs/{identifier[1]})")
    return {
        "paper": paper,
        "entry": entry,
        "ours": claims,
        "link": link,
        "with_effect": with_effect,
        "tables": tables,
        "figures": figures,
        "notes": _read_notes(catalogue.root / "papers" / paper / "NOTES.md", rewriter),
    }


def _read_notes(file: Path, rewriter: LinkRewriter) -> str:
    """Return the notes of a paper, one level down, because the page has a heading for them."""
    text = "None yet."
    if file.exists():
        text = _read_below_title(file)
    return re.sub(r"^(##+ )", r"#\1", rewriter.replace_links(text, file), flags=re.MULTILINE)


def _read_below_title(file: Path) -> str:
    """Return the text of a document without its first line, the title."""
    _, _, text = file.read_text(encoding="utf-8").partition("\n")
    return text
