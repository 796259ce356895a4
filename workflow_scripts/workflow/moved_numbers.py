"""Find the numbers of tables and the verdicts of claims that a call of ./reproduce has changed.

Before the first job of a call, the tables and claims that it will rerun are copied to
NUMBERS_BEFORE.
"""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.files import read_csv
from workflow_scripts.workflow.snakemake_job import SnakemakeJob

NUMBERS_BEFORE = Path(".snakemake/numbers")
# Rule -> the columns that name a row of its CSV file, and the column that is compared.
COMPARED = {
    "table": (("row", "column", "metric"), "reproduced"),
    "claims": (("paper", "claim"), "verdict"),
    "claim": (("paper", "claim"), "verdict"),
}
SHOWN = 3  # changes in a line


@dataclass(frozen=True)
class Move:
    """A value that differs. name: of a cell, or of a claim. Empty: not measured."""

    name: str
    before: str
    now: str

    def __str__(self) -> str:
        before, now = _shorten(self.before), _shorten(self.now)
        if before == now:  # they differ in further digits
            before, now = self.before, self.now
        return f"{self.name} {before or 'none'} → {now or 'none'}"


def store_numbers(jobs: Iterable[SnakemakeJob]) -> None:
    """Copy the tables and claims of jobs that will run, unless this call has done so before.

    ./reproduce deletes the copies of the call before.
    """
    for job in jobs:
        if job.rule not in COMPARED:
            continue
        file = _find_csv(job.outputs)
        copy = NUMBERS_BEFORE / job.rule / file
        if file.exists() and not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)


def _find_csv(outputs: Iterable[str]) -> Path:
    """Return the file with the cells, or with the verdicts: the first CSV file."""
    return next(Path(file) for file in outputs if file.endswith(".csv"))


def describe_moves() -> list[str]:
    """Return lines about what has changed, and what has not; none if no table was rerun."""
    tables = _compare_files("table")
    claims = _compare_files("claims")
    single_claims = _compare_files("claim")
    lines = []
    if tables:
        lines.append(_describe_group(tables, "number", "moved", "table"))
    if claims or single_claims:
        lines.append(_describe_group(claims | single_claims, "verdict", "changed", "file"))
    return lines


def _compare_files(rule: str) -> dict[Path, list[Move]]:
    """Return the results of a rule that was rerun, each with what differs in it."""
    moves: dict[Path, list[Move]] = {}
    folder = NUMBERS_BEFORE / rule
    for copy in sorted(folder.rglob("*.csv")):
        file = copy.relative_to(folder)
        # A table that a stopped call has not reached is as old as its copy.
        if file.exists() and file.stat().st_mtime_ns != copy.stat().st_mtime_ns:
            moves[file] = list(find_moves(rule, copy, file))
    return moves


def find_moves(rule: str, before: Path, now: Path) -> Iterator[Move]:
    """Yield the values that differ between two results of a rule, of rows that both have."""
    keys, compared = COMPARED[rule]
    values = {}
    for row in read_csv(before, (*keys, compared)):
        values[tuple(row[key] for key in keys)] = row[compared]
    for row in read_csv(now, (*keys, compared)):
        names = tuple(row[key] for key in keys)
        if values.get(names, row[compared]) != row[compared]:
            name = "/".join(names)
            if rule == "table":
                name = f"{now.parent.name}/{now.stem} {' '.join(names)}"
            yield Move(name, values[names], row[compared])


def _describe_group(moves_of: dict[Path, list[Move]], noun: str, verb: str, file_noun: str) -> str:
    """Count the changes in some files, and name the first and where they are."""
    moves = [move for file_moves in moves_of.values() for move in file_moves]
    files = [file for file, file_moves in moves_of.items() if file_moves]
    made = f"{len(moves_of)} {file_noun}{'' if len(moves_of) == 1 else 's'}"
    if not moves:
        return f"No {noun} {verb} in {made}"
    shown = "; ".join(map(str, moves[:SHOWN]))
    more = len(moves) - SHOWN
    if more > 0:
        shown += f"; and {more} more"
    count = f"{len(moves)} {noun}{'' if len(moves) == 1 else 's'}"
    return f"{count} {verb} in {len(files)} of {made}: {shown} ({files[0]})"


def _shorten(value: str) -> str:
    """Format a number with four significant digits; a verdict as it is."""
    try:
        return f"{float(value):.4g}"
    except ValueError:
        return value
