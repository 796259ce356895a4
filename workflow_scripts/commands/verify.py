"""Verify results from what they are made of: a crate, a folder of committed results, or the claims
of a paper, or one of them, of results/reference/small.
"""

import argparse
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.console import make_console
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import make_scratch_folder
from workflow_scripts.common.result_folders import (
    COMMITTED,
    CrateFolder,
    ExportFolder,
    ScaleFolder,
)
from workflow_scripts.common.wording import count_nouns
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import list_ancestors
from workflow_scripts.data.sources.archives import unpack_zip
from workflow_scripts.reporting.claims.claim_rows import (
    ClaimRow,
    describe_primary_claims,
    read_claim_rows,
)
from workflow_scripts.reporting.claims.claim_table import LOG_WIDTH, print_paper
from workflow_scripts.reporting.claims.judging import make_side_rows
from workflow_scripts.reporting.claims.outcome import Outcome
from workflow_scripts.reporting.committed.claim_view import (
    CheckedClaim,
    print_claim,
    print_differences,
)
from workflow_scripts.reporting.committed.committed_tables import compare_tables
from workflow_scripts.reporting.committed.recomputing import (
    Fault,
    FieldDifference,
    RecomputedClaims,
    describe_verdicts,
    drop_repeated_faults,
    find_claim_faults,
    find_document_faults,
    recompute_claims,
)
from workflow_scripts.reporting.committed.rescoring_runs import (
    Rescored,
    Rescoring,
    describe_unanswered,
    list_compared_metrics,
    list_compared_runs,
    rescore_runs,
)
from workflow_scripts.reporting.committed.restoring import RestoredExport, restore_export
from workflow_scripts.reporting.committed.run_origins import (
    read_data_notes,
    read_run_origins,
)
from workflow_scripts.reporting.committed.verified_names import (
    explain_name,
    explain_own_results,
    explain_path,
)
from workflow_scripts.reporting.pages.verdict_documents import README, VERDICTS_PAGE
from workflow_scripts.reporting.site.measured_claims import ExportedResults, make_claims


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
        "committed results, such as results/reference/small; a paper; or a claim, PAPER/CLAIM",
    )
    parser.add_argument(
        "--claims",
        action="store_true",
        help="of committed results: the verdicts alone, in one line",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="of a paper: all claims, not the primary ones alone",
    )


def main(args: argparse.Namespace) -> None:
    """Print what was checked and one line per fault.

    Raises UserError if there are faults, for an unknown name, for an option that does not apply to
    it, and for a broken file.
    """
    path = Path(args.name)
    catalogue = load_catalogue()
    if has_own_results(path):
        raise UserError(explain_own_results(path))
    if args.claims and not is_export(path):
        raise UserError(f"--claims is for committed results: `verify {COMMITTED.path} --claims`")
    if args.all and (path.exists() or args.name not in catalogue.papers):
        paper = next(iter(catalogue.papers))
        raise UserError(f"--all is for a paper: `verify {paper} --all`; leave it out here")
    if is_export(path):
        verify_export(catalogue, ExportFolder(path), args.claims)
    elif path.exists():
        verify_crate_at(path)
    else:
        verify_name(catalogue, args.name, args.all)


def has_own_results(path: Path) -> bool:
    """Whether a folder has results as ./reproduce makes them, also of a call that has not ended."""
    own = ScaleFolder(path)
    has_any = own.config.is_file() or own.runs.is_dir()
    return has_any and not ExportFolder(path).scores.exists()


def is_export(path: Path) -> bool:
    """Whether a folder has committed results, which are no crate."""
    return ExportFolder(path).claims.table.exists() and not CrateFolder(path).metadata.exists()


def is_documented(export: ExportFolder) -> bool:
    """Whether the tables of README and docs/verdicts.md are those of an export."""
    has_documents = README.exists() and VERDICTS_PAGE.exists()
    return has_documents and export.path.resolve() == COMMITTED.path.resolve()


def verify_export(catalogue: Catalogue, export: ExportFolder, only_claims: bool) -> None:
    """Print what follows from an export's scores and predictions.

    That is a line with the verdicts, and unless `only_claims` one of predictions, one of tables and
    one of figures. Raises UserError with a line for each difference.
    """
    with recompute_export(catalogue, export, not only_claims) as recomputed:
        make_console(LOG_WIDTH, markup=False).print(format_summary(recomputed))
        faults = list(recomputed.faults)
        if not only_claims:
            print(*describe_predictions(recomputed), sep="\n")
            faults += verify_tables(recomputed.restored)
            faults += verify_figures(recomputed.restored)
    if faults:
        raise UserError("\n".join(map(str, faults)))
    if not only_claims:
        print(
            f"{export.path}: verdicts, predictions, tables and the values of figures agree; "
            f"{export.curves.name}, {export.provenance.name}, {export.datasets.name} and pictures "
            "are not compared"
        )


@contextmanager
def recompute_export(
    catalogue: Catalogue,
    export: ExportFolder,
    uses_prepared_data: bool,
    paper: str = "",
    claim: str = "",
) -> Iterator[RecomputedExport]:
    """Yield an export with its claims judged again, or with those of a paper.

    Predictions are scored again of the decided primary claims, or of one `claim` of the paper.
    """
    with make_scratch_folder() as scratch:
        restored = restore_export(catalogue, export, Path(scratch), paper or None)
        claims = recompute_claims(restored, [paper] if paper else None)
        outcomes = [outcome for _, outcome in claims.decided_outcomes]
        if claim:
            outcomes = claims.select_outcomes(paper, claim)
        rescored = rescore_outcomes(restored, outcomes, uses_prepared_data)
        faults = find_claim_faults(restored, claims) + rescored.faults
        if is_documented(export):
            faults += find_document_faults(restored, claims)
        yield RecomputedExport(restored, claims, rescored, drop_repeated_faults(faults))


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


def describe_predictions(recomputed: RecomputedExport) -> list[str]:
    """Say how many scores were computed again from predictions, and of which tasks none were."""
    rescored = recomputed.rescored
    scores = f"{rescored.count_scores():,} scores of {len(rescored.runs)} runs"
    lines = [f"{scores} computed again from their predictions"]
    for task, reason in sorted(rescored.unanswered.items()):
        for line in describe_unanswered(task, reason, recomputed.restored.scale):
            lines.append(f"  {line}")
    return lines


def verify_tables(restored: RestoredExport) -> list[Fault]:
    """Print how many cells of tables follow from the scores, and return the others."""
    faults: list[Fault] = []
    equal = unknown = tables = 0
    for table in compare_tables(restored):
        unknown += len(table.unknown)
        faults += table.list_word_faults()
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


def verify_figures(restored: RestoredExport) -> list[Fault]:
    """Print how many figures follow from the scores, and return how the others differ."""
    # Drawing takes a second to import; `verify --claims` does without it.
    from workflow_scripts.reporting.committed.committed_figures import compare_figures

    compared = compare_figures(restored)
    line = f"{count_nouns(compared.equal, 'figure')} drawn again from the scores"
    if compared.unknown:
        line += f"; {compared.unknown} more of what is not committed"
    print(line)
    return compared.faults


def verify_name(catalogue: Catalogue, name: str, shows_all: bool) -> None:
    """Print a claim, or the claims of a paper, of the committed results.

    shows_all: of a paper, print all claims, not the primary ones alone.

    Raises UserError for an unknown name, and if what is committed differs.
    """
    paper, _, claim = name.partition("/")
    is_paper = name in catalogue.papers
    if not is_paper and claim not in list_claim_names(catalogue, paper):
        raise UserError(explain_name(catalogue, name))
    require_committed(paper, claim)
    print(
        f"recomputing {name} from the scores and predictions in {COMMITTED.path} …",
        flush=True,
    )
    if is_paper:
        verify_paper(catalogue, paper, shows_all)
    else:
        verify_claim(catalogue, paper, claim)


def list_claim_names(catalogue: Catalogue, paper: str) -> list[str]:
    """List the names of a paper's claims; none of an unknown paper."""
    if paper not in catalogue.papers:
        return []
    return list(catalogue.papers[paper].claims_by_name)


def require_committed(paper: str, claim: str) -> None:
    """Raise UserError unless the committed results have the claim, or any of the paper."""
    rows = read_claim_rows(COMMITTED.claims.table)
    if any(row.paper == paper and claim in ("", row.claim) for row in rows):
        return
    name = f"{paper}/{claim}" if claim else paper
    option = f"--claim {name}" if claim else f"--papers {paper}"
    raise UserError(
        f"{COMMITTED.path} has no result of {name}; `./reproduce {option} --scale small` "
        f"makes one, and after `./reproduce --papers {paper} --scale small` the command "
        "`export --scale small` copies it there"
    )


def verify_paper(catalogue: Catalogue, paper: str, shows_all: bool) -> None:
    """Print the claims of a paper with their verdicts, or the primary ones alone.

    Raises UserError with a line for each difference from what is committed.
    """
    with recompute_export(catalogue, COMMITTED, True, paper) as recomputed:
        rows = recomputed.claims.rows
        print_paper(rows, recomputed.restored.scale, shows_all)
        print(*describe_predictions(recomputed), sep="\n")
        faults = recomputed.faults
    if faults:
        raise UserError("\n".join(map(str, faults)))
    print(f"{len(rows)} claims equal to {name_compared_files(rows)}")
    verify = ".venv/bin/python -m workflow_scripts verify"
    if not shows_all and len({row.is_primary for row in rows}) > 1:
        print(f"all of them: {verify} {paper} --all")
    shown = min(rows, key=rank_shown_claim)
    print(f"one of them, with each seed: {verify} {paper}/{shown.claim}")


def rank_shown_claim(row: ClaimRow) -> tuple[bool, bool]:
    """Return the key by which a claim with values is an example: primary ones first."""
    return row.effect is None, not row.is_primary


def verify_claim(catalogue: Catalogue, paper: str, claim: str) -> None:
    """Print a claim from its scores and predictions, and the fields that differ from these.

    Raises UserError if there are any.
    """
    name = f"{paper}/{claim}"
    with recompute_export(catalogue, COMMITTED, True, paper, claim) as recomputed:
        checked = check_claim(catalogue, recomputed, name)
    print_claim(checked)
    faults = list(recomputed.rescored.faults)
    faults += [fault for fault in recomputed.faults if name in (fault.name, fault.claim)]
    differences = [fault.problem for fault in faults if isinstance(fault.problem, FieldDifference)]
    lines = [str(fault) for fault in faults if isinstance(fault.problem, str)]
    if differences:
        print_differences(differences)
        files = ", ".join(dict.fromkeys(difference.file for difference in differences))
        lines.append(
            f"{name}: {files}: not what follows from the committed scores, in the fields above; "
            "`git diff HEAD -- results docs README.md` shows what was changed"
        )
    if lines:
        raise UserError("\n".join(lines))
    print(f"  equal to {name_compared_files([checked.row])}")


def check_claim(catalogue: Catalogue, recomputed: RecomputedExport, name: str) -> CheckedClaim:
    """Collect what is printed of a recomputed claim."""
    paper, _, claim = name.partition("/")
    scale = recomputed.restored.scale
    (outcome,) = recomputed.claims.select_outcomes(paper, claim)
    (row,) = (row for row in recomputed.claims.rows if row.claim == claim)
    sides = {(paper, claim): list(make_side_rows(paper, outcome))}
    (measured,) = make_claims(catalogue, ExportedResults([row], sides))
    runs = list_compared_runs([outcome])
    parents = list_ancestors(catalogue, runs, scale)
    plan = f"papers/{paper}/{row.plan}" if row.plan else ""
    return CheckedClaim(
        measured=measured,
        outcome=outcome,
        rescored=recomputed.rescored,
        origins=read_run_origins(COMMITTED.provenance, runs, parents, plan),
        datasets=read_data_notes(COMMITTED.datasets, {run.task for run in runs + parents}),
        meanings=catalogue.meanings,
        scale=scale,
    )


def name_compared_files(rows: list[ClaimRow]) -> str:
    """Name the files that have claims of the committed results."""
    files = COMMITTED.claims.table.name
    if any(row.is_primary for row in rows) and is_documented(COMMITTED):
        files += f" and {VERDICTS_PAGE}"
    return files


def is_crate(path: Path) -> bool:
    """Whether a path is an archive, also a broken one, or a folder with the metadata of a crate."""
    if path.is_file():
        return path.suffix == ".zip" or zipfile.is_zipfile(path)
    return CrateFolder(path).metadata.exists()


def verify_crate_at(crate: Path) -> None:
    """Verify a crate. Raises UserError if it has faults, and for what is no crate."""
    if not is_crate(crate):
        raise UserError(explain_path(crate))
    # Only a crate has figures to draw again: importing what draws takes half a second.
    from workflow_scripts.reporting.pages.verify import verify_crate

    with tempfile.TemporaryDirectory() as scratch:
        folder = crate
        if crate.is_file():
            folder = Path(scratch)
            unpack_zip(crate, folder)
        checked, faults = verify_crate(folder, crate)
    for fault in faults:
        print(fault)
    if faults:
        count = count_nouns(len(faults), "fault")
        raise UserError(f"{crate}: {count}; do not trust it, download it again")
    print(
        "p-values over examples are read from the tables' records, "
        "because a crate has no predictions"
    )
    print(f"{crate}: checked {', '.join(checked)}; all agree")
