"""The claim tables of README: primary claims with interval and verdict, others by verdict."""

from collections import Counter
from collections.abc import Iterable

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.analysis_plan import ANY_WRONG, FIRST_PLAN
from workflow_scripts.reporting.claims.claim_rows import (
    ClaimRow,
    format_effect,
    format_published_effect,
)
from workflow_scripts.reporting.claims.verdicts import VERDICTS

BEGIN = (
    "<!-- begin claims: python -m workflow_scripts readme results/reference/small/claims.csv"
    " --write README.md -->"
)
END = "<!-- end claims -->"
WRONG_PER_PLAN = round(100 * ANY_WRONG / 2)  # percent
PRIMARY_HEADINGS = (
    "paper",
    "primary claim",
    "published effect",
    "effect at {scale} (interval)",
    "seeds",
    "verdict",
)
PAPER_HEADINGS = (
    "paper",
    "plans: chance of any wrong primary verdict",
    "exploratory claims of the paper",
    *VERDICTS,
)


def format_tables(rows: list[ClaimRow], papers: list[str], scale: str) -> str:
    """Format two Markdown tables.

    The first has the primary claims, the second the number of exploratory claims per paper and
    verdict. Claims that are controls of ours are counted in neither. `papers` gives the order.
    """
    rows = sorted(rows, key=lambda row: papers.index(row.paper))
    primary = [row for row in rows if row.is_primary]
    exploratory = [row for row in rows if not row.is_primary and not row.is_control]
    lines = [
        _format_row(PRIMARY_HEADINGS).format(scale=scale),
        "|---|---|---|---|---|---|",
    ]
    for row in primary:
        lines.append(_format_row(_format_primary_cells(row, scale)))
    lines.append("")
    lines.append(_format_row(PAPER_HEADINGS))
    lines.append("|---" * len(PAPER_HEADINGS) + "|")
    for paper in papers:
        verdicts = Counter(row.verdict for row in exploratory if row.paper == paper)
        if not verdicts:
            continue
        plans = {row.plan for row in primary if row.paper == paper}
        risk = ""
        if plans:
            risk = f"{len(plans)}: at most {WRONG_PER_PLAN * len(plans)}%"
        link = f"[{paper}](papers/{paper}/NOTES.md)"
        counts = [str(verdicts[verdict]) for verdict in VERDICTS]
        lines.append(_format_row([link, risk, str(verdicts.total()), *counts]))
    return "\n".join(lines)


def replace_tables(document: str, tables: str, name: str) -> str:
    """Replace the tables between two markers of a document.

    Raises UserError unless it has both exactly once.
    """
    before, _, after = _split_at_tables(document, name)
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


def extract_tables(document: str, name: str) -> str:
    """Return the tables between two markers of a document.

    Raises UserError unless it has both exactly once.
    """
    _, tables, _ = _split_at_tables(document, name)
    return tables.strip("\n")


def _split_at_tables(document: str, name: str) -> tuple[str, str, str]:
    """Split a document at its two markers, which are in none of the parts."""
    if document.count(BEGIN) != 1 or document.count(END) != 1:
        raise UserError(
            f"{name}: must have {BEGIN} and {END} once each; add them where the tables belong"
        )
    before, _, rest = document.partition(BEGIN)
    tables, end, after = rest.partition(END)
    if not end:
        raise UserError(f"{name}: {END} must follow {BEGIN}; exchange them")
    return before, tables, after


def _format_primary_cells(row: ClaimRow, scale: str) -> list[str]:
    measured = row.n_seeds or 0
    planned = row.n_planned or 0
    seeds = f"{measured} seeds"
    if measured != planned:
        seeds = f"{measured} of {planned} seeds"
    statement = row.statement
    if row.is_control:
        statement += " (a control of ours)"
    if row.plan != FIRST_PLAN:
        statement += f" ([later plan](papers/{row.paper}/{row.plan}))"
    # No effect before the last seed is done: it would tempt a reader to stop early.
    effect = format_effect(row) if row.has_planned_seeds else ""
    verdict = f"**{row.verdict}** at {scale}"
    if row.reason not in ("", seeds):
        verdict += f": {row.reason}"
    texts = (row.paper, statement, format_published_effect(row), effect, seeds, verdict)
    return [text.replace("|", "\\|").replace("\n", " ") for text in texts]


def _format_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
