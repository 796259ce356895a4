"""Write the sources of the site: Markdown pages with inline drawings, from exported results, papers/ and docs/."""

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.reporting.claims import verdicts
from workflow_scripts.reporting.site import drawings
from workflow_scripts.reporting.site.documents import LinkRewriter, make_toctree, write_documents
from workflow_scripts.reporting.site.measured_claims import (
    MeasuredClaim,
    make_slug,
    read_measured_claims,
)
from workflow_scripts.reporting.tables.layout import format_effect


def name_paper(catalogue: Catalogue, key: str) -> str:
    """Return the short name of a paper: that of its method, else its key."""
    method = catalogue.methods.get(key.replace("_", "-"))
    return (
        method.title
        if method and method.title
        else key.upper()
        if len(key) < 7
        else key.capitalize()
    )


def draw_sides(claim: MeasuredClaim) -> Markup:
    """Draw both sides by seed. Those of a trend have different units, and get a drawing each."""
    sides = [[cell for cell in claim.cells if cell.side == side] for side in ("left", "right")]
    groups = sides if claim.row["relation"] == "falls_with" else [claim.cells]
    return Markup("".join(map(drawings.draw_seeds, groups)))


def count_by_verdict(claims: Sequence[MeasuredClaim]) -> dict[str, int]:
    """Count the claims of each verdict."""
    counts = Counter(claim.row["verdict"] for claim in claims)
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
    for name in ("draw_effect", "draw_curves", "draw_strip"):
        draw = getattr(drawings, name)
        environment.globals[name] = lambda *values, draw=draw: Markup(draw(*values))
    environment.globals |= {
        "draw_sides": draw_sides,
        "format_effect": format_effect,
        "count": count_by_verdict,
    }
    return environment


def write_sources(catalogue: Catalogue, results: Path, scale: str, commands: str, out: Path) -> int:
    """Write all pages to `out`, and return the number of claims. `commands` is the text of the page of the commands."""
    claims = read_measured_claims(catalogue, results)
    rewriter = LinkRewriter(catalogue.root, results, out)
    by_paper = {
        paper: [claim for claim in claims if claim.row["paper"] == paper]
        for paper in catalogue.papers
    }
    points = [
        end
        for one in claims
        if one.row["unit"] == "points"
        for end in (one.low, one.high, one.published)
    ]
    common = {
        "scale": scale, "scales": catalogue.scales, "meanings": verdicts.MEANINGS, "papers": catalogue.papers,
        "names": {key: name_paper(catalogue, key) for key in catalogue.papers}, "claims": claims, "by_paper": by_paper,
        "strip_axis": drawings.make_axis(points, 6, 144, 0.12),
    }  # fmt: skip
    environment = make_environment()

    def write(path: str, template: str, **values: object) -> None:
        text = environment.get_template(f"{template}.md.j2").render(common | values)
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(re.sub(r"\n\s*\n", "\n\n", text).lstrip(), encoding="utf-8")

    primary = [claim for claim in claims if claim.is_primary]
    others = [claim for claim in claims if not claim.is_primary]
    write(
        "index.md",
        "index",
        primary=primary,
        incomplete=[
            one for one in primary if int(one.row["n_seeds"] or 0) < int(one.row["n_planned"])
        ],
        exploratory=[claim for claim in others if claim.row["kind"] == "paper"],
        own=[claim for claim in others if claim.row["kind"] == "control"],
    )
    ordered = sorted(
        claims, key=lambda one: (not one.is_primary, verdicts.VERDICTS.index(one.row["verdict"]))
    )
    write("claims/index.md", "claims", claims=ordered)
    for claim in claims:
        near = [
            one
            for one in by_paper[claim.row["paper"]]
            if one is not claim and one.table == claim.table
        ]
        write(
            f"claims/{claim.slug}.md", "claim", c=claim, near=near, format_cell=rewriter.format_cell
        )
    for paper in catalogue.papers:
        write(
            f"papers/{paper}.md",
            "paper",
            **_describe_paper(catalogue, paper, by_paper[paper], results, rewriter),
        )
    (out / "papers/index.md").write_text(
        f"# Papers\n\n{make_toctree(catalogue.papers, 'Four papers, and tables of our own')}",
        encoding="utf-8",
    )
    if (results / "figures").exists():
        shutil.copytree(
            results / "figures", out / "figures", ignore=shutil.ignore_patterns("*.csv")
        )
    write_documents(rewriter, commands)
    return len(claims)


def _describe_paper(
    catalogue: Catalogue,
    paper: str,
    claims: list[MeasuredClaim],
    results: Path,
    rewriter: LinkRewriter,
) -> dict[str, object]:
    """Return the values of a paper's page."""
    entry = catalogue.papers[paper]
    shown = [claim for claim in claims if claim.is_primary or claim.effect is not None]
    names = list(entry.displays)
    shown.sort(key=lambda claim: (not claim.is_primary, names.index(claim.table)))
    tables = []
    figures = []
    for name, display in entry.displays.items():
        title = f"{display.source}: {display.title}"
        file = results / "tables" / paper / f"{name}.md"
        if file.exists():
            text = file.read_text(encoding="utf-8").partition("\n")[
                2
            ]  # its first line is the title
            tables.append((name, title, rewriter.replace_links(text, file)))
        if (results / "figures" / paper / f"{name}.svg").exists():
            figures.append((name, title, display.note or display.title))
    notes = catalogue.root / "papers" / paper / "NOTES.md"
    identifier = re.search(r"arXiv (\d{4}\.\d{5})", entry.experiments.citation)
    text = notes.read_text(encoding="utf-8").partition("\n")[2] if notes.exists() else "None yet."
    return {
        "paper": paper,
        "entry": entry,
        "ours": claims,
        "link": Markup(f" · [arXiv](https://arxiv.org/abs/{identifier[1]})") if identifier else "",
        "shown": shown,
        "tables": tables,
        "figures": figures,
        # One level down, because the page has a heading for them.
        "notes": re.sub(
            r"^(##+ )", r"#\1", rewriter.replace_links(text, notes), flags=re.MULTILINE
        ),
    }
