"""The output of claims.csv in the terminal."""

import re
from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from workflow_scripts.common.console import make_console
from workflow_scripts.config.catalogue import Paper
from workflow_scripts.reporting.claims.claim_rows import (
    STATES,
    ClaimRow,
    format_effect,
    format_published_effect,
    read_claim_rows,
)
from workflow_scripts.reporting.claims.outcome import (
    NO_VERDICT,
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    VERDICTS,
)

MOST_LINES = 10  # of primary claims in a summary
LOG_WIDTH = 120  # columns of the table of claims, and of output that is no terminal
PRIMARY_TITLE = "Primary claims at {}: named in the analysis plans before their seeds were run"
COLOURS = dict(zip(STATES, ("green", "red", "yellow", "dim", "dim", "dim"), strict=True))


def print_claims(path: Path, scale: str) -> None:
    """Print primary and decided claims of a claims.csv, and what the others come to.

    These are the counts of all verdicts, and the reasons for missing verdicts.
    """
    rows = read_claim_rows(path)
    console = make_console(LOG_WIDTH)
    primary = [row for row in rows if row.is_primary]
    exploratory = [row for row in rows if not row.is_primary]
    decided = [row for row in exploratory if row.verdict in (REPRODUCED, NOT_REPRODUCED)]
    print_claim_table(console, PRIMARY_TITLE.format(scale), primary, scale)
    print_claim_table(console, f"Exploratory claims at {scale} that are decided", decided, scale)
    print_direction(console, primary + decided)
    for paper, of_paper in groupby(primary, attrgetter("paper")):
        print_verdict_counts(console, f"primary claims of {paper}", list(of_paper), scale)
    print_exploratory_counts(console, rows, scale)
    print_missing_verdicts(console, rows, scale)


def print_paper(rows: list[ClaimRow], scale: str, shows_all: bool) -> None:
    """Print the primary claims of a paper, and what the others come to, or all of them as well.

    A paper without primary claims has all its claims printed.
    """
    console = make_console(LOG_WIDTH)
    primary = [row for row in rows if row.is_primary]
    exploratory = [row for row in rows if not row.is_primary]
    shown = primary
    print_claim_table(console, PRIMARY_TITLE.format(scale), primary, scale)
    if shows_all or not primary:
        shown = rows
        print_claim_table(console, f"Exploratory claims at {scale}", exploratory, scale)
    print_direction(console, shown)
    print_verdict_counts(console, "primary claims", primary, scale)
    print_exploratory_counts(console, rows, scale)
    print_missing_verdicts(console, rows, scale)


def print_direction(console: Console, shown: list[ClaimRow]) -> None:
    """Say what the sign of an effect means; nothing if no effect is shown."""
    if any(row.effect is not None for row in shown):
        direction = "a positive one is as the paper says (docs/results.md)"
        console.print(f"Effects are in the claimed direction: {direction}.\n")


def print_claim_summary(console: Console, path: Path, scale: str) -> None:
    """Print a claims.csv in a few lines: some primary claims, and how many claims of each verdict.

    The primary claims are those that are run, decided ones first, at most MOST_LINES.
    """
    rows = read_claim_rows(path)
    primary = sorted(
        (row for row in rows if row.is_primary), key=lambda row: VERDICTS.index(row.verdict)
    )
    shown = [row for row in primary if row.verdict != NOT_RUN][:MOST_LINES]
    width = max((len(f"{row.paper}/{row.claim}") for row in shown), default=0)
    for row in shown:
        name = f"{row.paper}/{row.claim}"
        state = f"[{COLOURS[row.state]}]{row.state}[/]"
        effect = format_effect(row) or row.explanation
        console.print(f"  {escape(name):{width}}  {state}: {escape(effect)}")
    if len(shown) < len(primary):
        console.print(f"  and {len(primary) - len(shown)} more primary claims")
    print_verdict_counts(console, "primary claims", primary, scale)
    print_exploratory_counts(console, rows, scale)
    console.print(f"All of them: .venv/bin/python -m workflow_scripts claims --show {path}")


def print_claim_table(console: Console, title: str, rows: list[ClaimRow], scale: str) -> None:
    """Print claims as a table, or in some lines each where a terminal is too narrow for it.

    Prints nothing if none of them is run.
    """
    if all(row.verdict == NOT_RUN for row in rows):
        return
    console.print(f"[bold]{title}[/]")
    if console.width >= LOG_WIDTH:
        console.print(build_claim_table(rows, scale), soft_wrap=False)
    else:
        print_claim_lines(console, rows)
    console.print()


def print_claim_lines(console: Console, rows: list[ClaimRow]) -> None:
    """Print each claim in some lines of the console's width, grouped by paper."""
    for paper, of_paper in groupby(rows, attrgetter("paper")):
        console.print(f"[bold]{paper}[/]")
        for row in of_paper:
            console.print(f"  {_format_name(row)}")
            facts = Table(box=None, pad_edge=False, show_header=False)
            facts.add_row("    effect", escape(_describe_effect(row)))
            facts.add_row("    verdict", _format_verdict(row))
            console.print(facts, soft_wrap=False)


def print_claims_alone(path: Path, scale: str, papers: Mapping[str, Paper]) -> None:
    """Print each claim of a claims.csv in some lines: its effect, and its verdict with the reason.

    They were judged without the other claims of their paper. An exploratory one may be primary at
    another scale.
    """
    console = make_console(LOG_WIDTH)
    for row in read_claim_rows(path):
        role = f"{row.role} claim"
        scales = papers[row.paper].list_planned_scales(row.claim)
        if scales and not row.is_primary:
            role += f", primary at {' and '.join(scales)}"
        console.print(f"[bold]{row.paper}/{escape(row.claim)}[/] at {scale}: {role}")
        console.print(f"  {escape(row.statement)}")
        console.print(f"  effect    {escape(_describe_effect(row))}")
        if row.caveat:
            console.print(f"  caveat    {escape(row.caveat)}")
        console.print(f"  verdict   {_format_verdict(row)}")


def _describe_effect(row: ClaimRow) -> str:
    """Format the effect with what is claimed, what is published, and the number of seeds."""
    parts = [format_effect(row) or "none", f"claimed {_format_margin(row)}"]
    published = format_published_effect(row)
    if published:
        parts.append(f"published {published}")
    seeds = _format_seeds(row)
    if seeds:
        parts.append(f"seeds {seeds}")
    return "; ".join(parts)


def print_exploratory_counts(console: Console, rows: list[ClaimRow], scale: str) -> None:
    """Print the number of exploratory claims by verdict, those that are controls of ours apart."""
    exploratory = [row for row in rows if not row.is_primary]
    of_papers = [row for row in exploratory if row.kind == "paper"]
    print_verdict_counts(console, "exploratory claims of the papers", of_papers, scale)
    controls = [row for row in exploratory if row.is_control]
    print_verdict_counts(console, "controls of ours", controls, scale)


def print_verdict_counts(console: Console, title: str, rows: list[ClaimRow], scale: str) -> None:
    """Print the number of claims by verdict; nothing without claims.

    title: what the claims are, with `claims` or `controls` in it.
    """
    if not rows:
        return
    counts = Counter(row.state for row in rows)
    parts = [f"{counts[state]} {state}" for state in STATES if counts[state]]
    noun = title
    if len(rows) == 1:
        noun = re.sub("(claim|control)s", r"\1", title)
    console.print(f"{len(rows)} {noun} at {scale}: {', '.join(parts)}")


def print_missing_verdicts(console: Console, rows: list[ClaimRow], scale: str) -> None:
    """Print why claims have no verdict, with the number of claims for each reason."""
    reasons = Counter(shorten_reason(row.reason) for row in rows if row.state == NO_VERDICT)
    if reasons:
        parts = [f"{reason} ({count})" for reason, count in reasons.most_common()]
        console.print(f"no verdict: {'; '.join(parts)}")
    if any(row.is_planned for row in rows):
        console.print("planned: seeds of the analysis plan are still to be run, no verdict yet")
    if any(row.verdict == NOT_RUN for row in rows):
        console.print(f"not run: {scale} does not measure it, or its runs are not done yet")


def shorten_reason(reason: str) -> str:
    """Return a reason for `no verdict` without the details of one claim."""
    if reason.startswith("says nothing while "):
        return "a gain that the claim supposes is not reproduced"
    return reason.split(":")[0]


def build_claim_table(rows: list[ClaimRow], scale: str) -> Table:
    """Make a table with a row per claim, grouped by paper; names are on one line."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("claim", overflow="fold", no_wrap=True)
    table.add_column("effect (interval)", justify="right", no_wrap=True)
    table.add_column("claimed", justify="right", no_wrap=True)
    table.add_column("seeds", justify="right", no_wrap=True)
    table.add_column(f"verdict at {scale}", overflow="fold")
    for paper, of_paper in groupby(rows, attrgetter("paper")):
        table.add_row(f"[bold]{paper}[/]")
        for row in of_paper:
            table.add_row(*_format_claim(row))
    return table


def _format_claim(row: ClaimRow) -> tuple[str, str, str, str, str]:
    """Format name, effect, margin, number of seeds, and verdict with its reason."""
    return (
        f"  {_format_name(row)}",
        format_effect(row),
        _format_margin(row),
        _format_seeds(row),
        _format_verdict(row),
    )


def _format_name(row: ClaimRow) -> str:
    """Format the name, with `(ours)` of a control."""
    name = escape(row.claim)
    return f"{name} (ours)" if row.is_control else name


def _format_margin(row: ClaimRow) -> str:
    """Format what the effect must exceed: `> 4`."""
    return f"> {row.margin:g}".replace("-", "−")


def _format_seeds(row: ClaimRow) -> str:
    """Format the number of seeds: `3 of 9` of a primary claim; empty if there is none."""
    seeds = "" if row.n_seeds is None else str(row.n_seeds)
    if row.n_planned:
        seeds += f" of {row.n_planned}"
    return seeds


def _format_verdict(row: ClaimRow) -> str:
    """Format the verdict in its colour, with its reason."""
    verdict = f"[{COLOURS[row.state]}]{row.state}[/]"
    if row.explanation:
        reason = row.explanation.removeprefix(f"{row.verdict}: ")
        verdict += f": {escape(reason)}"
    return verdict
