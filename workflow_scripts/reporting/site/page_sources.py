"""Write the site's Markdown pages with drawings, from exported results, papers/ and docs/."""

import re
import shutil
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from workflow_scripts.common.result_folders import COMMITTED, ReportFolder
from workflow_scripts.config.catalogue import Catalogue, Paper
from workflow_scripts.config.display_schema import Display
from workflow_scripts.config.requested import list_claim_scales
from workflow_scripts.reporting.claims.claim_rows import (
    STATE_MEANINGS,
    STATES,
    format_effect,
    format_published_effect,
)
from workflow_scripts.reporting.site import claim_words, drawings
from workflow_scripts.reporting.site.documents import LinkRewriter, make_toctree, write_documents
from workflow_scripts.reporting.site.measured_claims import (
    MeasuredClaim,
    make_slug,
    rank_claim,
    read_measured_claims,
)
from workflow_scripts.reporting.tables.layout import format_number

LONGEST_LINK = 44  # letters of a title in a list of links
LONGEST_ABBREVIATION = 6  # letters of the key of a paper
# The share of effects that are beyond either end of the axis that tables share, if there are at
# least as many values of a unit.
CUT = 0.12
MANY_VALUES = 100


def name_paper(catalogue: Catalogue, key: str) -> str:
    """Return the short name of a paper: its own, that of its method, or else its key."""
    name = catalogue.papers[key].experiments.name
    if name:
        return name
    method = catalogue.methods.get(key.replace("_", "-"))
    if method and method.title:
        return method.title
    if len(key) <= LONGEST_ABBREVIATION:
        return key.upper()
    return key.capitalize()


def draw_sides(claim: MeasuredClaim) -> Markup:
    """Draw both sides by seed. Those of a trend have different units, and get a drawing each."""
    statement = claim.row.statement
    if claim.row.relation != "falls_with":
        return Markup(drawings.draw_seeds(claim.cells, statement))
    left = [cell for cell in claim.cells if cell.side == "left"]
    right = [cell for cell in claim.cells if cell.side == "right"]
    drawn = drawings.draw_seeds(left, statement) + drawings.draw_seeds(right, statement)
    return Markup(drawn)


def format_short(value: float, digits: int = 4, sign: str = "") -> str:
    """Format a number with this many significant digits; only its decimals are rounded.

    sign: `+` to have one before a positive number, too.
    """
    if abs(value) >= 10 ** (digits - 1):
        text = f"{value:{sign}.0f}"
    else:
        text = f"{value:{sign}.{digits}g}"
    return text.replace("-", "−")


def start_with_capital(text: str) -> str:
    """Return a text that begins with a capital letter, with all other letters as they are."""
    return text[:1].upper() + text[1:]


def count_by_state(claims: Sequence[MeasuredClaim]) -> dict[str, int]:
    """Count the claims of each verdict, and those that are planned."""
    counts = Counter(claim.row.state for claim in claims)
    return {state: counts[state] for state in STATES}


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
        "rounded": lambda value: format_short(value, digits=3, sign="+"),
        "short": format_short,
        "capital": start_with_capital,
        "markdown": lambda text: re.sub(r"([\\*_`\[\]<|$])", r"\\\1", text),
    }
    environment.globals |= {
        "draw_effect": _allow_markup(drawings.draw_effect),
        "draw_curves": _allow_markup(drawings.draw_curves),
        "draw_strip": _allow_markup(drawings.draw_strip),
        "draw_sides": draw_sides,
        "describe_comparison": claim_words.describe_comparison,
        "explain_metrics": claim_words.explain_metrics,
        "list_pair_effects": claim_words.list_pair_effects,
        "name_sides": claim_words.name_sides,
        "format_effect": format_effect,
        "format_number": format_number,
        "format_published_effect": format_published_effect,
        "count": count_by_state,
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
        """Write the page `path` from a template."""
        (self.out / path).parent.mkdir(parents=True, exist_ok=True)
        text = render_markdown(self.environment, template, self.common | values)
        (self.out / path).write_text(text, encoding="utf-8")


def render_markdown(environment: Environment, template: str, values: dict[str, object]) -> str:
    """Return the Markdown of a template, without repeated empty lines."""
    text = environment.get_template(f"{template}.md.j2").render(values)
    return re.sub(r"\n\s*\n", "\n\n", text).lstrip()


def list_common_values(
    catalogue: Catalogue, claims: Sequence[MeasuredClaim], scale: str, claim_pages: bool
) -> dict[str, object]:
    """Return the values that all templates can use, by their names.

    claim_pages: whether there is a page for each claim, and one with a filter for all.
    """
    by_paper: dict[str, list[MeasuredClaim]] = {paper: [] for paper in catalogue.papers}
    for claim in claims:
        by_paper[claim.row.paper].append(claim)
    return {
        "scale": scale,
        "scales": catalogue.scales,
        "committed_scale": COMMITTED.path.name,
        "meanings": STATE_MEANINGS,
        "metrics": catalogue.meanings,
        "papers": catalogue.papers,
        "names": {key: name_paper(catalogue, key) for key in catalogue.papers},
        "claims": claims,
        "by_paper": by_paper,
        "claim_pages": claim_pages,
        "strip_axes": make_strip_axes(claims),
    }


def write_sources(catalogue: Catalogue, results: Path, scale: str, commands: str, out: Path) -> int:
    """Write all pages to `out`, and return the number of claims.

    commands: the text of the page of the commands.
    """
    claims = read_measured_claims(catalogue, results)
    writer = PageWriter(out, list_common_values(catalogue, claims, scale, claim_pages=True))
    rewriter = LinkRewriter(catalogue.root, results, out)
    write_first_page(writer, claims)
    writer.write_page("claims/index.md", "claims", claims=sorted(claims, key=rank_claim))
    for claim in claims:
        write_claim_page(writer, catalogue, claim, claims, rewriter)
    for paper in catalogue.papers:
        of_paper = [claim for claim in claims if claim.row.paper == paper]
        values = describe_paper(catalogue, paper, of_paper, scale, rewriter)
        writer.write_page(f"papers/{paper}.md", "paper", **values)
    toctree = make_toctree(catalogue.papers, "Four papers, and tables of our own")
    (out / "papers/index.md").write_text(f"# Papers\n\n{toctree}", encoding="utf-8")
    if (results / "figures").exists():
        without_data = shutil.ignore_patterns("*.csv")
        shutil.copytree(results / "figures", out / "figures", ignore=without_data)
    write_documents(rewriter, commands)
    return len(claims)


def write_claim_page(
    writer: PageWriter,
    catalogue: Catalogue,
    claim: MeasuredClaim,
    claims: Sequence[MeasuredClaim],
    rewriter: LinkRewriter,
) -> None:
    """Write the page of a claim, with links to those of `claims` that are on the same table."""
    row = claim.row
    near = []
    for other in claims:
        if other is not claim and (other.row.paper, other.table) == (row.paper, claim.table):
            near.append(other)
    scales = list_claim_scales(catalogue, f"{row.paper}/{row.claim}")
    scale = writer.common["scale"]
    run_scale = scale if scale in scales else next(iter(scales), None)
    writer.write_page(
        f"claims/{claim.slug}.md",
        "claim",
        c=claim,
        near=near,
        run_scale=run_scale,
        format_cell=rewriter.format_cell,
    )


def make_strip_axes(claims: Sequence[MeasuredClaim]) -> dict[str, drawings.Axis]:
    """Make unit -> the axis that its rows share in all tables of claims.

    Where there are many claims the axis leaves out the largest and the smallest effects. Margins
    are no part of it, because a few large ones would leave no room for the effects of all others:
    a claim that begins beyond the axis is drawn on an axis of its own.
    """
    values: defaultdict[str, list[float | None]] = defaultdict(list)
    nulls: dict[str, float] = {}
    for claim in claims:
        row = claim.row
        nulls[row.unit] = row.null
        values[row.unit] += [row.ci_low, row.ci_high, row.published_effect]
        if row.ci_low is None:
            values[row.unit].append(row.effect)
    axes = {}
    for unit, of_unit in values.items():
        cut = CUT if len(of_unit) >= MANY_VALUES else 0
        axes[unit] = drawings.make_axis(of_unit, 6, 144, cut, nulls[unit])
    return axes


def write_first_page(writer: PageWriter, claims: Sequence[MeasuredClaim]) -> None:
    """Write index.md: primary and exploratory claims, each by verdict, and the papers.

    `own` are exploratory controls of ours, which are counted apart.
    """
    primary = [claim for claim in claims if claim.row.is_primary]
    exploratory = [claim for claim in claims if not claim.row.is_primary]
    writer.write_page(
        "index.md",
        "index",
        primary=primary,
        incomplete=[claim for claim in primary if claim.row.is_planned],
        exploratory=[claim for claim in exploratory if not claim.row.is_control],
        own=[claim for claim in exploratory if claim.row.is_control],
    )


def describe_paper(
    catalogue: Catalogue,
    paper: str,
    claims: list[MeasuredClaim],
    scale: str,
    rewriter: LinkRewriter,
) -> dict[str, object]:
    """Return the values of a paper's page, by their names in its template.

    claims: those of the paper. rewriter: it knows the folder with tables and figures.
    """
    entry = catalogue.papers[paper]
    with_effect = [
        claim for claim in claims if claim.row.is_primary or claim.row.effect is not None
    ]
    shown = list_shown_results(entry, paper, rewriter.results, entry.displays)
    tables = []
    for table in shown.tables:
        text = rewriter.replace_links(table.text, table.file)
        more = rewriter.replace_links(table.more, table.file)
        tables.append(table._replace(text=text, more=more))
    link = Markup("")
    identifier = re.search(r"arXiv (\d{4}\.\d{5})", entry.experiments.citation)
    if identifier:
        link = Markup(f" · [arXiv](https://arxiv.org/abs/{identifier[1]})")
    return {
        "paper": paper,
        "entry": entry,
        "level": 2,
        "ours": claims,
        "link": link,
        "shown": rank_by_table(entry, with_effect),
        "has_plans": bool(entry.list_plans(scale)),
        "planned_scales": entry.list_planned_scales(),
        "tables": tables,
        "figures": shown.figures,
        "figures_root": "/",
        "notes": _read_notes(catalogue.root / "papers" / paper / "NOTES.md", rewriter),
    }


class ShownTable(NamedTuple):
    """A table of a paper.

    link: its words in a list of links. text, more: its Markdown without the title, up to the notes
    on how tables are to be read, and these notes. file: that of the Markdown.
    """

    name: str
    title: str
    link: str
    text: str
    more: str
    file: Path


class ShownFigure(NamedTuple):
    """A figure of a paper: its name, its title, its words in a list of links, the note below it."""

    name: str
    title: str
    link: str
    note: str


class ShownResults(NamedTuple):
    """The tables and figures of a paper that are there, in the order of its displays."""

    tables: list[ShownTable]
    figures: list[ShownFigure]


def list_shown_results(
    entry: Paper, paper: str, folder: ReportFolder, names: Iterable[str]
) -> ShownResults:
    """List those of the displays `names` whose files are in the folder."""
    shown = ShownResults([], [])
    for name in names:
        display = entry.displays[name]
        title = f"{display.source}: {display.title}"
        link = _shorten_title(display)
        file = folder.table(paper, name).markdown
        if file.exists():
            own_notes = 1 if display.note else 0
            text, more = _split_notes(_read_below_title(file), own_notes)
            shown.tables.append(ShownTable(name, title, link, text, more, file))
        if folder.figure(paper, name).svg.exists():
            shown.figures.append(ShownFigure(name, title, link, display.note or display.title))
    return shown


def _shorten_title(display: Display) -> str:
    """Return `Table 2` for that table of a paper, and the beginning of its title for any other."""
    if re.fullmatch(r"(Table|Figure) \w+", display.source):
        return display.source
    return textwrap.shorten(display.title, LONGEST_LINK, placeholder=" …")


def _split_notes(text: str, own_notes: int) -> tuple[str, str]:
    """Split the Markdown of a table after its first notes, those that are of it alone."""
    notes = [match.start() for match in re.finditer(r"^- ", text, re.MULTILINE)]
    if len(notes) <= own_notes:
        return text, ""
    start = notes[own_notes]
    return text[:start], text[start:]


def rank_by_table(entry: Paper, claims: Sequence[MeasuredClaim]) -> list[MeasuredClaim]:
    """Sort the claims of a paper: primary ones first, then by their first table."""
    names = list(entry.displays)
    return sorted(claims, key=lambda claim: (not claim.row.is_primary, names.index(claim.table)))


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
