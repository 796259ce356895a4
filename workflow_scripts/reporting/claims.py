"""Give a verdict on every claim of the papers, and write the first page of the report."""

import argparse
import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from workflow_scripts.catalogue.loading import Catalogue, load_catalogue
from workflow_scripts.catalogue.runs import Run
from workflow_scripts.checking import checked, nearest
from workflow_scripts.displays import asked_runs, display_runs, find_paper, intervened
from workflow_scripts.errors import UserError
from workflow_scripts.facts import claimed, of_claims
from workflow_scripts.files import missing, replacing
from workflow_scripts.reporting.cells import make_cells
from workflow_scripts.reporting.evidence import read_evidence
from workflow_scripts.reporting.first_page import overview_html, overview_rst
from workflow_scripts.reporting.layout import effect_decimals, number
from workflow_scripts.reporting.record import write_record
from workflow_scripts.reporting.spec import SIDES, Claim, TableDisplay, display_analyses
from workflow_scripts.reporting.trained import what_was_run
from workflow_scripts.reporting.verdicts import (
    EXPLORATORY,
    INCONCLUSIVE,
    NO_VERDICT,
    NOT_REPRODUCED,
    NOT_RUN,
    PRIMARY,
    REPRODUCED,
    Outcome,
    judge,
)

CLAIM_COLUMNS = (
    "paper",
    "claim",
    "kind",
    "role",
    "statement",
    "quote",
    "source",
    "left",
    "right",
    "relation",
    "published_effect",
    "printed",
    "effect",
    "unit",
    "at_least",
    "smallest_effect",
    "quantile",
    "ci_low",
    "ci_high",
    "p_value",
    "q_value",
    "n_seeds",
    "n_planned",
    "protocol",
    "verdict",
    "reason",
    "caveat",
)
SIDE_COLUMNS = ("paper", "claim", "side", "cell", "published", "seed", "value")
LOG_WIDTH = 120  # columns where no terminal says how many it has
COLOURS = {REPRODUCED: "green", NOT_REPRODUCED: "red", INCONCLUSIVE: "yellow", NO_VERDICT: "dim", NOT_RUN: "dim"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--show", type=Path, metavar="FILE", help="print the verdicts of a claims.csv, and nothing else"
    )
    parser.add_argument("--papers", nargs="+", metavar="KEY", help="folders of papers/")
    parser.add_argument("--scale")
    parser.add_argument("--runs", nargs="*", metavar="ID", help="instead of the runs that config.yaml asks for")
    parser.add_argument("--results", type=Path, metavar="DIR", help="has runs/ and analyses/ of the scale")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the claims.csv to write; claim_sides.csv and claims.json go with it"
    )
    parser.add_argument("--overview", type=Path, metavar="DIR", help="also write overview.html and overview.rst there")


def main(args: argparse.Namespace) -> None:
    """Write claims.csv and claim_sides.csv, and print the verdicts.

    Raises UserError for unknown names and missing scores.
    """
    if args.show:
        print_ledger(args.show)
        return
    for name in ("papers", "scale", "results", "out"):
        if getattr(args, name) is None:
            raise UserError(f"claims needs --{name} (or --show FILE alone)")
    catalogue = load_catalogue()
    asked = {paper: asked_runs(catalogue, paper, args.scale, args.runs) for paper in args.papers}
    outcomes = {paper: judge_paper(catalogue, paper, args.scale, asked[paper], args.results) for paper in args.papers}
    write_claims(args.out, outcomes)
    runs = dict.fromkeys(run for found in asked.values() for run in found)
    displays = {paper: claimed(catalogue, paper).values() for paper in args.papers}
    write_record(
        args.out.with_suffix(".json"),
        of_claims(catalogue, args.papers, args.scale, map(str, runs)),
        args.results,
        runs,
        intervened(entry for entries in displays.values() for entry in entries),
        sorted({f"{paper}/{name}" for paper, found in displays.items() for e in found for name in display_analyses(e)}),
    )
    if args.overview:
        trained = what_was_run(runs, args.results)
        for name, overview in (("overview.html", overview_html), ("overview.rst", overview_rst)):
            with replacing(args.overview / name) as temporary:
                temporary.write_text(overview(catalogue, args.scale, outcomes, trained), encoding="utf-8")
    print_ledger(args.out)


def judge_paper(
    catalogue: Catalogue, key: str, scale: str, asked: dict[Run, list[str]], results: Path
) -> list[Outcome]:
    """Verdicts on the claims of one paper, from the tables that they name and the scores of `asked` under `results`."""
    paper, file = find_paper(catalogue, key), f"papers/{key}/claims.yaml"
    claims = [checked(Claim, entry, file, str(i)) for i, entry in enumerate(paper.claims)]
    names = dict.fromkeys(side.split("/")[0] for claim in claims for side in claim.sides)
    for name in names:
        if paper.displays.get(name, {}).get("kind") != "table":
            raise UserError(f"{file}: no table '{name}' in displays.yaml; {nearest(name, paper.displays)}")
    runs = {run: None for name in names for run in display_runs(paper.displays[name], asked)}
    analyses = {analysis: None for name in names for analysis in display_analyses(paper.displays[name])}
    shown = intervened(paper.displays[name] for name in names)
    evidence = read_evidence(catalogue, key, scale, runs, analyses, results, shown)
    cells = {}
    for name in names:
        display = checked(TableDisplay, paper.displays[name], f"papers/{key}/displays.yaml", name)
        cells |= {cell.key: cell for cell in make_cells(name, display, evidence)}
    return judge(claims, cells, catalogue.scales[scale].verdicts, scale, file, paper.plan)


def write_claims(path: Path, outcomes: dict[str, list[Outcome]]) -> None:
    """Write claims.csv, and claim_sides.csv in the same folder: what each claim compares, seed by seed."""
    sides = path.with_name("claim_sides.csv")
    with replacing(sides) as temporary, open(temporary, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, SIDE_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for paper, judged in outcomes.items() for one in judged for row in side_rows(paper, one))
    with replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, CLAIM_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(claim_row(paper, outcome) for paper, judged in outcomes.items() for outcome in judged)


def claim_row(paper: str, outcome: Outcome) -> dict[str, str]:
    """One line of claims.csv; effects are in the claimed direction."""
    claim = outcome.claim
    low, high = outcome.interval or (None, None)
    effect = outcome.effect.value if outcome.effect else outcome.success.difference if outcome.success else None
    numbers = {
        "published_effect": outcome.published,
        "effect": effect,
        "at_least": claim.at_least,
        "smallest_effect": outcome.smallest,
        "quantile": outcome.quantile,
        "ci_low": low,
        "ci_high": high,
        "p_value": outcome.p_value,
        "q_value": outcome.q_value,
        "n_seeds": outcome.n_seeds,
        "n_planned": outcome.n_planned,
    }
    sides = {
        name: side if isinstance(side, list) else [side] for name, side in vars(claim).items() if name in SIDES[:2]
    }
    texts = {
        name: getattr(claim, name) or ""
        for name in ("claim", "kind", "statement", "quote", "source", "relation", "unit", "caveat")
    }
    row = {
        "paper": paper,
        **texts,
        **{name: " + ".join(map(str, cells)) for name, cells in sides.items()},
        **{name: "" if value is None else f"{value:.6g}" for name, value in numbers.items()},
        **{name: getattr(outcome, name) for name in ("role", "printed", "protocol", "verdict", "reason")},
    }
    return {name: row[name] for name in CLAIM_COLUMNS}


def side_rows(paper: str, outcome: Outcome) -> Iterator[dict[str, str]]:
    """The lines of claim_sides.csv about one claim: one for each cell and seed, or one for a cell without seeds.

    Seeds of a primary claim whose planned seeds are not complete are left out: nobody should look before.
    """
    for name, side in zip(SIDES, outcome.sides, strict=False):
        for cell in side.cells:
            printed = cell.published.value if cell.published else None
            common = {"paper": paper, "claim": outcome.claim.claim, "side": name, "cell": cell.key}
            common["published"] = "" if printed is None else f"{printed:.6g}"
            complete = outcome.effect is not None or outcome.success is not None
            values = dict(cell.seeds) if complete and cell.seeds else {"": cell.computed}
            for seed, value in values.items():
                yield common | {"seed": str(seed), "value": "" if value is None else f"{value:.6g}"}


def print_ledger(path: Path) -> None:
    """Print the verdicts of claims.csv: the primary claims one by one, then the exploratory ones that are decided, then
    how many there are of each kind.
    """
    rows, scale = read_ledger(path), path.resolve().parent.name
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = LOG_WIDTH
    judged = [row for row in rows if row["verdict"] != NOT_RUN]
    primary = [row for row in rows if row["role"] == PRIMARY and row["verdict"] != NOT_RUN]
    groups = {
        f"Primary claims at {scale}, named before the runs": primary,
        f"Exploratory claims at {scale} that are decided": [
            row for row in judged if row not in primary and row["verdict"] in (REPRODUCED, NOT_REPRODUCED)
        ],
    }
    for title, found in groups.items():
        if found:
            console.print(f"[bold]{title}[/]")
            console.print(ledger(found), soft_wrap=False)
            console.print()
    kinds = {
        "primary claims": [row for row in rows if row["role"] == PRIMARY],
        "exploratory claims of the papers": [
            row for row in rows if row["role"] == EXPLORATORY and row["kind"] == "paper"
        ],
        "controls of ours": [row for row in rows if row["role"] == EXPLORATORY and row["kind"] == "control"],
    }
    for title, found in kinds.items():
        counts = Counter(row["verdict"] for row in found)
        if found:
            tally = ", ".join(f"{counts[name]} {name}" for name in COLOURS if counts[name])
            console.print(f"{len(found)} {title} at {scale}: {tally}")
    if any(row["verdict"] == NO_VERDICT for row in rows):
        reasons = Counter(row["reason"].split(":")[0] for row in rows if row["verdict"] == NO_VERDICT)
        console.print(f"no verdict: {'; '.join(f'{reason} ({count})' for reason, count in reasons.most_common(3))}")
    if any(row["verdict"] == NOT_RUN for row in rows):
        console.print(f"not run: {scale} does not measure it, or nobody has run it yet")


def read_ledger(path: Path) -> list[dict[str, str]]:
    """The rows of claims.csv. Raises UserError where the file is missing or is not whole."""
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            header, rows = tuple(reader.fieldnames or ()), list(reader)
    except FileNotFoundError as error:
        raise missing(path) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text; name a claims.csv") from error
    if header != CLAIM_COLUMNS or any(row["verdict"] not in COLOURS for row in rows):
        raise UserError(f"{path} is no whole claims.csv; if ./reproduce made it, delete it and make it again")
    return rows


def ledger(rows: list[dict[str, str]]) -> Table:
    """A line for each of these rows of claims.csv."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("claim", overflow="fold")
    table.add_column("effect (interval)", justify="right")
    table.add_column("seeds", justify="right")
    table.add_column("verdict", overflow="fold")
    for row in rows:
        colour = COLOURS[row["verdict"]]
        why = f": {escape(row['reason'])}" if row["reason"] else ""
        seeds = f"{row['n_seeds']} of {row['n_planned']}" if row["n_planned"] else row["n_seeds"]
        table.add_row(escape(row["claim"]), ledger_effect(row), seeds, f"[{colour}]{row['verdict']}[/]{why}")
    return table


def ledger_effect(row: dict[str, str]) -> str:
    """`+59.4 (37.9 to 80.9) points` of a row of claims.csv; empty without an effect."""
    if not row["effect"]:
        return ""
    ends = [float(row[name]) for name in ("ci_low", "ci_high") if row[name]]
    decimals = effect_decimals(row["unit"], *ends)
    interval = f" ({' to '.join(number(end, decimals) for end in ends)})" if ends else ""
    return f"{number(float(row['effect']), decimals, signed=True)}{interval} {row['unit']}"
