"""The documents of the repository as pages of the site, with links that work there."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from markupsafe import Markup

from workflow_scripts.common.result_folders import ExportFolder
from workflow_scripts.reporting.site.measured_claims import ComparedCell, MeasuredClaim, make_slug

GUIDE = (
    "start",
    "offline",
    "gpu",
    "cluster",
    "reruns",
    "adding",
    "code",
    "statistics",
    "glossary",
)
REFERENCE = ("verdicts", "results", "python", "configuration", "commands", "faults", "security")
LINK = re.compile(r"(!?\[(?:[^\]\\]|\\.)*\])\(([^)\s]+)\)")


class LinkRewriter:
    """Turns links between files of the repository into links between pages.

    Other files are copied for download.
    """

    def __init__(self, root: Path, results: Path, out: Path):
        self.root = root.resolve()
        self.results = ExportFolder(results.resolve())
        self.out = out

    def replace_links(self, text: str, file: Path) -> str:
        """Return the text of the document `file` with its links rewritten."""
        folder = file.resolve().parent

        def replace(link: re.Match) -> str:
            """Return a link as it is on the site; the words alone where it leads nowhere there."""
            label, target = link.groups()
            if re.match(r"[a-z]+:|#", target):
                return link[0]
            path, _, part = target.partition("#")
            page = self._find_page((folder / path).resolve(), part)
            if not page:
                return label.lstrip("!")[1:-1]  # the words alone
            return f"{label}({page})"

        return LINK.sub(replace, text)

    def format_cell(self, claim: MeasuredClaim, cell: ComparedCell) -> Markup:
        """Link a cell to its table, if the paper's page has it."""
        paper = claim.row.paper
        table = cell.key.split("/")[0]
        text = Markup("<code>{}</code>").format(cell.key)
        if not self.results.table(paper, table).markdown.exists():
            return text
        part = make_slug(f"{paper}-{table}")
        return Markup('<a href="../papers/{}.html#{}">{}</a>').format(paper, part, text)

    def _find_page(self, target: Path, part: str) -> str:
        """Return the link to a file of the repository; empty for a folder or a missing file.

        part: what is after `#` in the link, or "". A file that is no page is copied for download.
        """
        if target == self.root / "README.md":
            return "/index.md"
        if target == self.results.claims.table:
            if part:
                return f"/claims/{make_slug(part)}.md"
            return "/claims/index.md"
        path = Path()
        if target.is_relative_to(self.root):
            path = target.relative_to(self.root)
        if path.parts[:1] == ("docs",) and path.suffix == ".md":
            page = f"/{path.as_posix()}"
            return f"{page}#{part}" if part else page
        if path.parts[:1] == ("papers",) and path.name == "NOTES.md":
            return f"/papers/{path.parts[1]}.md#findings-and-decisions"
        paper = target.parent.name
        is_of_table = target.is_relative_to(self.results.tables)
        if is_of_table and self.results.table(paper, target.stem).markdown.exists():
            return f"#{make_slug(f'{paper}-{target.stem}')}"
        if not path.parts or not target.is_file():
            return ""
        return self._copy_file(target, path)

    def _copy_file(self, file: Path, path: Path) -> str:
        """Copy a file of the repository for download, and return the link to it."""
        copy = self.out / "files" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
        return f"/{copy.relative_to(self.out).as_posix()}"


def write_documents(rewriter: LinkRewriter, commands: str) -> None:
    """Write docs/*.md, the page of the commands, and the index of both.

    commands: the text of their page. A document that neither GUIDE nor REFERENCE names is at the
    end of the guide.
    """
    folder = rewriter.out / "docs"
    folder.mkdir()
    names = {"commands"}
    for file in sorted((rewriter.root / "docs").glob("*.md")):
        names.add(file.stem)
        text = rewriter.replace_links(file.read_text(encoding="utf-8"), file)
        (folder / file.name).write_text(text, encoding="utf-8")
    (folder / "commands.md").write_text(commands, encoding="utf-8")
    guide = [name for name in GUIDE if name in names]
    guide += sorted(names - {*GUIDE, *REFERENCE})
    reference = [name for name in REFERENCE if name in names]
    trees = make_toctree(guide, "Guide") + make_toctree(reference, "Reference")
    (folder / "index.md").write_text(f"# Documentation\n\n{trees}", encoding="utf-8")


def make_toctree(pages: Iterable[str], caption: str) -> str:
    """Make the directive that lists pages under a caption."""
    head = ["```{toctree}", f":caption: {caption}", ":maxdepth: 1", ""]
    return "\n".join([*head, *pages, "```", ""])
