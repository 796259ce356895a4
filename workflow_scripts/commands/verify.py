"""Verify results from what they are made of: a crate, a folder of committed results, or a single
claim of results/reference/small.
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import (
    COMMITTED,
    RESULTS,
    CrateFolder,
    ExportFolder,
    ScaleFolder,
)
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import list_ancestors
from workflow_scripts.data.sources.archives import unpack_zip
from workflow_scripts.reporting.claims.claim_rows import describe_primary_claims, read_claim_rows
from workflow_scripts.reporting.claims.effects import Outcome
from workflow_scripts.reporting.committed.claim_view import CheckedClaim, print_claim
from workflow_scripts.reporting.committed.committed_tables import compare_tables
from workflow_scripts.reporting.committed.recomputing import (
    Fault,
    RecomputedClaims,
    describe_verdicts,
    find_claim_faults,
    find_document_faults,
    recompute_claims,
)
from workflow_scripts.reporting.committed.rescoring_runs import (
    Rescored,
    Rescoring,
    list_compared_metrics,
    list_compared_runs,
    rescore_runs,
)
from workflow_scripts.reporting.committed.restoring import RestoredExport, restore_export
from workflow_scripts.reporting.committed.run_origins import (
    read_data_notes,
    read_run_origins,
)
from workflow_scripts.reporting.pages.verdict_documents import README, VERDICTS_PAGE
from workflow_scripts.reporting.pages.verify import verify_crate


@dataclass(frozen=True)
class RecomputedExport:
    """An export whose claims were judged again, and whose predictions were scored again."""

    restored: RestoredExport
    claims: RecomputedClaims
    rescored: Rescored
    faults: list[Fault]

    @property
    def compared_file(self) -> str:
        """The name of what the verdicts were compared with."""
        if is_documented(self.restored.export):
            return README.name
        return self.restored.export.claims.table.name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help="a crate that `crate` wrote, the zip file or a folder of its content; a folder of "
        "committed results, such as results/reference/small; or a claim, PAPER/CLAIM",
    )
    parser.add_argument(
        "--claims",
        action="store_true",
        help="of committed results: the verdicts alone, in one line",
    )


def main(args: argparse.Namespace) -> None:
    """Print what was checked and one line per fault.

    Raises UserError if there are faults, for an unknown name, and for a broken file.
    """
    path = Path(args.name)
    catalogue = load_catalogue()
    if is_export(path):
        verify_export(catalogue, ExportFolder(path), args.claims)
    elif ScaleFolder(path).config.is_file():
        raise UserError(
            f"{path} has results as ./reproduce makes them, which `check --deep` compares with "
            "their manifests; `verify` is for exported results and crates (docs/results.md)"
        )
    elif path.exists():
        verify_crate_at(path)
    else:
        verify_claim(catalogue, args.name)


def is_export(path: Path) -> bool:
    """Whether a folder has committed results, which are no crate."""
    return ExportFolder(path).claims.table.exists() and not CrateFolder(path).metadata.exists()


def is_documented(export: ExportFolder) -> bool:
    """Whether the tables of README and docs/verdicts.md are those of an export."""
    has_documents = README.exists() and VERDICTS_PAGE.exists()
    return has_documents and export.path.resolve() == COMMITTED.path.resolve()


def verify_export(catalogue: Catalogue, export: ExportFolder, only_claims: bool) -> None:
    """Print what follows from an export's scores and predictions.

    That is a line with the verdicts, and unless `only_claims` one of predictions and one of tables.
    Raises UserError with a line for each difference.
    """
    with recompute_export(catalogue, export, not only_claims) as recomputed:
        console = Console(highlight=False, markup=False)
        # A terminal breaks long lines within words.
        console.print(format_summary(recomputed), soft_wrap=not console.is_terminal)
        faults = list(recomputed.faults)
        if not only_claims:
            print(describe_predictions(recomputed.rescored))
            faults += verify_tables(recomputed.restored)
    if faults:
        raise UserError("\n".join(map(str, faults)))
    if not only_claims:
        print(f"{export.path}: all agree")


@contextmanager
def recompute_export(
    catalogue: Catalogue, export: ExportFolder, uses_prepared_data: bool
) -> Iterator[RecomputedExport]:
    """Yield an export with its claims judged again, and the predictions of the decided ones."""
    with tempfile.TemporaryDirectory() as scratch:
        restored = restore_export(catalogue, export, Path(scratch))
        claims = recompute_claims(restored)
        outcomes = [outcome for _, outcome in claims.decided_outcomes]
        rescored = rescore_outcomes(restored, outcomes, uses_prepared_data)
        faults = find_claim_faults(restored, claims) + rescored.faults
        if is_documented(export):
            faults += find_document_faults(restored, claims)
        yield RecomputedExport(restored, claims, rescored, faults)


def rescore_outcomes(
    restored: RestoredExport, outcomes: list[Outcome], uses_prepared_data: bool
) -> Rescored:
    """Score the predictions of the runs that claims compare."""
    metrics = list_compared_metrics(outcomes)
    rescoring = Rescoring(restored, metrics, uses_prepared_data)
    return rescore_runs(rescoring, list_compared_runs(outcomes))


def format_summary(recomputed: RecomputedExport) -> str:
    """Return the line that says what the primary claims come to."""
    claims = recomputed.claims
    outcomes = [outcome for _, outcome in claims.decided_outcomes]
    from_predictions = sum(map(recomputed.rescored.has_all_values, outcomes))
    origin = f"{claims.count_scores():,} committed scores"
    if from_predictions:
        origin += f" ({from_predictions} claims also from predictions)"
    line = f"{describe_primary_claims(claims.decided)} recomputed from {origin}"
    line += f": {describe_verdicts(claims.decided)}"
    if recomputed.faults:
        return f"{line}, NOT equal to what is committed"
    return f"{line}, equal to {recomputed.compared_file}"


def describe_predictions(rescored: Rescored) -> str:
    """Say how many scores were computed again from predictions, and of which tasks none were."""
    line = f"{rescored.count_scores():,} scores of {len(rescored.runs)} runs from predictions"
    for task, reason in sorted(rescored.unanswered.items()):
        line += f"\n  {task}: from scores only, {reason}"
        line += f"; to get them: ./reproduce {RESULTS.scale('small').data(task).manifest}"
    return line


def verify_tables(restored: RestoredExport) -> list[Fault]:
    """Print how many cells of tables follow from the scores, and return the others."""
    faults: list[Fault] = []
    equal = unknown = tables = 0
    for table in compare_tables(restored):
        unknown += len(table.unknown)
        if not table.has_numbers:
            continue
        tables += 1
        equal += table.count_equal()
        faults += table.list_faults()
    print(
        f"{equal:,} cells of {tables} tables follow from the scores; "
        f"{unknown} more show scores that are not committed"
    )
    return faults


def verify_claim(catalogue: Catalogue, name: str) -> None:
    """Print a claim of the committed results, from its scores and predictions.

    Raises UserError for an unknown name, and if what is committed differs.
    """
    paper, _, claim = name.partition("/")
    claims = []
    for key, content in catalogue.papers.items():
        claims += [f"{key}/{claim_name}" for claim_name in content.claims_by_name]
    if name not in claims:
        known = [*claims, str(COMMITTED.path)]
        advice = suggest_name(name, known)
        raise UserError(f"{name} is no crate, no folder of results and no claim; {advice}")
    committed_rows = read_claim_rows(COMMITTED.claims.table)
    if name not in {f"{row.paper}/{row.claim}" for row in committed_rows}:
        raise UserError(
            f"{COMMITTED.path} has no result of {name}; `./reproduce --claim {name} --scale small` "
            f"makes one, and after `./reproduce --papers {paper} --scale small` the command "
            "`export --scale small` copies it there"
        )
    with tempfile.TemporaryDirectory() as scratch:
        restored = restore_export(catalogue, COMMITTED, Path(scratch))
        recomputed = recompute_claims(restored, [paper])
        (outcome,) = (
            outcome for outcome in recomputed.outcomes[paper] if outcome.claim.claim == claim
        )
        rescored = rescore_outcomes(restored, [outcome], uses_prepared_data=True)
        faults = [fault for fault in find_claim_faults(restored, recomputed) if fault.name == name]
        faults += rescored.faults
    (row,) = (row for row in recomputed.rows if row.claim == claim)
    runs = list_compared_runs([outcome])
    parents = list_ancestors(catalogue, runs, restored.scale)
    plan = f"papers/{paper}/{row.plan}" if row.plan else ""
    checked = CheckedClaim(
        row=row,
        outcome=outcome,
        rescored=rescored,
        origins=read_run_origins(COMMITTED.provenance, runs, parents, plan),
        datasets=read_data_notes(COMMITTED.datasets, {run.task for run in runs + parents}),
        scale=restored.scale,
    )
    print_claim(checked)
    compared = [COMMITTED.claims.table.name]
    if row.is_primary and is_documented(COMMITTED):
        compared.append(str(VERDICTS_PAGE))
        for fault in find_document_faults(restored, recomputed):
            if f"{paper}: {row.statement}" in fault.text:
                faults.append(fault)
    if faults:
        raise UserError("\n".join(map(str, faults)))
    print(f"  equal to {' and '.join(compared)}")


def verify_crate_at(crate: Path) -> None:
    """Verify a crate. Raises UserError if it has faults."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = crate
        if crate.is_file():
            folder = Path(scratch)
            unpack_zip(crate, folder)
        checked, faults = verify_crate(folder, crate)
    for fault in faults:
        print(fault)
    if faults:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise UserError(f"{crate}: {count}; do not trust it, download it again")
    print(
        "p-values over examples are read from the tables' records, "
        "because a crate has no predictions"
    )
    print(f"{crate}: checked {', '.join(checked)}; all agree")
