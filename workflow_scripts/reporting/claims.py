"""Give a verdict on every claim of the papers, and write the first page of the report."""

import argparse
import csv
from collections import Counter
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
from workflow_scripts.reporting.spec import Claim, TableDisplay, display_analyses
from workflow_scripts.reporting.trained import what_was_run
from workflow_scripts.reporting.verdicts import (
    INCONCLUSIVE,
    NO_VERDICT,
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    Outcome,
    judge,
)

CLAIM_COLUMNS = (
    "paper",
    "claim",
    "statement",
    "source",
    "post_hoc",
    "left",
    "right",
    "relation",
    "effect",
    "unit",
    "at_least",
    "ci_low",
    "ci_high",
    "p_value",
    "n_seeds",
    "method",
    "protocol",
    "verdict",
)
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
    parser.add_argument("--out", type=Path, metavar="FILE", help="the claims.csv to write, with claims.json beside it")
    parser.add_argument("--overview", type=Path, metavar="DIR", help="also write overview.html and overview.rst there")


def main(args: argparse.Namespace) -> None:
    """Write claims.csv and print it. Raises UserError for unknown names and missing scores."""
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
    return judge(claims, cells, catalogue.scales[scale].verdicts, scale, file)


def write_claims(path: Path, outcomes: dict[str, list[Outcome]]) -> None:
    """Write claims.csv."""
    with replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, CLAIM_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(claim_row(paper, outcome) for paper, judged in outcomes.items() for outcome in judged)


def claim_row(paper: str, outcome: Outcome) -> dict[str, str]:
    """One line of claims.csv. `p_value` is corrected by Holm over the paper's claims."""
    claim, effect = outcome.claim, outcome.effect
    values = {"at_least": claim.at_least, "p_value": outcome.p_holm}
    if effect:
        values |= {"effect": effect.value, "ci_low": effect.low, "ci_high": effect.high}
    texts = {
        name: getattr(claim, name) for name in ("claim", "statement", "source", "left", "right", "relation", "unit")
    } | {"post_hoc": "yes" if claim.post_hoc else "no"}
    numbers = {name: "" if value is None else f"{value:.6g}" for name, value in values.items()}
    method = {"n_seeds": str(effect.n), "method": effect.method} if effect else {"n_seeds": "", "method": ""}
    judged = {"protocol": outcome.protocol, "verdict": outcome.verdict}
    return {"paper": paper, **texts, **numbers, **method, **judged}


def print_ledger(path: Path) -> None:
    """Print the verdicts of claims.csv: a line for each claim that bears one, and how many there are of each kind."""
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
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = LOG_WIDTH
    counts = Counter(row["verdict"] for row in rows)
    judged = [row for row in rows if row["verdict"] not in (NO_VERDICT, NOT_RUN)]
    if judged:
        console.print(ledger(judged), soft_wrap=False)
    console.print(", ".join(f"{counts[name]} {name}" for name in COLOURS if counts[name]))
    if any(row["post_hoc"] == "yes" for row in judged):
        console.print("post hoc: written, or its margin set, after results had been seen")
    if counts[NO_VERDICT]:
        only_made_up = all(row["protocol"] == "stand_in" for row in rows if row["verdict"] == NO_VERDICT)
        why = "their data are made up" if only_made_up else "this scale only shows that everything works"
        console.print(
            f"no verdict: {why}; {counts[NO_VERDICT]} of {len(rows)} claims have such numbers, see overview.html and "
            f"{path.name}"
        )
    if counts[NOT_RUN]:
        console.print("not run: this scale does not measure it")


def ledger(rows: list[dict[str, str]]) -> Table:
    """A line for each of these rows of claims.csv."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, options in (
        ("claim", {"overflow": "fold"}),
        ("effect (95% interval)", {"justify": "right"}),
        ("verdict", {"no_wrap": True}),
    ):
        table.add_column(heading, **options)
    for row in rows:
        colour = COLOURS[row["verdict"]]
        after = ", post hoc" if row["post_hoc"] == "yes" else ""
        table.add_row(escape(row["claim"]), ledger_effect(row), f"[{colour}]{row['verdict']}[/]{after}")
    return table


def ledger_effect(row: dict[str, str]) -> str:
    """`+59.4 (37.9 to 80.9) percent` of a row of claims.csv."""
    ends = [float(row[name]) for name in ("ci_low", "ci_high") if row[name]]
    decimals = effect_decimals(row["unit"], *ends)
    interval = f" ({' to '.join(number(end, decimals) for end in ends)})" if ends else ""
    return f"{number(float(row['effect']), decimals, signed=True)}{interval} {row['unit']}"
