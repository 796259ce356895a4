"""Judge the claims of a paper, and write claims.csv and claim_sides.csv."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from workflow_scripts.common.files import format_csv, read_mapping, write_atomically
from workflow_scripts.config.analysis_plan import AnalysisPlan, LaterPlan, PlannedClaim
from workflow_scripts.config.catalogue import START, Catalogue, Paper, Run
from workflow_scripts.config.display_schema import TableDisplay, list_cells
from workflow_scripts.config.displays import find_paper, select_display_runs
from workflow_scripts.config.paths import run_folder
from workflow_scripts.config.specs import read_precision
from workflow_scripts.reporting.claims.claim_table import CLAIM_COLUMNS
from workflow_scripts.reporting.claims.effects import Outcome
from workflow_scripts.reporting.claims.side_seeds import add_seed_caveat
from workflow_scripts.reporting.claims.verdicts import judge_claims
from workflow_scripts.reporting.evidence.evidence import read_evidence
from workflow_scripts.reporting.tables.cells import WITHHELD, Cell, make_cells

SIDE_COLUMNS = ("paper", "claim", "side", "cell", "published", "seed", "value")


def judge_paper(
    catalogue: Catalogue, key: str, scale: str, asked: Iterable[Run], results: Path
) -> list[Outcome]:
    """Judge the claims of one paper by the tables that they name and the scores of `asked` under `results`."""
    paper = find_paper(catalogue, key)
    asked = list(asked)
    displays = list(paper.select_claimed_displays(asked).values())
    runs = dict.fromkeys(run for display in displays for run in select_display_runs(display, asked))
    evidence = read_evidence(catalogue, key, scale, runs, displays, results)
    cells: dict[str, Cell] = {}
    for name, display in paper.select_claimed_displays().items():
        if isinstance(display, TableDisplay):
            cells |= {cell.key: cell for cell in make_cells(name, display, evidence)}
    planned = paper.list_primary_claims(scale)
    departures = find_departures(paper, planned, results)
    verdicts = catalogue.scales[scale].verdicts
    file = f"papers/{key}/claims.yaml"
    judged = judge_claims(paper.claims, cells, verdicts, scale, file, planned, departures)
    plans = [plan for plan in paper.plans.values() if plan.scale == scale]
    return [add_seed_caveat(outcome, plans) for outcome in judged]


def find_departures(paper: Paper, primary: Iterable[PlannedClaim], results: Path) -> dict[str, str]:
    """Return the primary claims with a run that was not trained as their plan says, and what is otherwise.

    That is its precision, and its device where the plan names one.
    """
    departures: dict[str, str] = {}
    for planned in primary:
        for run in paper.list_planned_runs(planned):
            if departure := _find_departure(
                planned.plan, results / run_folder(_find_training(run))
            ):
                departures[planned.name] = departure
    return departures


def _find_training(run: Run) -> Run:
    """Return the training whose weights a run scores: its own, or that of given weights."""
    return (
        replace(run.training, task=run.weights)
        if run.weights not in (None, START)
        else run.training
    )


def _find_departure(plan: AnalysisPlan, folder: Path) -> str:
    """Say how a finished training in `folder` departs from the plan; empty if it does not, or is not there."""
    if not (folder / "run.json").exists():
        return ""
    precision = read_precision(read_mapping(folder / "run.json", "spec")["spec"])
    if precision != plan.precision:
        return f"a run was trained in {precision}; the plan says {plan.precision}"
    if isinstance(plan, LaterPlan):
        device = read_mapping(folder / "record.json", "device")["device"]
        if device != plan.device:
            return f"a run was trained on {device}; the plan says {plan.device}"
    return ""


def write_claims(path: Path, outcomes: dict[str, list[Outcome]]) -> None:
    """Write claims.csv, and next to it claim_sides.csv with the compared values of each claim and seed."""
    claims, sides = format_claims(outcomes)
    for file, text in ((path.with_name("claim_sides.csv"), sides), (path, claims)):
        with write_atomically(file) as temporary:
            temporary.write_text(text, encoding="utf-8")


def format_claims(outcomes: dict[str, list[Outcome]]) -> tuple[str, str]:
    """Return the content of claims.csv and of claim_sides.csv."""
    rows = [
        make_claim_row(paper, outcome) for paper, judged in outcomes.items() for outcome in judged
    ]
    return format_csv(CLAIM_COLUMNS, rows), format_claim_sides(outcomes)


def format_claim_sides(outcomes: dict[str, list[Outcome]]) -> str:
    """Return the content of claim_sides.csv: for each claim a line per cell and seed, or one for a cell without seeds.

    The planned seeds of a primary claim are left out until they are complete, so that no reader sees an early result.
    """
    rows = []
    for paper, outcome in (
        (paper, outcome) for paper, judged in outcomes.items() for outcome in judged
    ):
        complete = outcome.effect is not None or outcome.success is not None
        for name, side in zip(("left", "right"), outcome.sides, strict=True):
            for cell in side.cells:
                printed = cell.published.value if cell.published else None
                common = {
                    "paper": paper,
                    "claim": outcome.claim.claim,
                    "side": name,
                    "cell": cell.key,
                }
                common["published"] = "" if printed is None else f"{printed:.6g}"
                shown = complete and cell.status != WITHHELD
                values = dict(cell.seeds) if shown and cell.seeds else {"": cell.computed}
                for seed, value in values.items():
                    rows.append(
                        common
                        | {"seed": str(seed), "value": "" if value is None else f"{value:.6g}"}
                    )
    return format_csv(SIDE_COLUMNS, rows)


def make_claim_row(paper: str, outcome: Outcome) -> dict[str, str]:
    """Return one line of claims.csv; effects are in the claimed direction."""
    claim = outcome.claim
    low, high = outcome.interval or (None, None)
    effect = (
        outcome.effect.value
        if outcome.effect
        else outcome.success.difference
        if outcome.success
        else None
    )
    numbers = {"published_effect": outcome.published, "effect": effect, "at_least": claim.at_least}
    numbers |= {"smallest_effect": outcome.smallest, "ci_low": low, "ci_high": high}
    numbers["degrees_of_freedom"] = outcome.effect.freedom if outcome.effect else None
    numbers |= {
        name: getattr(outcome, name)
        for name in ("quantile", "p_value", "q_value", "n_seeds", "n_planned")
    }
    left, right = (" + ".join(list_cells(side)) or str(side) for side in (claim.left, claim.right))
    test = (
        outcome.effect.method
        if outcome.effect
        else "Fisher's exact test"
        if outcome.success
        else ""
    )
    row = {"paper": paper, "left": left, "right": right, "test": test}
    for name in ("claim", "kind", "statement", "quote", "source", "relation", "unit", "caveat"):
        row[name] = getattr(claim, name) or ""
    row |= {name: "" if value is None else f"{value:.6g}" for name, value in numbers.items()}
    row |= {
        name: getattr(outcome, name)
        for name in ("role", "plan", "printed", "protocol", "verdict", "reason")
    }
    return {name: row[name] for name in CLAIM_COLUMNS}
