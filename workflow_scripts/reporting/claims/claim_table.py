"""The columns of claims.csv, and its output in the terminal."""

import re
from collections import Counter
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MissingFileError, read_csv
from workflow_scripts.reporting.claims import verdicts
from workflow_scripts.reporting.tables.layout import format_effect, read_margin

CLAIM_COLUMNS = (
    "paper", "claim", "kind", "role", "plan", "statement", "quote", "source", "left", "right", "relation",
    "published_effect", "printed", "effect", "unit", "at_least", "smallest_effect", "quantile", "ci_low", "ci_high",
    "test", "degrees_of_freedom", "p_value", "q_value", "n_seeds", "n_planned", "protocol", "verdict", "reason",
    "caveat",
)  # fmt: skip
COUNTS = ("n_seeds", "n_planned")
NUMBERS = (
    "published_effect", "effect", "at_least", "smallest_effect", "quantile", "ci_low", "ci_high", "degrees_of_freedom",
    "p_value", "q_value",
)  # fmt: skip
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
LOG_WIDTH = 120  # columns, if the output is no terminal
COLOURS = dict(zip(verdicts.VERDICTS, ("green", "red", "yellow", "dim", "dim"), strict=True))


def print_claims(path: Path, scale: str) -> None:
    """Print primary and decided claims of a claims.csv, counts of all verdicts, and reasons for missing verdicts."""
    rows = read_claim_table(path)
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = LOG_WIDTH
    primary = [row for row in rows if row["role"] == verdicts.PRIMARY]
    others = [row for row in rows if row["role"] == verdicts.EXPLORATORY]
    decided = [
        row for row in others if row["verdict"] in (verdicts.REPRODUCED, verdicts.NOT_REPRODUCED)
    ]
    for title, found in (
        (
            f"Primary claims at {scale}: named in the analysis plans before their seeds were run",
            primary,
        ),
        (f"Exploratory claims at {scale} that are decided", decided),
    ):
        if any(row["verdict"] != verdicts.NOT_RUN for row in found):
            console.print(f"[bold]{title}[/]")
            console.print(
                build_claim_table(found, scale, console.width >= LOG_WIDTH), soft_wrap=False
            )
            console.print()
    if decided or any(row["effect"] for row in primary):
        console.print(
            "Effects are in the claimed direction: a positive one is as the paper says (docs/results.md).\n"
        )
    groups = {
        f"primary claims of {paper}": list(found)
        for paper, found in groupby(primary, lambda row: row["paper"])
    }
    groups["exploratory claims of the papers"] = [row for row in others if row["kind"] == "paper"]
    groups["controls of ours"] = [row for row in others if row["kind"] == "control"]
    for title, found in groups.items():
        if found:
            counts = Counter(row["verdict"] for row in found)
            listed = ", ".join(f"{counts[name]} {name}" for name in COLOURS if counts[name])
            named = title if len(found) > 1 else re.sub("(claim|control)s", r"\1", title)
            console.print(f"{len(found)} {named} at {scale}: {listed}")
    if reasons := Counter(
        shorten_reason(row["reason"]) for row in rows if row["verdict"] == verdicts.NO_VERDICT
    ):
        console.print(
            f"no verdict: {'; '.join(f'{reason} ({count})' for reason, count in reasons.most_common())}"
        )
    if any(row["verdict"] == verdicts.NOT_RUN for row in rows):
        console.print(f"not run: {scale} does not measure it, or its runs are not done yet")


def shorten_reason(reason: str) -> str:
    """Return a reason for `no verdict` without the details of one claim."""
    if re.fullmatch(r"\d+ of \d+ seeds", reason):
        return "seeds of the analysis plan are missing"
    if reason.startswith("says nothing while "):
        return "a gain that the claim supposes is not reproduced"
    return reason.split(":")[0]


def read_claim_table(path: Path) -> list[dict[str, str]]:
    """Read the rows of claims.csv. Raises UserError if the file is missing or incomplete."""
    if not path.exists():
        raise MissingFileError(path)
    rows = read_csv(path, CLAIM_COLUMNS)
    again = "if ./reproduce made it, delete it and run ./reproduce again"
    if any(row["verdict"] not in COLOURS for row in rows):
        raise UserError(f"{path}: not a complete claims.csv; {again}")
    for line, row in enumerate(rows, 2):
        for name in filter(row.get, (*COUNTS, *NUMBERS)):
            if not (row[name].isdecimal() if name in COUNTS else NUMBER.fullmatch(row[name])):
                raise UserError(
                    f"{path}: line {line}: {name} is {row[name][:100]!r}, not a number; {again}"
                )
    return rows


def build_claim_table(rows: list[dict[str, str]], scale: str, wide: bool) -> Table:
    """Make a table with one line per row of claims.csv, grouped by paper; `wide` keeps names on one line."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("claim", overflow="fold", no_wrap=wide)
    table.add_column("effect (interval)", justify="right", no_wrap=wide)
    table.add_column("claimed", justify="right", no_wrap=True)
    table.add_column("seeds", justify="right", no_wrap=True)
    table.add_column(f"verdict at {scale}", overflow="fold")
    for paper, found in groupby(rows, key=lambda row: row["paper"]):
        table.add_row(f"[bold]{paper}[/]")
        for row in found:
            seeds = (
                f"{row['n_seeds']} of {row['n_planned']}" if row["n_planned"] else row["n_seeds"]
            )
            why = (
                f": {escape(row['reason'])}" if row["reason"] not in ("", f"{seeds} seeds") else ""
            )
            verdict = f"[{COLOURS[row['verdict']]}]{row['verdict']}[/]{why}"
            claimed = f"> {read_margin(row):g}".replace("-", "−")
            ours = " (ours)" if row["kind"] == "control" else ""
            table.add_row(
                f"  {escape(row['claim'])}{ours}", format_effect(row), claimed, seeds, verdict
            )
    return table
