"""The documents of the repository as pages: docs/*.md and the notes of the papers, with links that work on the site."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from markupsafe import Markup

from workflow_scripts.reporting.site.measured_claims import ComparedCell, MeasuredClaim, make_slug

GUIDE = ("start", "offline", "gpu", "cluster", "reruns", "adding", "statistics", "glossary")
REFERENCE = ("results", "python", "configuration", "commands", "faults", "security")
LINK = re.compile(r"(!?\[(?:[^\]\\]|\\.)*\])\(([^)\s]+)\)")


class LinkRewriter:
    """Turns links between files of the repository into links between pages. Other files are copied for download."""

    def __init__(self, root: Path, results: Path, out: Path):
        self.root, self.results, self.out = root.resolve(), results.resolve(), out

    def replace_links(self, text: str, file: Path) -> str:
        """Return the text of the document `file` with its links rewritten."""
        folder = file.resolve().parent

        def replace(found: re.Match) -> str:
            label, target = found.groups()
            if re.match(r"[a-z]+:|#", target):
                return found[0]
            path, _, part = target.partition("#")
            place = self._find_page((folder / path).resolve(), part)
            return f"{label}({place})" if place else label.lstrip("!")[1:-1]

        return LINK.sub(replace, text)

    def format_cell(self, claim: MeasuredClaim, cell: ComparedCell) -> Markup:
        """Link a cell to its table, if the paper's page has it."""
        paper, table = claim.row["paper"], cell.key.split("/")[0]
        text = Markup("<code>{}</code>").format(cell.key)
        if not (self.results / "tables" / paper / f"{table}.md").exists():
            return text
        return Markup('<a href="../papers/{}.html#{}">{}</a>').format(
            paper, make_slug(f"{paper}-{table}"), text
        )

    def _find_page(self, target: Path, part: str) -> str:
        """Return the link to a file of the repository; empty for a folder."""
        if target == self.root / "README.md":
            return "/index.md"
        if target == self.results / "claims.csv":
            return f"/claims/{make_slug(part)}.md" if part else "/claims/index.md"
        parts = (
            list(target.relative_to(self.root).parts) if target.is_relative_to(self.root) else []
        )
        if parts[:1] == ["docs"] and target.suffix == ".md":
            return f"/{'/'.join(parts)}{'#' * bool(part)}{part}"
        if parts[:1] == ["papers"] and parts[-1] == "NOTES.md":
            return f"/papers/{parts[1]}.md#findings-and-decisions"
        if target.is_relative_to(self.results / "tables") and target.with_suffix(".md").exists():
            return f"#{make_slug(f'{target.parent.name}-{target.stem}')}"
        if not parts or not target.is_file():
            return ""
        copy = self.out / "files" / Path(*parts)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(target, copy)
        return f"/{copy.relative_to(self.out).as_posix()}"


def write_documents(rewriter: LinkRewriter, commands: str) -> None:
    """Write docs/*.md, the page of the commands, and the index of both."""
    folder = rewriter.out / "docs"
    folder.mkdir()
    files = {file.stem: file for file in sorted((rewriter.root / "docs").glob("*.md"))}
    for name, file in files.items():
        text = rewriter.replace_links(file.read_text(encoding="utf-8"), file)
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "commands.md").write_text(commands, encoding="utf-8")
    files["commands"] = folder / "commands.md"
    guide = [name for name in GUIDE if name in files] + sorted(files.keys() - {*GUIDE, *REFERENCE})
    trees = make_toctree(guide, "Guide") + make_toctree(
        [name for name in REFERENCE if name in files], "Reference"
    )
    (folder / "index.md").write_text(f"# Documentation\n\n{trees}", encoding="utf-8")


def make_toctree(pages: Iterable[str], caption: str) -> str:
    """Make the directive that lists pages under a caption."""
    return "\n".join(
        ["```{toctree}", f":caption: {caption}", ":maxdepth: 1", "", *pages, "```", ""]
    )
