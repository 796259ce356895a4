"""Judge the claims of a paper, and write claims.csv and claim_sides.csv."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from workflow_scripts.common.files import read_mapping, write_text_file
from workflow_scripts.common.result_folders import ClaimFiles, RunFolder, ScaleFolder
from workflow_scripts.common.run_names import START, Run
from workflow_scripts.config.analysis_plan import AnalysisPlan, LaterPlan, PlannedClaim
from workflow_scripts.config.catalogue import Paper
from workflow_scripts.config.claim_needs import find_claim_needs
from workflow_scripts.config.display_schema import Display, TableDisplay, list_cells
from workflow_scripts.config.displays import find_paper, select_display_runs
from workflow_scripts.config.specs import read_precision
from workflow_scripts.reporting.claims.claim_rows import (
    ClaimRow,
    SideRow,
    format_claim_rows,
    format_side_rows,
)
from workflow_scripts.reporting.claims.comparison import PaperCells
from workflow_scripts.reporting.claims.outcome import MeasuredSuccess, Measurement, Outcome
from workflow_scripts.reporting.claims.side_seeds import add_seed_caveat
from workflow_scripts.reporting.claims.verdicts import judge_claims
from workflow_scripts.reporting.evidence.evidence import Evidence, read_evidence
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.tables.cells import WITHHELD, Cell, make_cells


def judge_paper(results: PaperResults, requested: Iterable[Run]) -> list[Outcome]:
    """Judge the claims of one paper by the tables that they name.

    Their cells have the scores of the `requested` runs.
    """
    catalogue = results.catalogue
    scale = results.scale
    paper = find_paper(catalogue, results.paper)
    requested = list(requested)
    shown = paper.select_claimed_displays(requested)
    evidence = _read_scores(results, shown, requested)
    cells = _make_all_cells(paper.select_claimed_displays(), evidence, results.paper)
    planned = paper.list_primary_claims(scale)
    departures = find_departures(paper, planned, results.folder)
    verdicts = catalogue.scales[scale].verdicts
    judged = judge_claims(paper.claims, cells, verdicts, scale, planned, departures)
    plans = list(paper.list_plans(scale).values())
    return [add_seed_caveat(outcome, plans) for outcome in judged]


def judge_alone(results: PaperResults, claim: str, requested: Iterable[Run]) -> Outcome:
    """Judge one claim of a paper, without the others.

    A primary claim gets the verdict that it has among all. An exploratory one has no q value, and
    no verdict where that would decide.
    """
    scale = results.scale
    needs = find_claim_needs(results.catalogue, results.paper, (claim,), scale)
    paper = needs.paper
    requested = list(requested)
    evidence = _read_scores(results, needs.select_shown_displays(requested), requested)
    cells = _make_all_cells(needs.displays, evidence, results.paper)
    departures = find_departures(paper, needs.planned, results.folder)
    verdicts = results.catalogue.scales[scale].verdicts
    judged = judge_claims(
        needs.claims, cells, verdicts, scale, needs.planned, departures, are_all=False
    )
    outcome_of = {outcome.claim.claim: outcome for outcome in judged}
    return add_seed_caveat(outcome_of[claim], list(paper.list_plans(scale).values()))


def _read_scores(
    results: PaperResults, displays: Mapping[str, Display], requested: Iterable[Run]
) -> Evidence:
    """Read the scores of requested runs and of analyses that displays of a paper show."""
    requested = list(requested)
    runs: dict[Run, None] = {}
    for display in displays.values():
        runs |= dict.fromkeys(select_display_runs(display, requested))
    return read_evidence(results, runs, list(displays.values()))


def _make_all_cells(displays: Mapping[str, Display], evidence: Evidence, paper: str) -> PaperCells:
    """Return the cells of all tables among the displays of a paper."""
    cells: dict[str, Cell] = {}
    for name, display in displays.items():
        if isinstance(display, TableDisplay):
            cells |= {cell.key: cell for cell in make_cells(name, display, evidence)}
    return PaperCells(cells, f"papers/{paper}/claims.yaml")


def find_departures(
    paper: Paper, primary: Iterable[PlannedClaim], results: ScaleFolder
) -> dict[str, str]:
    """Return the primary claims with a run that was not trained as planned, and what is otherwise.

    That is its precision, and its device where the plan names one.
    """
    departures: dict[str, str] = {}
    for planned in primary:
        for run in paper.list_planned_runs(planned):
            folder = results.run(_find_training(run))
            departure = _find_departure(planned.plan, folder)
            if departure:
                departures[planned.name] = departure
    return departures


def _find_training(run: Run) -> Run:
    """Return the training whose weights a run scores: its own, or that of given weights."""
    if run.weights in (None, START):
        return run.training
    return run.training._replace(task=run.weights)


def _find_departure(plan: AnalysisPlan, folder: RunFolder) -> str:
    """Say how a finished training in `folder` departs from the plan.

    Empty if it does not, or is not there.
    """
    if not folder.manifest.exists():
        return ""
    precision = read_precision(read_mapping(folder.manifest, "spec")["spec"])
    if precision != plan.precision:
        return f"a run was trained in {precision}; the plan says {plan.precision}"
    if isinstance(plan, LaterPlan):
        device = read_mapping(folder.record, "device")["device"]
        if device != plan.device:
            return f"a run was trained on {device}; the plan says {plan.device}"
    return ""


def write_claims(path: Path, outcomes: dict[str, list[Outcome]]) -> None:
    """Write claims.csv, and next to it claim_sides.csv with the compared values by seed."""
    claims, sides = format_claims(outcomes)
    files = ClaimFiles(path)
    write_text_file(files.sides, sides)
    write_text_file(files.table, claims)


def format_claims(outcomes: dict[str, list[Outcome]]) -> tuple[str, str]:
    """Return the content of claims.csv and of claim_sides.csv for the outcomes of each paper."""
    claims = []
    sides: list[SideRow] = []
    for paper, judged in outcomes.items():
        for outcome in judged:
            claims.append(make_claim_row(paper, outcome))
            sides += make_side_rows(paper, outcome)
    return format_claim_rows(claims), format_side_rows(sides)


def make_side_rows(paper: str, outcome: Outcome) -> Iterator[SideRow]:
    """Yield the rows of a claim: one per cell and seed, or one for a cell without seeds.

    The planned seeds of a primary claim are left out until they are complete, so that no reader
    sees an early result.
    """
    is_complete = outcome.measurement is not None
    for name, side in zip(("left", "right"), outcome.sides, strict=True):
        for cell in side.cells:
            row = SideRow(
                paper=paper,
                claim=outcome.claim.claim,
                side=name,
                cell=cell.key,
                published=cell.published.value if cell.published else None,
                seed=None,
                value=cell.computed,
            )
            if not is_complete or not cell.seeds or cell.status == WITHHELD:
                yield row
                continue
            for seed, value in cell.seeds.items():
                yield replace(row, seed=seed, value=value)


def make_claim_row(paper: str, outcome: Outcome) -> ClaimRow:
    """Return the row of a claim; effects are in the claimed direction."""
    claim = outcome.claim
    comparison = outcome.comparison
    planned = comparison.planned
    is_measured = outcome.measurement is not None
    row = ClaimRow(
        paper=paper,
        claim=claim.claim,
        kind=claim.kind,
        role=outcome.role,
        plan=planned.file if planned else "",
        statement=claim.statement,
        quote=claim.quote or "",
        source=claim.source,
        left=_name_side(claim.left),
        right=_name_side(claim.right),
        relation=claim.relation,
        published_effect=comparison.published,
        printed=comparison.printed,
        unit=claim.unit,
        at_least=abs(claim.margin),
        smallest_effect=comparison.smallest if planned or is_measured else None,
        quantile=comparison.quantile if planned or is_measured else None,
        n_seeds=outcome.n_seeds,
        n_planned=comparison.n_planned,
        protocol=outcome.protocol,
        verdict=outcome.verdict,
        reason=outcome.reason,
        caveat=claim.caveat or "",
    )
    return _add_measurement(row, outcome.measurement)


def _add_measurement(row: ClaimRow, measured: Measurement | None) -> ClaimRow:
    """Return the row with what was measured."""
    if measured is None:
        return row
    if isinstance(measured, MeasuredSuccess):
        return replace(row, effect=measured.rates.difference, test="Fisher's exact test")
    low, high = measured.interval or (None, None)
    return replace(
        row,
        effect=measured.effect.value,
        ci_low=low,
        ci_high=high,
        test=measured.effect.method,
        degrees_of_freedom=measured.effect.freedom,
        p_value=measured.p_value,
        q_value=measured.q_value,
    )


def _name_side(side: str | list[str] | float) -> str:
    """Return the cells of a side with ` + ` between them, or its number."""
    return " + ".join(list_cells(side)) or str(side)
