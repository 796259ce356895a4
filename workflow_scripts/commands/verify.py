"""Verify results: a crate, a folder of committed results, or one claim of these, from their
scores.
"""

import argparse
import tempfile
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MissingFileError
from workflow_scripts.common.result_folders import RESULTS, CrateFolder, ExportFolder
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.data.sources.archives import unpack_zip
from workflow_scripts.reporting.committed.recomputing import (
    Fault,
    RecomputedClaims,
    describe_verdicts,
    find_claim_faults,
    find_readme_faults,
    recompute_claims,
)
from workflow_scripts.reporting.committed.restoring import restore_export
from workflow_scripts.reporting.pages.verify import verify_crate

README = Path("README.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "results",
        type=Path,
        metavar="NAME",
        help="a crate that `crate` wrote, the zip file or a folder of its content; or committed "
        "results, such as results/reference/small",
    )
    parser.add_argument(
        "--claims",
        action="store_true",
        help="of committed results: the verdicts alone, in one line",
    )


def main(args: argparse.Namespace) -> None:
    """Print what was checked and one line per fault. Raises UserError if there are faults."""
    if is_export(args.results):
        verify_claims(ExportFolder(args.results))
    else:
        verify_crate_at(args.results)


def is_export(path: Path) -> bool:
    """Whether a folder has committed results, which are no crate."""
    return ExportFolder(path).claims.table.exists() and not CrateFolder(path).metadata.exists()


def verify_claims(export: ExportFolder) -> None:
    """Judge the claims of an export from its scores, and print what they come to in one line.

    Raises UserError, with a line for each, for claims that differ from claims.csv or from README.
    """
    with tempfile.TemporaryDirectory() as scratch:
        restored = restore_export(load_catalogue(), export, Path(scratch))
        recomputed = recompute_claims(restored)
    faults = find_claim_faults(restored, recomputed)
    compared = export.claims.table.name
    if is_described_by_readme(export):
        compared = README.name
        faults += find_readme_faults(restored, recomputed, README)
    print(format_summary(recomputed, faults, compared))
    if faults:
        raise UserError("\n".join(map(str, faults)))


def is_described_by_readme(export: ExportFolder) -> bool:
    """Whether README's tables are those of an export: of results/reference/small."""
    return README.exists() and export.path.resolve() == RESULTS.reference.resolve() / "small"


def format_summary(recomputed: RecomputedClaims, faults: list[Fault], compared: str) -> str:
    """Return the line that says what the primary claims come to; compared: a file's name."""
    decided = recomputed.decided
    scores = f"{recomputed.count_scores():,} committed scores"
    verdicts = describe_verdicts(decided)
    line = f"{len(decided)} primary claims recomputed from {scores}: {verdicts}"
    if recomputed.waiting:
        line += f" ({len(recomputed.waiting)} more wait for seeds)"
    if not faults:
        return f"{line}, equal to {compared}"
    return f"{line}, NOT equal to what is committed"


def verify_crate_at(crate: Path) -> None:
    """Verify a crate. Raises UserError if it has faults."""
    with tempfile.TemporaryDirectory() as scratch:
        if crate.is_file():
            unpack_zip(crate, Path(scratch))
        elif not crate.exists():
            raise MissingFileError(crate)
        folder = crate if crate.is_dir() else Path(scratch)
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
