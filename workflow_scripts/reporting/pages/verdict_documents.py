"""The tables of claims in README and docs/verdicts.md.

README has the verdicts of the primary claims by paper, docs/verdicts.md each primary claim with
interval and verdict, and the numbers of the others by verdict.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.analysis_plan import ANY_WRONG, FIRST_PLAN
from workflow_scripts.config.catalogue import Paper
from workflow_scripts.reporting.claims.claim_rows import (
    STATES,
    ClaimRow,
    format_effect,
    format_published_effect,
)
from workflow_scripts.reporting.claims.outcome import VERDICTS

README = Path("README.md")
VERDICTS_PAGE = Path("docs/verdicts.md")
BEGIN = (
    "<!-- begin claims: python -m workflow_scripts readme results/reference/small/claims.csv"
    " --write -->"
)
END = "<!-- end claims -->"
WRONG_PER_PLAN = round(100 * ANY_WRONG / 2)  # percent
SHORT_HEADINGS = ("paper", "primary claims at {scale}", "findings and decisions")
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
    "plans, and the chance of at least one wrong primary verdict",
    "exploratory claims of the paper",
    *VERDICTS,
)


@dataclass(frozen=True)
class Costs:
    """What the runs of an export have cost, as far as their times are recorded.

    gpu_hours: of processes. A GPU that several share is taken for less time.
    """

    runs: int
    untimed_runs: int
    core_hours: float
    gpu_hours: float

    def __str__(self) -> str:
        runs = f"{self.runs:,} trainings and scorings"
        if self.untimed_runs:
            runs += f"; {self.untimed_runs} of them have no record of time and machine"
        on_gpu = f"{self.gpu_hours:.0f} hours of processes on a GPU, which several share"
        return f"What is committed took {self.core_hours:.0f} core-hours, and {on_gpu} ({runs})."


def sum_costs(provenance: Iterable[Mapping[str, object]]) -> Costs:
    """Sum the costs of the rows of provenance.json. A core-hour is an hour of one thread."""
    runs = untimed_runs = 0
    core_seconds = gpu_seconds = 0.0
    for row in provenance:
        runs += 1
        seconds = row.get("seconds")
        threads = row.get("threads")
        if not isinstance(seconds, int | float) or not isinstance(threads, int):
            untimed_runs += 1
        elif row.get("device") == "cuda":
            gpu_seconds += seconds
        else:
            core_seconds += seconds * threads
    return Costs(runs, untimed_runs, core_seconds / 3600, gpu_seconds / 3600)


def format_documents(
    rows: list[ClaimRow], papers: Mapping[str, Paper], scale: str, costs: Costs | None
) -> dict[Path, str]:
    """Return each document with what belongs between its markers."""
    ordered = sorted(rows, key=lambda row: list(papers).index(row.paper))
    short = format_short_table(ordered, papers, scale)
    if costs:
        short += f"\n\n{costs}"
    return {README: short, VERDICTS_PAGE: format_tables(ordered, list(papers), scale)}


def format_short_table(rows: list[ClaimRow], papers: Mapping[str, Paper], scale: str) -> str:
    """Format a Markdown table of the verdicts of primary claims by paper, for README."""
    lines = [_format_row(SHORT_HEADINGS).format(scale=scale), "|---|---|---|"]
    for name, paper in papers.items():
        primary = [row for row in rows if row.is_primary and row.paper == name]
        if not primary:
            continue
        counts = count_verdicts(row for row in primary if not row.is_control)
        controls = count_verdicts(row for row in primary if row.is_control)
        if controls:
            counts += f"; controls of ours: {controls}"
        title = f"*{paper.experiments.title}* ({paper.experiments.citation})"
        notes = f"[{name}](papers/{name}/NOTES.md)"
        lines.append(_format_row([title, counts, notes]))
    return "\n".join(lines)


def count_verdicts(rows: Iterable[ClaimRow]) -> str:
    """Count primary claims by state, as `2 reproduced, 1 planned`; empty without claims."""
    counts = Counter(row.state for row in rows)
    return ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])


def format_tables(rows: list[ClaimRow], papers: list[str], scale: str) -> str:
    """Format two Markdown tables for docs/verdicts.md.

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
        link = f"[{paper}](../papers/{paper}/NOTES.md)"
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
        statement += f" ([later plan](../papers/{row.paper}/{row.plan}))"
    # No effect before the last seed is done: it would tempt a reader to stop early.
    effect = format_effect(row) if row.has_planned_seeds else ""
    verdict = f"**{row.verdict}** at {scale}"
    reason = row.reason
    if row.is_planned:
        verdict = f"**planned**: no verdict at {scale} yet"
        reason = row.cause
    if reason:
        verdict += f": {reason}"
    statement += f"<br>`{row.paper}/{row.claim}`"
    texts = (row.paper, statement, format_published_effect(row), effect, seeds, verdict)
    return [text.replace("|", "\\|").replace("\n", " ") for text in texts]


def _format_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
