"""What `verify` says of a name that it cannot verify, and of a path that is no crate."""

from pathlib import Path

from workflow_scripts.common.result_folders import COMMITTED, CrateFolder, ExportFolder
from workflow_scripts.common.validation import find_close_name
from workflow_scripts.config.catalogue import Catalogue, Paper
from workflow_scripts.config.display_schema import TableDisplay

TAKEN = (
    "verify takes a crate (its zip file or folder), a folder of committed results such as "
    f"{COMMITTED.path}, a paper or a claim, PAPER/CLAIM"
)
MOST_CLAIMS = 12  # of a table, in one line


def explain_name(catalogue: Catalogue, name: str) -> str:
    """Say what a name is that is neither a paper nor a claim, and what to verify instead."""
    paper, _, rest = name.partition("/")
    if paper not in catalogue.papers:
        return explain_unknown_name(catalogue, name)
    content = catalogue.papers[paper]
    if rest in content.displays:
        return explain_display(paper, content, rest)
    close = find_close_name(rest, content.claims_by_name)
    if close:
        return f"{name} is no claim of {paper}; did you mean '{paper}/{close}'?"
    return f"{name} is no claim of {paper}; `verify {paper}` lists its claims"


def explain_unknown_name(catalogue: Catalogue, name: str) -> str:
    """Say what was probably meant, or what `verify` takes with the papers that there are."""
    known = [str(COMMITTED.path), *catalogue.papers]
    for key, content in catalogue.papers.items():
        known += [f"{key}/{claim}" for claim in content.claims_by_name]
    close = find_close_name(name, known)
    problem = f"{name} is no crate, no folder of results, no paper and no claim"
    if close:
        return f"{problem}; did you mean '{close}'?"
    return f"{problem}; {TAKEN}; papers: {', '.join(catalogue.papers)}"


def explain_display(paper: str, content: Paper, display: str) -> str:
    """Say that a name is a table or a figure, which claims use it, and how tables are verified."""
    name = f"{paper}/{display}"
    text = f"{name} is a figure, which is verified as a part of a crate"
    if isinstance(content.displays[display], TableDisplay):
        text = f"{name} is a table; `verify {COMMITTED.path}` recomputes the cells of all tables"
    claims = [f"{paper}/{claim}" for claim in list_claims_on(content, display)]
    if not claims:
        return f"{text}; no claim compares its cells"
    listed = ", ".join(claims[:MOST_CLAIMS])
    if len(claims) > MOST_CLAIMS:
        listed += f" and {len(claims) - MOST_CLAIMS} more (`verify {paper}` lists them)"
    return f"{text}; `verify {claims[0]}` recomputes a claim on it; claims on it: {listed}"


def list_claims_on(content: Paper, display: str) -> list[str]:
    """List the claims of a paper that compare cells of a display, in their order."""
    claims = []
    for name, claim in content.claims_by_name.items():
        if any(cell.split("/")[0] == display for cell in claim.list_cells()):
            claims.append(name)
    return claims


def explain_own_results(path: Path) -> str:
    """Say what makes a crate of the results of ./reproduce, and what else checks them."""
    scale = path.resolve().name
    return (
        f"{path} has results as ./reproduce makes them; `crate --scale {scale} --out {scale}.zip` "
        "makes a crate of them, which verify takes; `check --deep` compares them with their records"
    )


def explain_path(path: Path) -> str:
    """Say that a file or folder is nothing that can be verified; of committed results, how."""
    for folder in path.parents:
        if ExportFolder(folder).claims.table.exists():
            return (
                f"{path} is a part of committed results; `verify {folder}` recomputes them all, "
                "`verify PAPER/CLAIM` one claim"
            )
    export = ExportFolder(path)
    if export.provenance.exists():
        claims = export.claims.table.name
        return f"{path} has exported results without {claims}, so there is nothing to verify"
    lacks = f", it has no {CrateFolder(path).metadata.name}" if path.is_dir() else ""
    return f"{path} is no crate{lacks}; {TAKEN}"
